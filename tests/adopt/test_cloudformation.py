import json
import threading
from contextlib import contextmanager

import boto3
import jmespath
import pytest
from moto import mock_aws

from hpkit.adopt import cloudformation, read_cloudformation, read_stacks
from hpkit.adopt.handover_model import ManagedResource
from hpkit.errors import InputError
from hpkit_local.aws.moto_state import MotoState
from hpkit_local.aws.testing import running_endpoint
from tests.running import HANGS

ROOT = "hyperpod-1234"
REGION = "us-west-2"


def row(logical, kind, physical, *, status="CREATE_COMPLETE", **more):
    ids = {"LogicalResourceId": logical, "ResourceType": kind, "ResourceStatus": status}
    return ids | ({"PhysicalResourceId": physical} if physical else {}) | more


def described(stack, *rows):
    return {"StackResources": [{"StackName": stack, "StackId": f"arn:…:stack/{stack}/u", **each} for each in rows]}


def child(logical, stack):
    return row(logical, "AWS::CloudFormation::Stack", f"arn:aws:cloudformation:{REGION}:1:stack/{stack}/u")


EKS = f"{ROOT}-EKSClusterStack-1A"
HELM = f"{ROOT}-HelmChartStack-1B"
CLUSTER = f"{ROOT}-HyperPodClusterStack-1C"
ARN = f"arn:aws:sagemaker:{REGION}:111122223333:cluster/abcdefghijkl"
PRINCIPAL = "arn:aws:iam::111122223333:role/helm"


def quick_setup():
    return [
        described(
            ROOT, child("EKSClusterStack", EKS), child("HelmChartStack", HELM), child("HyperPodClusterStack", CLUSTER)
        ),
        described(
            EKS,
            row("ClusterRole", "AWS::IAM::Role", "sagemaker-hyperpod-eks-role"),
            row("EKSCluster", "AWS::EKS::Cluster", "sagemaker-hyperpod-eks-eks"),
            row("VpcCNIAddOn", "AWS::EKS::Addon", "sagemaker-hyperpod-eks-eks|vpc-cni"),
            row("Old", "AWS::EKS::Addon", "sagemaker-hyperpod-eks-eks|old", status="DELETE_COMPLETE"),
            row("Kept", "AWS::EKS::Addon", "sagemaker-hyperpod-eks-eks|kept", status="DELETE_SKIPPED"),
        ),
        described(
            HELM,
            row("HelmCustomResource", "AWS::CloudFormation::CustomResource", "2026/01/01/[$LATEST]abc"),
            row("HelmCustomResourceAccessEntry", "AWS::EKS::AccessEntry", f"{PRINCIPAL}|sagemaker-hyperpod-eks-eks"),
        ),
        described(CLUSTER, row("NewHyperPodCluster", "AWS::SageMaker::Cluster", ARN)),
    ]


def by_address(owned):
    return {each.address: each for each in owned}


def test_answers_of_several_stacks_are_read_as_one():
    owned = by_address(read_cloudformation(json.dumps(quick_setup())))
    assert owned[f"{CLUSTER}/NewHyperPodCluster"].ids == {ARN}
    assert owned[f"{EKS}/VpcCNIAddOn"].logical_id == "VpcCNIAddOn"
    assert owned[f"{EKS}/VpcCNIAddOn"].stack == EKS


def test_what_a_stack_has_deleted_or_let_go_of_is_not_its_any_more():
    found = by_address(read_cloudformation(json.dumps(quick_setup())))
    assert f"{EKS}/Old" not in found
    assert f"{EKS}/Kept" not in found


def test_ids_of_several_parts_are_joined_as_import_joins_them():
    found = by_address(read_cloudformation(json.dumps(quick_setup())))
    assert "sagemaker-hyperpod-eks-eks:vpc-cni" in found[f"{EKS}/VpcCNIAddOn"].ids
    entry = found[f"{HELM}/HelmCustomResourceAccessEntry"].ids
    assert f"sagemaker-hyperpod-eks-eks:{PRINCIPAL}" in entry
    assert not [each for each in entry if each.startswith("arn:")], "the role's ARN is not the entry's"


def test_a_pod_identity_association_is_known_by_its_import_id_too():
    arn = "arn:aws:eks:us-west-2:1:podidentityassociation/eks/a-12"
    [found] = read_cloudformation(json.dumps(described("s", row("P", "AWS::EKS::PodIdentityAssociation", arn))))
    assert found.ids == {arn, "eks,a-12"}


