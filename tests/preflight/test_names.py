"""Names that must be free, and roles that the file passes to services."""

import pytest

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.derive import derive
from hpkit.preflight.account import check_roles
from hpkit.preflight.calls import (
    CALLER,
    CLUSTERS,
    bucket_encryption,
    bucket_location,
    bucket_tags,
    eks_cluster,
    first_calls,
    further_calls,
    key_of_web_ui,
    made_buckets,
    oidc_provider,
    principals,
    role,
    role_arns,
    team_bucket,
)
from hpkit.preflight.calls import simulations as asked_of
from hpkit.preflight.given import check_given
from hpkit.preflight.names import check_names
from hpkit.program.recording import record
from tests.builders import group, organization, team, typed
from tests.program.recorder import recorded_from, recording_of

ISSUER = "oidc.eks.us-west-2.amazonaws.com/id/ABC"
PROVIDER = f"arn:aws:iam::123456789012:oidc-provider/{ISSUER}"
NODES = "acme-dev-us-west-2-nodes"
BUCKET = "sagemaker-acme-dev-123456789012-us-west-2"
OWN = [{"Key": "hpkit:organization", "Value": "acme"}, {"Key": "hpkit:environment", "Value": "dev"}]


def absent(code):
    return FailedCall("iam:Get", code, "none")


def recording(**environment):
    return recorded_from(organization(groups=[group("gpu", "ml.g5.12xlarge", 4)], environment=environment))


def on_a_cluster(**inference):
    settings = {"tlsCertificateBucket": "acme-tls", **inference}
    subnets = {"us-west-2a": "subnet-01234567"}
    network = {"vpcId": "vpc-01234567", "subnets": subnets, "securityGroupIds": ["sg-01234567"]}
    eks = {"version": "1.35", "existing": {"name": "kube"}, "administrators": []}
    return recording(inference=settings, eks=eks, network={"existing": network})


def responses(recorded, **changed):
    eks = {
        "arn": "arn:aws:eks:us-west-2:123456789012:cluster/kube",
        "identity": {"oidc": {"issuer": f"https://{ISSUER}"}},
    }
    answers = {CALLER.key: {"Account": "123456789012"}, eks_cluster(recorded.plan).key: {"cluster": eks}}
    asked = [*first_calls(recorded), *further_calls(recorded.plan, Responses(answers))]
    codes = {"GetRole": "NoSuchEntity", "GetOpenIDConnectProvider": "NoSuchEntity", "GetBucketTagging": "NoSuchBucket"}
    free = {call.key: absent(codes[call.operation]) for call in asked if call.operation in codes}
    return Responses({**answers, **free, **changed})


def rows_of(recorded, **changed):
    return {row.what: row for row in check_names(recorded, responses(recorded, **changed))}


def test_in_an_empty_account_every_name_of_the_program_is_asked_for_and_free():
    recorded = recording()
    rows = rows_of(recorded)
    made = {f"name {each.inputs['name']} for a role" for each in recorded.all("iam/role:Role")}
    assert rows.keys() == made | {f"name {BUCKET} for a bucket"}
    assert {row.status for row in rows.values()} == {"ok"}


@pytest.mark.parametrize(("tags", "status", "detail"), [(OWN, "ok", "this stack's own"), ([], "missing", "taken")])
def test_a_role_and_a_bucket_that_are_there_are_the_stacks_own_or_in_the_way(tags, status, detail):
    there = {role(NODES).key: {"Role": {"Tags": tags}}, bucket_tags(BUCKET).key: {"TagSet": tags}}
    rows = rows_of(recording(), **there)
    for what in (f"name {NODES} for a role", f"name {BUCKET} for a bucket"):
        assert (rows[what].status, rows[what].found) == (status, detail)
        assert ("or rename" in rows[what].fix) == (status == "missing")


@pytest.mark.parametrize(("code", "status"), [("NoSuchTagSet", "missing"), ("AccessDenied", "unknown")])
def test_a_bucket_without_tags_is_somebody_elses_and_one_that_hides_them_unknown(code, status):
    rows = rows_of(recording(), **{bucket_tags(BUCKET).key: absent(code)})
    assert rows[f"name {BUCKET} for a bucket"].status == status


