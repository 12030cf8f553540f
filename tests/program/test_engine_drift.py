"""A preview with refresh finds manual changes, and an `up` with refresh reverts them."""

import json

import boto3
import pytest
import yaml

from hpkit.clients.calls import Responses
from hpkit.clients.kubernetes import find_admission
from hpkit.preflight.admission import check_admission
from hpkit.preflight.calls import ADMISSION as ADMISSION_CALL
from hpkit.program.recording import record
from hpkit.project import load
from tests.program.cloud import RBAC, ROOT
from tests.running import eventually

pytestmark = pytest.mark.platform

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
EKS = "arn:aws:eks:us-west-2:123456789012:cluster/handson-dev"


def lower_a_quota(live):
    quota = live.quotas()["john"]
    config = quota["ComputeQuotaConfig"]
    config["ComputeQuotaResources"][0]["Count"] = 2
    live.sm.update_compute_quota(
        ComputeQuotaId=quota["ComputeQuotaId"],
        TargetVersion=quota["ComputeQuotaVersion"],
        ComputeQuotaConfig=config,
    )


def delete_a_quota(live):
    live.sm.delete_compute_quota(ComputeQuotaId=live.quotas()["smith"]["ComputeQuotaId"])
    eventually(lambda: "smith" not in live.quotas(), "the team's namespace is gone, and so is the quota")


def delete_a_role_binding(live):
    live.api.delete(f"{RBAC}/namespaces/hyperpod-ns-john/rolebindings/hpkit-data-scientist")


def lower_a_level(live):
    labels = {"pod-security.kubernetes.io/enforce": "privileged", "pod-security.kubernetes.io/warn": None}
    live.api.merge("/api/v1/namespaces/hyperpod-ns-john", {"metadata": {"labels": labels}})


def weaken_a_policy(live):
    live.api.merge(f"{ADMISSION}/validatingadmissionpolicies/hpkit-team-pods", {"spec": {"failurePolicy": "Ignore"}})


def bind_a_policy_as_a_warning(live):
    actions = {"spec": {"validationActions": ["Warn"]}}
    live.api.merge(f"{ADMISSION}/validatingadmissionpolicybindings/hpkit-team-jobs", actions)


def unbind_a_policy(live):
    live.api.delete(f"{ADMISSION}/validatingadmissionpolicybindings/hpkit-member-work")


def tag_the_vpc(live):
    live.client("ec2").create_tags(Resources=[vpc(live)], Tags=[{"Key": "cost-center", "Value": "somebody"}])


def vpc(live):
    named = [{"Name": "tag:Name", "Values": ["handson-dev"]}]
    (found,) = live.client("ec2").describe_vpcs(Filters=named)["Vpcs"]
    return found["VpcId"]


def untag_eks(live):
    live.client("eks").untag_resource(resourceArn=EKS, tagKeys=["cost-center"])


def grow_a_group(live):
    (group,) = (each for each in live.cluster()["InstanceGroups"] if each["InstanceGroupName"] == "gpu")
    same = {key: group[key] for key in ("InstanceGroupName", "InstanceType", "ExecutionRole", "LifeCycleConfig")}
    live.sm.update_cluster(ClusterName="handson", InstanceGroups=[{**same, "InstanceCount": 5}])


def close_the_nodes_off(live):
    ec2 = live.client("ec2")
    named = [{"Name": "group-name", "Values": ["handson-dev-nodes"]}]
    (group,) = ec2.describe_security_groups(Filters=named)["SecurityGroups"]
    anywhere = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    ec2.revoke_security_group_egress(GroupId=group["GroupId"], IpPermissions=[anywhere])


def add_a_priority_class(live):
    (policy,) = live.policies()
    config = policy["SchedulerConfig"]
    config["PriorityClasses"] = [{"Name": "mine", "Weight": 99}]
    live.sm.update_cluster_scheduler_config(
        ClusterSchedulerConfigId=policy["ClusterSchedulerConfigId"],
        TargetVersion=policy["ClusterSchedulerConfigVersion"],
        SchedulerConfig=config,
    )


