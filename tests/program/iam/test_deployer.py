"""The deployer's policies as documents: valid, narrow, complete for every stack, and equal to those on the pages."""

import json
from fnmatch import fnmatchcase

import pytest
from click.testing import CliRunner

from generate.examples import example_files
from hpkit.catalog import type_calls
from hpkit.cli.account.deployer_policy import command
from hpkit.errors import CatalogError
from hpkit.plan.derive import derive
from hpkit.program.iam.deployer import NO_ACCOUNT, actions_of, calling_types, deployer_policies
from hpkit.program.iam.live import AwsAccount, LiveResource
from hpkit.program.iam.rules import actions_of_call, rules
from hpkit.project import load
from tests import builders
from tests.program.iam.authorization import dependent_actions, problems
from tests.program.recorder import recording_of

GOVERNING = ("ComputeQuota", "ClusterSchedulerConfig")
ACCOUNT = AwsAccount("aws", "us-west-2", "123456789012")
# Dependent actions in the reference that a deployment doesn't need, with the reason.
NOT_NEEDED = {
    "fsx:CreateBackup": "a file system goes without a last backup",
    "iam:CreateServiceLinkedRole": "keys are of one region",
    "iam:PassRole": "topics have no roles for delivery feedback",
    "ec2:GetManagedPrefixListEntries": "the Grafana workspace is in no VPC",
    "ec2:DescribeSecurityGroups": "the Grafana workspace is in no VPC",
    "ec2:DescribeSubnets": "the Grafana workspace is in no VPC",
    # Only with a custom image, if the policies allow them.
    **dict.fromkeys(("ec2:DescribeImages", "ec2:DescribeSnapshots"), "groups run the service's image"),
    **dict.fromkeys(("ec2:ModifyImageAttribute", "ec2:ModifySnapshotAttribute"), "groups run the service's image"),
}

NETWORK = {
    "existing": {
        "vpcId": "vpc-0a1b2c3d4e5f60718",
        "subnets": {"us-west-2a": "subnet-0a1b2c3d4e5f60718"},
        "securityGroupIds": ["sg-0a1b2c3d4e5f60718"],
    }
}


def plans():
    for file in example_files():
        organization = load(file).parsed.organization
        yield from (derive(organization, name) for name in sorted(organization.environments))
    yield from (derive(builders.typed(data), "dev") for data in variants())


def variants():
    """Yield organizations with features that no example has: existing network and EKS, files, images, inference."""
    organization = builders.organization(teams=[builders.team("nlp")])
    organization["environments"]["dev"]["network"] = NETWORK
    organization["environments"]["dev"]["eks"]["existing"] = {"name": "theirs"}
    yield organization
    files = builders.organization(
        teams=[builders.team("nlp", registry=["train"])],
        allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]},
    )
    key = "arn:aws:kms:us-west-2:123456789012:key/11111111-2222-3333-4444-555555555555"
    files["environments"]["dev"]["storage"] = {
        "kmsKeyArn": key,
        "lustre": {
            "availabilityZone": "us-west-2a",
            "storageCapacityGiB": 1200,
            "perUnitStorageThroughput": 125,
            "dataRepositories": [{"path": "/data", "bucket": "acme-data"}],
        },
    }
    files["environments"]["dev"]["cluster"]["instanceGroups"][0] |= {
        "imageId": "ami-0a1b2c3d4e5f60718",
        "trainingPlanArn": "arn:aws:sagemaker:us-west-2:123456789012:training-plan/reserved",
    }
    yield files
    serving = builders.organization(teams=[builders.team("nlp")])
    serving["environments"]["dev"]["inference"] = {"tlsCertificateBucket": "acme-tls", "modelBuckets": ["acme-models"]}
    yield serving
    yield with_certificates()
    yield with_spaces()
    yield from given()


def with_certificates():
    """Return an organization whose inference operator gets a bucket from hpkit."""
    return builders.organization(teams=[builders.team("nlp")], environment={"inference": {}})


