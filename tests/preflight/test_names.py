"""Names that must be free, and roles that the file passes to services."""

import pytest

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.derive import derive
from hpkit.preflight.account import check_roles
from hpkit.preflight.calls import (
    CALLER,
    bucket_tags,
    eks_cluster,
    first_calls,
    further_calls,
    made_buckets,
    oidc_provider,
    role,
)
from hpkit.preflight.names import check_names
from hpkit.program.recording import record
from tests.builders import group, organization, typed
from tests.program.recorder import recorded_from

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