def test_a_bucket_that_is_handed_over_is_not_to_be_free():
    recorded = recording(storage={"existing": {"bucket": "sagemaker-live"}})
    assert made_buckets(recorded.plan, responses(recorded)) == ()


def test_without_an_identity_no_bucket_is_looked_for():
    assert made_buckets(recording().plan, Responses({})) == ()


OIDC = f"OIDC provider of {ISSUER}"


def test_a_provider_of_the_same_issuer_is_to_be_named():
    row = rows_of(on_a_cluster(), **{oidc_provider(PROVIDER).key: {"Tags": []}})[OIDC]
    assert (row.status, row.found) == ("missing", "taken")
    assert f"inference.oidcProviderArn: {PROVIDER}" in row.fix
    assert rows_of(on_a_cluster())[OIDC].status == "ok"


def test_a_provider_that_is_named_is_there_and_of_the_clusters_issuer():
    named = on_a_cluster(oidcProviderArn=PROVIDER)
    assert rows_of(named, **{oidc_provider(PROVIDER).key: {}})[OIDC].status == "ok"
    gone = rows_of(named)[OIDC]
    assert (gone.status, gone.found) == ("missing", "missing")
    hidden = rows_of(named, **{oidc_provider(PROVIDER).key: absent("AccessDenied")})
    assert hidden[OIDC].status == "unknown"
    other = rows_of(on_a_cluster(oidcProviderArn=f"{PROVIDER}D"))[OIDC]
    assert (other.status, other.found, other.needed) == ("missing", f"{PROVIDER}D", PROVIDER)


def test_a_new_cluster_has_an_issuer_that_nobody_knows_yet():
    recorded = recording(inference={"tlsCertificateBucket": "acme-tls"})
    assert [what for what in rows_of(recorded) if "OIDC" in what] == []


ROLE = "arn:aws:iam::123456789012:role/{}"
ON = {"nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}], "clusterRole": ROLE.format("karpenter")}


def plan_of(**more):
    groups = [
        group("gpu", "ml.g5.12xlarge", 4, executionRole=ROLE.format("nodes")),
        group("burst", "ml.g5.8xlarge", 0, executionRole=ROLE.format("nodes")),
    ]
    addons = {
        "aws-ebs-csi-driver": {"role": ROLE.format("volumes")},
        "vpc-cni": {"serviceAccountRoleArn": ROLE.format("network")},
    }
    return derive(typed(organization(groups=groups, environment={"autoscaling": ON, "addons": addons}, **more)), "dev")


def test_they_are_asked_for_and_said_with_what_they_are_for():
    plan = plan_of()
    names = ("karpenter", "network", "nodes", "volumes")
    assert {role(name).key for name in names} <= {call.key for call in first_calls(record(plan))}
    roles = {role(name).key: {"Role": {"Arn": ROLE.format(name)}} for name in names if name != "nodes"}
    absent = FailedCall("iam:GetRole", "NoSuchEntity", "no such role")
    caller = {"Account": "123456789012", "Arn": ROLE.format("x")}
    responses = Responses({**roles, role("nodes").key: absent, CALLER.key: caller})
    rows = {row.what.rpartition("/")[2]: row for row in check_roles(plan, responses)}
    assert {name: (rows[name].status, rows[name].needed) for name in names} == {
        "karpenter": ("ok", "managed Karpenter"),
        "network": ("ok", "pods of vpc-cni"),
        "nodes": ("missing", "execution role of instance groups"),
        "volumes": ("ok", "pods of aws-ebs-csi-driver"),
    }


GIVEN_NODES = "arn:aws:iam::123456789012:role/live/nodes"
KEY = "arn:aws:kms:us-west-2:123456789012:key/12345678-1234-1234-1234-123456789012"
CLOSED = "AccessDenied: another account's, or closed"
DENIED = FailedCall("iam:SimulatePrincipalPolicy", "AccessDenied", "not allowed")


def plan_with(bucket="sagemaker-live", *, script=None, **storage):
    named = {"lifecycleScript": script} if script else {}
    return derive(
        typed(
            organization(
                groups=[group("gpu", "ml.g5.12xlarge", 4, executionRole=GIVEN_NODES, **named)],
                environment={"storage": {"existing": {"bucket": bucket}, **storage}},
            )
        ),
        "dev",
    )


def trusting(*services, action="sts:AssumeRole", **more):
    statement = {"Effect": "Allow", "Principal": {"Service": list(services)}, "Action": action, **more}
    return {role("nodes").key: {"Role": {"Arn": GIVEN_NODES, "AssumeRolePolicyDocument": {"Statement": [statement]}}}}


def allowing(plan, *, denied=()):
    return {
        call.key: {
            "EvaluationResults": [
                {
                    "EvalActionName": action,
                    "EvalResourceName": resource,
                    "EvalDecision": "implicitDeny" if action in denied else "allowed",
                }
                for action in call.params["ActionNames"]
                for resource in call.params["ResourceArns"]
            ]
        }
        for call in asked_of(plan, GIVEN_NODES)
    }


def stored(plan, *, region="us-west-2", key=None):
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key} if key else {"SSEAlgorithm": "AES256"}
    rules = [{"ApplyServerSideEncryptionByDefault": default}]
    return {
        bucket_location(plan).key: {"LocationConstraint": region},
        bucket_encryption(plan).key: {"ServerSideEncryptionConfiguration": {"Rules": rules}},
    }