def test_a_resource_that_does_not_exist_yet_has_no_id():
    [found] = read_cloudformation(json.dumps(described("s", row("V", "AWS::EC2::VPC", "", status="CREATE_FAILED"))))
    assert found.ids == frozenset()


def test_a_list_of_summaries_needs_the_name_of_its_stack():
    answer = {"StackResourceSummaries": [row("VPC", "AWS::EC2::VPC", "vpc-1")]}
    wanted = [ManagedResource("cloudformation", "net/VPC", "AWS::EC2::VPC", frozenset({"vpc-1"}))]
    assert read_cloudformation(json.dumps(answer), stack="net") == wanted
    assert read_cloudformation(json.dumps(answer | {"StackName": "net"})) == wanted
    with pytest.raises(InputError, match="doesn't show which stack contains VPC"):
        read_cloudformation(json.dumps(answer))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("3", "not the resources of a stack"),
        ('{"StackResources": {}}', "not the resources of a stack"),
        ('{"StackResources": [1]}', "not the resources of a stack"),
        ("[]", "contains no resource"),
        ('{"StackResources": []}', "contains no resource"),
        ('{"StackResources": [{"StackName": "s"}]}', "without LogicalResourceId"),
    ],
)
def test_what_is_no_answer_is_refused_with_what_to_do(text, says):
    with pytest.raises(InputError, match=says) as caught:
        read_cloudformation(text, file="stacks.json")
    assert "stacks.json" in str(caught.value)
    assert "describe-stack-resources" in str(caught.value)