def with_spaces():
    """Return an organization whose spaces are accessible with a browser and Systems Manager."""
    web = {
        "domain": "spaces.acme.com",
        "certificateArn": "arn:aws:acm:us-west-2:123456789012:certificate/12345678-1234-1234-1234-123456789012",
        "kmsKeyArn": "arn:aws:kms:us-west-2:123456789012:key/11111111-2222-3333-4444-555555555555",
    }
    return builders.organization(
        teams=[builders.team("nlp")], environment={"spaces": {"remoteAccess": True, "webUi": web}}
    )


def given():
    """Yield organizations with existing roles, buckets and tags: all of them, and some."""
    role = "arn:aws:iam::123456789012:role/live/{}"
    script = {"lifecycleScript": "s3://live/run.sh", "executionRole": role.format("nodes")}
    whole = builders.organization(
        teams=[builders.team("nlp")],
        groups=[
            builders.group("gpu", "ml.g5.12xlarge", 4, **script),
            builders.group("burst", "ml.g5.8xlarge", 0, **script),
        ],
        environment={
            "network": NETWORK,
            "eks": {"version": "1.35", "existing": {"name": "theirs"}},
            "storage": {"existing": {"bucket": "live"}},
            "autoscaling": {
                "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
                "clusterRole": role.format("karpenter"),
            },
            "manageTags": False,
            "addons": {
                "aws-ebs-csi-driver": {"role": role.format("volumes")},
                "amazon-cloudwatch-observability": {"serviceAccountRoleArn": role.format("logs")},
                "vpc-cni": {"podIdentity": False},
            },
        },
        top={"organization": "given"},
    )
    yield whole
    some = builders.organization(
        groups=[
            builders.group("gpu", "ml.g5.12xlarge", 4, executionRole=role.format("nodes")),
            builders.group("system", "ml.m5.4xlarge", 1),
        ],
        environment={
            "storage": {"existing": {"bucket": "live"}},
            "addons": {"vpc-cni": {"role": role.format("network")}, "aws-ebs-csi-driver": {}},
        },
        top={"organization": "some"},
    )
    yield some
    yield builders.organization(
        groups=[builders.group("gpu", "ml.g5.12xlarge", 4)],
        environment={"manageTags": False},
        top={"organization": "bare"},
    )


PLANS = list(plans())


# The state's resources of each type that policies can only name by ARN.
LIVE = tuple(
    LiveResource(arn, {"hpkit:organization": "acme", "hpkit:environment": "dev"})
    for arn in (
        ACCOUNT.arn("fsx", "file-system/fs-0a1b2c3d4e5f60718"),
        ACCOUNT.arn("fsx", "association/fs-0a1b2c3d4e5f60718/dra-0a1b2c3d4e5f60718"),
        ACCOUNT.arn("kms", "key/0a1b2c3d-0000-0000-0000-000000000000"),
        "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/0A1B2C3D",
    )
)
END = "2026-12-01T18:00:00Z"


def statements_of(plan):
    return [each for policy in policies_of(plan) for each in policy.document["Statement"]]


def policies_of(plan, live=LIVE):
    """Return the policies for a state with resources named by ARN; without managed tags, they expire at END."""
    until = None if plan.spec.manage_tags else END
    return deployer_policies(plan, ACCOUNT, types(plan), live=live, until=until)


def types(plan):
    return calling_types(each.type for each in recording_of(plan).resources.values())