def rows_of_given(plan, **given):
    known = {**trusting("sagemaker.amazonaws.com"), **allowing(plan), **stored(plan), **given}
    return {row.what: row for row in check_given(plan, Responses(known))}


def test_what_serves_is_ok_and_all_of_it_is_asked_for():
    plan = plan_with()
    rows = rows_of_given(plan)
    assert {what: row.status for what, row in rows.items()} == {
        f"trust of {GIVEN_NODES}": "ok",
        f"permissions of {GIVEN_NODES}": "ok",
        "bucket sagemaker-live": "ok",
        "bucket sagemaker-live, encryption": "ok",
    }
    asked = {call.key for call in first_calls(recording_of(plan))}
    asked |= {call.key for call in further_calls(plan, Responses({CLUSTERS.key: {"ClusterSummaries": []}}))}
    assert {*trusting(), *allowing(plan), *stored(plan)} <= asked


@pytest.mark.parametrize(
    ("trust", "status"),
    [
        (trusting("ec2.amazonaws.com"), "missing"),
        (trusting("sagemaker.amazonaws.com", action="sts:TagSession"), "missing"),
        (trusting("sagemaker.amazonaws.com", Condition={"StringEquals": {"aws:SourceAccount": "1"}}), "unknown"),
        (trusting("ec2.amazonaws.com", "sagemaker.amazonaws.com"), "ok"),
    ],
)
def test_an_execution_role_trusts_sagemaker_without_conditions(trust, status):
    assert rows_of_given(plan_with(), **trust)[f"trust of {GIVEN_NODES}"].status == status


def test_what_iam_does_not_allow_is_named_with_the_script_that_nodes_read():
    plan = plan_with(script="s3://other/v1/run.sh")
    row = rows_of_given(plan, **allowing(plan, denied=("s3:GetObject",)))[f"permissions of {GIVEN_NODES}"]
    assert (row.status, row.found) == ("missing", "not allowed: s3:GetObject on arn:aws:s3:::other/v1/run.sh")


def test_a_rejected_simulation_leaves_the_permissions_unknown():
    plan = plan_with()
    refused = dict.fromkeys(allowing(plan), DENIED)
    assert rows_of_given(plan, **refused)[f"permissions of {GIVEN_NODES}"].status == "unknown"


@pytest.mark.parametrize(
    ("location", "status", "detail"),
    [
        ({"LocationConstraint": None}, "missing", "in us-east-1"),
        ({"LocationConstraint": "EU"}, "missing", "in eu-west-1"),
        (FailedCall("s3:GetBucketLocation", "NoSuchBucket", "none"), "missing", "missing"),
        (FailedCall("s3:GetBucketLocation", "AccessDenied", "no"), "unknown", ""),
    ],
)
def test_a_bucket_is_there_and_in_the_region(location, status, detail):
    plan = plan_with()
    row = rows_of_given(plan, **{bucket_location(plan).key: location})["bucket sagemaker-live"]
    assert (row.status, row.found) == (status, detail)