def made():
    """Create a stack with a nested stack, and return the client that created them."""
    buckets = boto3.client("s3", region_name="us-east-1")
    buckets.create_bucket(Bucket="templates")
    inner = {"Resources": {"VPC": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.192.0.0/16"}}}}
    buckets.put_object(Bucket="templates", Key="vpc.json", Body=json.dumps(inner))
    nest = {"TemplateURL": "https://templates.s3.amazonaws.com/vpc.json"}
    outer = {
        "Resources": {
            "VPCStack": {"Type": "AWS::CloudFormation::Stack", "Properties": nest},
            "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "hyperpod-bucket"}},
        }
    }
    client = boto3.client("cloudformation", region_name=REGION)
    client.create_stack(StackName=ROOT, TemplateBody=json.dumps(outer))
    return client


@pytest.fixture
def live(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with own_moto():
        yield made()


@contextmanager
def own_moto():
    """Mock AWS with a moto backend that only this thread uses.

    moto has one state per process. Endpoints of other tests in this process replace it every second.
    """
    state = MotoState()
    try:
        with state.active(), mock_aws():
            yield
    finally:
        state.close()


def test_endpoints_in_this_process_leave_the_stacks_of_a_test_alone(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with running_endpoint() as one, running_endpoint() as other:
        with own_moto():
            boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="mine")
            asked = [threading.Thread(target=thread.snapshot) for thread in (one, other)]
            for thread in asked:
                thread.start()
                thread.join(timeout=0.2)
            assert [thread["Name"] for thread in boto3.client("s3").list_buckets()["Buckets"]] == ["mine"]
            assert all(thread.is_alive() for thread in asked), "they wait meanwhile"
        for thread in asked:
            thread.join(timeout=HANGS)
        assert other.client("s3").list_buckets()["Buckets"] == []


def test_a_live_stack_is_read_with_the_stacks_in_it(live):
    stacks = read_stacks(live, ROOT)
    [vpc] = boto3.client("ec2", region_name=REGION).describe_vpcs(
        Filters=[{"Name": "cidr", "Values": ["10.192.0.0/16"]}]
    )["Vpcs"]
    [owned] = [each for each in stacks if each.type == "AWS::EC2::VPC"]
    assert owned.ids == {vpc["VpcId"]}
    assert by_address(stacks)[f"{ROOT}/Bucket"].ids == {"hyperpod-bucket"}
    assert cloudformation.nested(stacks)[owned.stack].address == f"{ROOT}/VPCStack"


def test_a_live_stack_may_be_named_by_its_arn(live):
    arn = live.describe_stacks(StackName=ROOT)["Stacks"][0]["StackId"]
    assert read_stacks(live, arn) == read_stacks(live, ROOT)


def asked(commands, verb):
    return [each for each in commands if f"cloudformation {verb} " in each]


def plan():
    owned = read_cloudformation(json.dumps(quick_setup()))
    found = by_address(owned)
    released = [found[f"{EKS}/VpcCNIAddOn"], found[f"{CLUSTER}/NewHyperPodCluster"]]
    kept = [each for each in owned if each not in released and each.type != cloudformation.STACK]
    return cloudformation.cloudformation_steps(released, kept=kept, above=cloudformation.nested(owned))


def test_retain_comes_before_the_import_and_taking_out_after_it():
    labels = {
        when: [
            command for step in plan() if step.when == when for command in asked(step.commands, "execute-change-set")
        ]
        for when in ("before import", "after import")
    }
    assert [f"--stack-name {EKS} --change-set-name hpkit-retain" in each for each in labels["before import"]].count(
        True
    ) == 1
    assert len(labels["before import"]) == 3, "the Helm stack lets go of nothing, and still must not uninstall"
    assert len(labels["after import"]) == 2
    assert all("hpkit-let-go" in each for each in labels["after import"])


def test_a_handler_is_retained_and_the_danger_is_said():
    [step] = [step for step in plan() if "HelmCustomResource" in step.description]
    assert "HelmCustomResourceAccessEntry" not in step.description
    assert "Retain" in step.description
    assert "uninstall a Helm chart" in step.description


def test_a_stack_that_would_be_empty_gets_something_that_stands_for_nothing():
    handles = {
        step.description.split(":")[0]: "WaitConditionHandle" in step.description
        for step in plan()
        if "from the template" in step.description
    }
    assert handles == {EKS: False, CLUSTER: True}


def test_a_change_set_is_read_before_it_is_executed():
    for step in plan():
        assert not (asked(step.commands, "create-change-set") and asked(step.commands, "execute-change-set"))


def test_only_the_root_is_protected_from_deletion():
    [command] = [each for step in plan() for each in asked(step.commands, "update-termination-protection")]
    assert command.endswith(f"--stack-name {ROOT}")


def test_the_advice_for_nested_stacks_is_said():
    assert any("--include-nested-stacks" in step.description for step in plan())
    alone = [ManagedResource("cloudformation", "s/V", "AWS::EC2::VPC", frozenset())]
    steps = cloudformation.cloudformation_steps(alone, kept=[], above={})
    assert not any("--include-nested-stacks" in step.description for step in steps)


def test_policies_deny_what_was_let_go_and_the_loss_of_the_nested_stack():
    commands = [each for step in plan() for each in asked(step.commands, "set-stack-policy")]
    assert len(commands) == 4
    assert commands[-1].startswith(f"aws cloudformation set-stack-policy --stack-name {ROOT} "), "the root comes last"
    statements = json.loads(commands[-1].split("'")[1])["Statement"]
    assert [each["Resource"] for each in statements if each["Effect"] == "Deny"] == [
        "LogicalResourceId/EKSClusterStack",
        "LogicalResourceId/HelmChartStack",
        "LogicalResourceId/HyperPodClusterStack",
    ]


def test_an_update_keeps_every_parameter_and_a_stack_without_any_has_none():
    [command] = [each for step in plan() for each in asked(step.commands, f"describe-stacks --stack-name {EKS}")]
    query = jmespath.compile(command.split("'")[1])
    told = {"Stacks": [{"Parameters": [{"ParameterKey": "A", "ParameterValue": "x"}]}]}
    assert query.search(told) == [{"ParameterKey": "A", "UsePreviousValue": True}]
    assert query.search({"Stacks": [{"StackName": EKS}]}) == []


def test_a_stack_in_itself_ends():
    loop = [
        ManagedResource(
            "cloudformation", "a/B", "AWS::CloudFormation::Stack", frozenset({"arn:aws:cloudformation:r:1:stack/b/u"})
        ),
        ManagedResource(
            "cloudformation", "b/A", "AWS::CloudFormation::Stack", frozenset({"arn:aws:cloudformation:r:1:stack/a/u"})
        ),
        ManagedResource("cloudformation", "b/V", "AWS::EC2::VPC", frozenset({"vpc-1"})),
    ]
    steps = cloudformation.cloudformation_steps(loop[2:], kept=[], above=cloudformation.nested(loop))
    assert any("V" in step.description for step in steps)


def test_nothing_to_let_go_needs_no_step():
    assert cloudformation.cloudformation_steps([], kept=[], above={}) == []