def test_a_type_whose_calls_nobody_wrote_down_ends_in_an_error_and_in_no_policy():
    tokens = ["aws:ec2/vpc:Vpc", "hyperpod:index:ChangeGuard", "kubernetes:core/v1:Secret", "hpkit:index:Eks"]
    assert calling_types(tokens) == {"aws:ec2/vpc:Vpc"}
    with pytest.raises(CatalogError, match="aws:sqs/queue:Queue"):
        calling_types([*tokens, "aws:sqs/queue:Queue"])


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.stack)
def test_roles_and_managed_policies_are_exactly_those_of_the_program(plan):
    program = recording_of(plan)
    by_sid = {each["Sid"]: each for each in statements_of(plan)}
    attached = {each.inputs["policyArn"] for each in program.all("iam/rolePolicyAttachment:RolePolicyAttachment")}
    assert ("ManagedPolicies" in by_sid) == bool(attached)
    if attached:
        assert set(by_sid["ManagedPolicies"]["Condition"]["ArnEquals"]["iam:PolicyARN"]) == attached
    names = {each.inputs["name"] for each in program.all("iam/role:Role")}
    assert ("Roles" in by_sid) == bool(names)
    patterns = by_sid["Roles"]["Resource"] if names else []
    arns = {f"arn:aws:iam::123456789012:role/{name}" for name in names}
    assert all(any(fnmatchcase(arn, pattern) for pattern in patterns) for arn in arns)
    assert all(any(fnmatchcase(arn, pattern) for arn in arns) for pattern in patterns), "no pattern is for nothing"
    passed = {arn for sid, each in by_sid.items() if sid.startswith("Pass") for arn in each["Resource"]}
    assert {arn.rpartition("/")[2] for arn in passed if not arn.endswith("*") and "/live/" not in arn} <= names
    assert {arn for arn in passed if "/live/" in arn} == live_roles(program)


def live_roles(program):
    """Return every existing role that the program passes to a service."""
    cluster = program.one("hyperpod:index:Cluster").inputs
    addons = [each.inputs.get("serviceAccountRoleArn") for each in program.all("eks/addon:Addon")]
    pods = [each.inputs["roleArn"] for each in program.all("eks/podIdentityAssociation:PodIdentityAssociation")]
    nodes = [each["executionRole"] for each in cluster["instanceGroups"]]
    return {arn for arn in (*nodes, cluster.get("clusterRole"), *addons, *pods) if arn and "/live/" in arn}


def plan_of(organization):
    return next(plan for plan in PLANS if plan.organization == organization)


def test_who_manages_no_tags_is_asked_for_no_right_to_set_them():
    tagging = {action for action in actions_of(plan_of("bare"), types(plan_of("bare"))) if "tag" in action.lower()}
    assert {
        action for action in tagging if not action.partition(":")[2].startswith(("Get", "List", "Describe"))
    } == set()
    conditions = json.dumps([each.get("Condition") for each in statements_of(plan_of("bare"))])
    assert "hpkit:" not in conditions


def test_a_bucket_that_is_there_is_not_touched_but_for_the_kits_script():
    assert not any(action.startswith("s3:") for action in actions_of(plan_of("given"), types(plan_of("given"))))
    found = {each["Sid"]: each for each in statements_of(plan_of("some"))}
    assert found["BucketObjects"]["Resource"] == ["arn:aws:s3:::live/*"]
    assert (found["Bucket"]["Action"], found["Bucket"]["Resource"]) == (
        ["s3:ListBucketVersions"],
        ["arn:aws:s3:::live"],
    )


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.stack)
def test_the_reference_knows_all_that_the_policies_say(plan):
    for policy in policies_of(plan):
        assert list(problems(policy.document)) == []
        assert not any("*" in action for each in policy.document["Statement"] for action in each["Action"])


def test_the_bucket_of_certificates_may_be_made_and_emptied_and_no_other():
    plan = derive(builders.typed(with_certificates()), "dev")
    names = [f"arn:aws:s3:::{prefix}-acme-dev-{ACCOUNT.id}-us-west-2" for prefix in ("hyperpod-tls", "sagemaker")]
    found = {each["Sid"]: each["Resource"] for each in statements_of(plan)}
    assert set(found["Bucket"]) == set(names)
    assert found["BucketObjects"] == [f"{names[1]}/*"]
    (emptied,) = (each for each in statements_of(plan) if each["Sid"] == "CertificateObjects")
    assert emptied["Resource"] == [f"{names[0]}/*"]
    assert {action for action in emptied["Action"] if "Get" in action} == set(), "nobody who deploys reads them"