@pytest.mark.parametrize(
    ("response", "status", "found"),
    [
        ({"LocationConstraint": "us-west-2"}, "ok", "in account 123456789012, in us-west-2"),
        ({"LocationConstraint": None}, "unknown", "in us-east-1"),
        (FailedCall("s3:GetBucketLocation", "NoSuchBucket", "none"), "missing", "missing"),
        (FailedCall("s3:GetBucketLocation", "AccessDenied", "no"), "missing", CLOSED),
    ],
    ids=["own", "elsewhere", "none", "of another account"],
)
def test_a_teams_bucket_is_there_and_of_the_account(response, status, found):
    quota = {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}
    buckets = {"storage": {"teamBuckets": {"nlp": [{"bucket": "acme-data"}]}}}
    plan = derive(typed(organization(teams=[team("nlp")], allocations=quota, environment=buckets)), "dev")
    caller = {CALLER.key: {"Account": "123456789012"}}
    asked = further_calls(plan, Responses({CLUSTERS.key: {"ClusterSummaries": []}, **caller}))
    assert team_bucket("acme-data", "123456789012") in asked
    known = {**caller, team_bucket("acme-data", "123456789012").key: response}
    (row,) = check_given(plan, Responses(known))
    assert (row.status, row.found) == (status, found)


def test_a_linked_bucket_is_in_the_region_of_the_file_system():
    links = [{"path": "/data", "bucket": "acme-data"}]
    lustre = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "dataRepositories": links}
    plan = derive(typed(organization(environment={"storage": {"lustre": lustre}})), "dev")
    location = {team_bucket("acme-data", "123456789012").key: {"LocationConstraint": "EU"}}
    (row,) = check_given(plan, Responses({CALLER.key: {"Account": "123456789012"}, **location}))
    assert (row.status, row.found) == ("missing", "in eu-west-1")


def test_a_key_of_the_bucket_must_be_the_files():
    other = plan_with()
    row = rows_of_given(other, **stored(other, key=KEY))["bucket sagemaker-live, encryption"]
    assert (row.status, row.found) == ("missing", KEY)
    assert KEY in row.fix
    same = plan_with(kmsKeyArn=KEY)
    assert rows_of_given(same, **stored(same, key=KEY))["bucket sagemaker-live, encryption"].status == "ok"


def test_a_name_without_the_prefix_of_the_managed_policy_is_said():
    row = rows_of_given(plan_with("live-scripts"))["bucket live-scripts, name"]
    assert (row.status, row.needed) == ("unknown", "sagemaker-…")


@pytest.mark.parametrize(
    ("response", "status", "detail"),
    [
        ({"KeyMetadata": {"KeyState": "Enabled", "KeySpec": "SYMMETRIC_DEFAULT"}}, "ok", "enabled, SYMMETRIC_DEFAULT"),
        ({"KeyMetadata": {"KeyState": "Enabled", "KeySpec": "ECC_NIST_P256"}}, "missing", "enabled, ECC_NIST_P256"),
        ({"KeyMetadata": {"KeyState": "Disabled", "KeySpec": "SYMMETRIC_DEFAULT"}}, "missing", "disabled"),
        (FailedCall("kms:DescribeKey", "NotFoundException", "no key"), "missing", "missing"),
        (FailedCall("kms:DescribeKey", "AccessDeniedException", "no"), "unknown", ""),
    ],
)
def test_the_key_of_the_web_ui_of_spaces_encrypts(response, status, detail):
    web = {
        "domain": "spaces.acme.com",
        "certificateArn": "arn:aws:acm:us-west-2:123456789012:certificate/1",
        "kmsKeyArn": KEY,
    }
    plan = derive(typed(organization(environment={"spaces": {"webUi": web}})), "dev")
    assert key_of_web_ui(plan) in first_calls(recording_of(plan))
    (row,) = check_given(plan, Responses({key_of_web_ui(plan).key: response}))
    assert row.status == status
    assert row.found.startswith(detail)


def test_a_role_that_the_deployment_makes_is_not_looked_for():
    teams = [{"name": "nlp", "memberRole": {"permissionSets": ["NLP"]}}]
    data = organization(
        teams=teams,
        allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]},
        environment={"account": "123456789012"},
    )
    plan = derive(typed(data), "dev")
    (planned,) = plan.teams
    assert planned.made_role
    assert planned.made_role in principals(plan)
    assert planned.made_role not in role_arns(plan)