BY_HAND = {
    lower_a_quota: {"ComputeQuota:john": "update"},
    # The service deletes the team's namespace too.
    delete_a_quota: {
        "ComputeQuota:smith": "create",
        "LimitRange:smith": "create",
        "NamespacePatch:smith": "create",
        "Role:smith": "create",
        "RoleBinding:smith": "create",
    },
    delete_a_role_binding: {"RoleBinding:john": "create"},
    lower_a_level: {"NamespacePatch:john": "update"},
    weaken_a_policy: {"ValidatingAdmissionPolicy:hpkit-team-pods": "update"},
    bind_a_policy_as_a_warning: {"ValidatingAdmissionPolicyBinding:hpkit-team-jobs": "replace"},
    unbind_a_policy: {"ValidatingAdmissionPolicyBinding:hpkit-member-work": "create"},
    tag_the_vpc: {"Vpc:vpc": "update"},
    untag_eks: {"EksCluster:cluster": "update"},
    grow_a_group: {"Cluster:cluster": "update"},
    add_a_priority_class: {"ClusterSchedulerConfig:policy": "update"},
    # This test is last: from now on, Kueue's work waits until `up` has created the rule again.
    close_the_nodes_off: {"SecurityGroupEgressRule:nodes-to-anywhere": "create"},
}


def told_by_preflight(live):
    """Return preflight's results for the admission of the teams' namespaces: subjects by status."""
    session = boto3.Session("local", "local", region_name="us-west-2")
    cluster = live.client("eks").describe_cluster(name="handson-dev")["cluster"]
    recording = record(load(ROOT / "stacks" / "handson.yaml", "dev").plans["dev"])
    results = check_admission(recording, Responses({ADMISSION_CALL.key: find_admission(session, cluster)}))
    return sorted((each.status, each.what) for each in results)


IN_FORCE = [("ok", "admission of the teams' namespaces")]


@pytest.mark.nightly
def test_drift_is_found_one_by_one_and_mended_at_once(up, live):
    before = live.settled()
    assert told_by_preflight(live) == IN_FORCE
    for change in BY_HAND:
        change(live)
    assert live.settled() != before
    assert told_by_preflight(live) == [
        ("changed", "Namespace hyperpod-ns-john"),
        ("changed", "ValidatingAdmissionPolicy hpkit-team-pods"),
        ("changed", "ValidatingAdmissionPolicyBinding hpkit-member-work"),
        ("changed", "ValidatingAdmissionPolicyBinding hpkit-team-jobs"),
    ]
    found = up.preview("--refresh")
    assert found == {name: op for expected in BY_HAND.values() for name, op in expected.items()}
    up.up("--refresh")
    assert live.settled() == before
    assert told_by_preflight(live) == IN_FORCE
    tags = live.client("eks").describe_cluster(name="handson-dev")["cluster"]["tags"]
    assert tags["cost-center"] == "ml"
    (network,) = live.client("ec2").describe_vpcs(VpcIds=[vpc(live)])["Vpcs"]
    assert {"Key": "cost-center", "Value": "ml"} in network["Tags"]
    assert up.preview("--refresh") == {}


VIEWER = "handson-viewer"
# These are told the caller's identity, which changes nothing else.
PROVIDERS = {"aws:aws", "hyperpod:hyperpod", "kubernetes:kubernetes"}


@pytest.fixture
def viewer(up, repository, live):
    """Create a role in the account, and return its ARN and the environment in which the stack uses that role."""
    iam = live.client("iam")
    trust = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    arn = iam.create_role(RoleName=VIEWER, AssumeRolePolicyDocument=document)["Role"]["Arn"]
    file = repository.folder / "stacks" / "Pulumi.handson-dev.yaml"
    before = file.read_text(encoding="utf-8")

    def work_as_it():
        settings = yaml.safe_load(before)
        settings["config"]["aws:assumeRoles"] = [{"roleArn": arn}]
        file.write_text(yaml.safe_dump(settings), encoding="utf-8")

    def work_as_before():
        file.write_text(before, encoding="utf-8")

    yield arn, work_as_it, work_as_before
    work_as_before()
    iam.delete_role(RoleName=VIEWER)


@pytest.mark.nightly
def test_a_viewer_looks_for_drift_and_changes_nothing(edit, viewer, up, live):
    arn, work_as_it, work_as_before = viewer
    work_as_it()
    unknown = up.run("preview", check=False)
    assert unknown.returncode != 0, "a role without an access entry cannot read Kueue's settings"
    work_as_before()

    edit(lambda _, dev: dev["eks"].update(viewers=[arn]))
    up.up()
    seen = live.settled()
    work_as_it()
    assert up.preview("--refresh").keys() <= PROVIDERS
    refused = up.up(check=False)
    assert refused.returncode != 0
    assert f"{VIEWER}/" in refused.stdout + refused.stderr
    assert "is listed in eks.viewers of handson-dev" in refused.stdout + refused.stderr
    assert live.settled() == seen
    # What it can't try on the API server is shown as the program reports it.
    edit(
        lambda _, dev: (dev["eks"].update(viewers=[arn]), dev["governance"].update(topologyAwareScheduling="Disabled"))
    )
    assert up.preview()["ConfigMapPatch:kueue-config"] == "update"