@pytest.mark.parametrize("token", type_calls())
def test_what_the_reference_says_that_calls_depend_on_is_allowed(token):
    calls = type_calls()[token]
    own = {action for call in calls.operations() for action in actions_of_call(call)}
    depended = {each for action in own for each in dependent_actions(action)}
    assert depended - own - set(calls.service) <= NOT_NEEDED.keys()


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.stack)
def test_every_action_that_is_needed_is_in_some_document(plan):
    given = {action for each in statements_of(plan) for action in each["Action"]}
    assert given == actions_of(plan, types(plan))


def test_names_of_rules_are_unique_and_every_rule_is_needed_by_some_type():
    assert len({rule.sid for rule in rules()}) == len(rules())
    used = {each["Sid"] for plan in PLANS for each in statements_of(plan)}
    assert {rule.sid for rule in rules() if not {rule.sid, f"{rule.sid}Tag"} & used} == set()
    assert {name for plan in PLANS for name in types(plan)} == set(type_calls())


def test_the_command_prints_documents_that_allow_nothing_until_the_account_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(builders.copy_of_handson(tmp_path, builders.without_account))
    bare = CliRunner().invoke(command, ["--stack", "handson-dev"])
    assert bare.exit_code == 0
    assert NO_ACCOUNT in bare.stderr
    documents = json.loads(bare.stdout)
    assert [each["name"][-10:] for each in documents] == [f"deployer-{n}" for n in range(1, len(documents) + 1)]
    assert "role/handson-dev-us-west-2-*" in bare.stdout
    named = CliRunner().invoke(command, ["--stack", "handson-dev", "--account", "123456789012"])
    assert named.stdout == bare.stdout.replace(NO_ACCOUNT, "123456789012")


KEY = "arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0000-0000-0000-000000000000"


def state(tmp_path, *resources):
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"version": 3, "deployment": {"resources": list(resources)}}), encoding="utf-8")
    return str(file)


def test_the_state_names_keys_and_what_was_adopted_without_tags(tmp_path):
    nat = {"custom": True, "type": "aws:ec2/natGateway:NatGateway", "id": "nat-0a1b2c3d", "outputs": {"tags": {}}}
    own = {"hpkit:organization": "handson", "hpkit:environment": "dev"}
    key = {"custom": True, "type": "aws:kms/key:Key", "id": "0a1b2c3d", "outputs": {"arn": KEY, "tagsAll": own}}
    file = state(tmp_path, {"type": "pulumi:pulumi:Stack"}, key, nat)
    printed = CliRunner().invoke(command, ["--stack", "handson-dev", "--state", file])
    statements = {
        each["Sid"]: each for policy in json.loads(printed.stdout) for each in policy["document"]["Statement"]
    }
    assert statements["Key"]["Resource"] == [KEY]
    assert {"kms:PutKeyPolicy", "kms:ScheduleKeyDeletion"} <= set(statements["Key"]["Action"])
    adopted = statements["NetworkChangeAdopt"]
    assert (adopted["Action"], adopted["Resource"]) == (
        ["ec2:CreateTags"],
        ["arn:aws:ec2:us-west-2:123456789012:natgateway/nat-0a1b2c3d"],
    )
    first = CliRunner().invoke(command, ["--stack", "handson-dev"])
    assert "PutKeyPolicy" not in first.stdout
    assert "print them again with --state" in first.stderr


@pytest.mark.parametrize("stack", ["handson-dev", "enterprise-prod"])
def test_who_changes_governance_reads_the_stack_and_writes_nothing_else(stack):
    def statements(*options):
        printed = json.loads(CliRunner().invoke(command, ["--stack", stack, *options]).stdout)
        for policy in printed:
            sids = [statement["Sid"] for statement in policy["document"]["Statement"]]
            assert len(set(sids)) == len(sids)
        return [statement for policy in printed for statement in policy["document"]["Statement"]]

    reading, governing = statements("--read-only"), statements("--governance")
    assert all(statement in governing for statement in reading)
    written = {
        action
        for statement in governing
        if statement not in reading and statement["Effect"] == "Allow"
        for action in statement["Action"]
    }
    sagemaker = {f"{verb}{thing}" for verb in ("Create", "Update", "Delete") for thing in GOVERNING}
    assert {action for action in written if not action.startswith("eks:")} == {
        f"sagemaker:{name}" for name in (*sagemaker, "AddTags", "DeleteTags")
    }
    assert {action for action in written if action.startswith("eks:")} == {
        *(f"eks:{verb}AccessEntry" for verb in ("Create", "Update", "Delete")),
        *("eks:AssociateAccessPolicy", "eks:DisassociateAccessPolicy", "eks:TagResource", "eks:UntagResource"),
    }


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"deployment": {"resources": [1]}}'])
def test_what_is_no_exported_state_is_refused(text, tmp_path):
    file = tmp_path / "state.json"
    file.write_text(text, encoding="utf-8")
    refused = CliRunner().invoke(command, ["--stack", "handson-dev", "--state", str(file)])
    assert refused.exit_code == 2
    assert "pulumi stack export" in refused.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until", "2026-12-01T18:00:00Z"], "remove --until"),
        (["--read-only", "--deny-outsiders"], "can't be combined"),
        (["--console", "--deny-outsiders"], "can't be combined"),
        (["--read-only", "--governance"], "can't be combined"),
        (["--read-only", "--until", "2026-12-01T18:00:00Z"], "can't be combined"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(options, message):
    refused = CliRunner().invoke(command, ["--stack", "handson-dev", *options])
    assert refused.exit_code == 2
    assert message in refused.stderr


def test_the_policy_for_the_console_reads_and_reaches_one_eks_cluster():
    printed = CliRunner().invoke(command, ["--stack", "handson-dev", "--console"])
    (policy,) = json.loads(printed.stdout)
    actions = {action for each in policy["document"]["Statement"] for action in each["Action"]}
    assert {"eks:AccessKubernetesApi", "cloudwatch:GetMetricData", "sagemaker:ListClusters"} <= actions
    assert not [
        each for each in actions if not each.partition(":")[2].startswith(("Access", "Describe", "Get", "List"))
    ]
    assert "cluster/handson-dev" in str(policy["document"])
    assert "attach all of them to each role that views handson-dev" in printed.stderr


def without_tags(text):
    return text.replace("\n    account: ", "\n    manageTags: false\n    account: ")


def test_without_managed_tags_the_first_rights_end(tmp_path, monkeypatch):
    monkeypatch.chdir(builders.copy_of_handson(tmp_path, without_tags))
    printed = CliRunner().invoke(command, ["--stack", "handson-dev", "--until", "2026-12-01T19:00:00+01:00"])
    found = {each["Sid"]: each for policy in json.loads(printed.stdout) for each in policy["document"]["Statement"]}
    assert found["NetworkChangeUntil"]["Condition"] == {"DateLessThan": {"aws:CurrentTime": "2026-12-01T18:00:00Z"}}
    assert "NetworkChange" not in found
    forever = CliRunner().invoke(command, ["--stack", "handson-dev"])
    assert '"ec2:DeleteVpc"' not in forever.stdout
    assert "add --until TIME" in forever.stderr
    refused = CliRunner().invoke(command, ["--stack", "handson-dev", "--until", "tomorrow"])
    assert (refused.exit_code, "2026-12-01T18:00:00Z" in refused.stderr) == (2, True)


def test_an_account_that_is_none_is_refused():
    refused = CliRunner().invoke(command, ["--stack", "handson-dev", "--account", "1234"])
    assert refused.exit_code == 2
    assert "12 digits" in refused.stderr
