"""The life of handson-dev on the real engine: unchanged, edited, drifted, protected, and destroyed."""

import json
import subprocess
import sys
from pathlib import Path

import boto3
import pytest
import urllib3
import yaml

from hpkit.changes import change
from hpkit.clients.calls import Responses
from hpkit.clients.kubernetes import find_admission
from hpkit.preflight.admission import check_admission
from hpkit.preflight.calls import ADMISSION as ADMISSION_CALL
from hpkit.program.components.admission.policies import policies_of
from hpkit.program.recording import record
from hpkit.project import load, load_stack
from tests.builders import RANKED
from tests.changes.advice import runs
from tests.program.cloud import KUEUE, RBAC, ROOT
from tests.program.recorder import recorded_from
from tests.program.states import differences
from tests.running import eventually

pytestmark = pytest.mark.platform

MARIA = "arn:aws:iam::123456789012:role/maria-scientists"
RIGHTS = "hpkit-data-scientist"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def test_the_state_equals_the_recording_and_nothing_changes(up):
    (plan,) = load_stack("handson-dev").plans.values()
    export = json.loads(up.read("stack", "export"))
    assert list(differences(export, record(plan))) == []
    for resource in export["deployment"]["resources"][1:]:
        frames = [frame.get("sourcePosition", "") for frame in resource["stackTrace"]]
        assert any("hpkit/program/components/" in frame for frame in frames), resource["urn"]
    assert up.preview() == {}


def each(op, *names):
    return dict.fromkeys(names, op)


def add_parts(data, dev):
    """Add zone, group, paused team, repositories, labels, priority classes and limit; move quotas at full capacity."""
    dev["network"]["zones"].insert(1, {"availabilityZone": "us-west-2c", "nodeCidr": "10.3.0.0/16"})
    dev["network"]["zones"][2]["nodeCidr"] = "10.4.0.0/16"
    dev["cluster"]["instanceGroups"][0] |= {"instanceCount": 5, "labels": {"example.com/rack": "left"}}
    group = {"name": "cpu", "instanceType": "ml.m5.4xlarge", "instanceCount": 1, "availabilityZone": "us-west-2c"}
    dev["cluster"]["instanceGroups"].insert(1, group)
    data["teams"][0]["registry"] = ["train"]
    data["teams"].insert(
        1,
        {
            "name": "maria",
            "fairShareWeight": 50,
            "members": [MARIA],
            "activationState": "Disabled",
            "consoleAccess": True,
        },
    )
    limit = {"instanceType": "ml.g5.12xlarge", "accelerators": 3}
    data["teams"][2]["sharing"] = {"strategy": "LendAndBorrow", "absoluteBorrowLimits": [limit]}
    dev["registry"] = {"pullFrom": ["shared/*"], "keepImages": 50}
    john, smith = dev["governance"]["allocations"].values()
    john[0]["count"], smith[0]["count"] = 1, 4
    maria = [{"instanceType": "ml.m5.4xlarge", "count": 1}]
    dev["governance"]["allocations"] = {"john": john, "maria": maria, "smith": smith}
    data["clusterPolicy"] |= RANKED


# A range outside the VPC's first range.
RANGE = "VpcIpv4CidrBlockAssociation"
ADDED = (
    *(f"{kind}:nodes-us-west-2c" for kind in ("Route", "RouteTable", "Subnet", "RouteTableAssociation", RANGE)),
    f"{RANGE}:nodes-us-west-2b",
    *(f"AccessEntry:{MARIA.partition('::')[2]}", "ComputeQuota:maria"),
    *(
        f"AccessPolicyAssociation:{MARIA.partition('::')[2]}/AmazonSagemakerHyperpod{scope}Policy"
        for scope in ("Training", "UserCluster")
    ),
    *(f"{kind}:maria" for kind in ("LimitRange", "NamespacePatch", "ResourceQuota", "Role", "RoleBinding")),
    *("Registry:registry", "Repository:john/train", "LifecyclePolicy:john/train"),
)
CHANGED = {
    **each("update", "Cluster:cluster", "ClusterSchedulerConfig:policy", "ComputeQuota:john", "ComputeQuota:smith"),
    **each("update", "ResourceQuota:john", "ResourceQuota:smith"),
    **each(
        "update",
        "Readiness:capacity",
        "Readiness:nodes",
        "RolePolicy:nodes",
        "VpcEndpoint:endpoint-s3",
        f"ClusterRoleBinding:{RIGHTS}",
    ),
    # Each policy names the namespaces of teams with members.
    **each("update", *(f"ValidatingAdmissionPolicy:{policy.name}" for policy in policies_of(()))),
    **each("replace", "Subnet:nodes-us-west-2b", "RouteTableAssociation:nodes-us-west-2b"),
}


def seen(live):
    """Return the parts of the live platform that `add_parts` is about."""
    subnets = live.client("ec2").describe_subnets()["Subnets"]
    ranges = {entry["SubnetId"]: entry["CidrBlock"] for entry in subnets}
    groups = {group["InstanceGroupName"]: group for group in live.cluster()["InstanceGroups"]}
    labels = [item["metadata"]["labels"] for item in live.api.items("/api/v1/nodes")]
    queues = live.api.items(f"{KUEUE}/localqueues")
    bindings = [item for item in live.api.items(f"{RBAC}/rolebindings") if item["metadata"]["name"] == RIGHTS]
    repositories = live.client("ecr").describe_repositories()["repositories"]
    return {
        "quotas": {
            team: quota["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"]
            for team, quota in live.quotas().items()
        },
        "GPUs to borrow": {
            queue["metadata"]["name"].split("-")[2]: row["borrowingLimit"]
            for queue in live.api.items(f"{KUEUE}/clusterqueues")
            for row in queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
            if row["name"] == "nvidia.com/gpu"
        },
        "paused": [
            queue["metadata"]["name"]
            for queue in live.api.items(f"{KUEUE}/clusterqueues")
            if queue["spec"]["stopPolicy"] != "None"
        ],
        "groups": {
            name: (group["CurrentCount"], [ranges[subnet] for subnet in group["OverrideVpcConfig"]["Subnets"]])
            for name, group in groups.items()
        },
        "labelled nodes": sum(found.get("example.com/rack") == "left" for found in labels),
        "priorities": {
            item["metadata"]["name"]: item["value"] for item in live.api.items(f"{KUEUE}/workloadpriorityclasses")
        },
        "queues": {item["metadata"]["namespace"] for item in queues},
        "bound": {item["metadata"]["namespace"]: item["subjects"][0]["name"] for item in bindings},
        "access entry": MARIA in live.client("eks").list_access_entries(clusterName="handson-dev")["accessEntries"],
        "repositories": {entry["repositoryName"]: entry["imageTagMutability"] for entry in repositories},
    }


FIRST = "10.192.64.0/18"
TEAMS = ("john", "maria", "smith")
SEEN = {
    "quotas": {"john": 1, "maria": 1, "smith": 4},
    "GPUs to borrow": {"john": "2", "maria": "0", "smith": "3"},
    "paused": ["hyperpod-ns-maria-clusterqueue"],
    "groups": {"gpu": (5, [FIRST]), "cpu": (1, ["10.3.0.0/16"]), "system": (1, [FIRST])},
    "labelled nodes": 5,
    "priorities": {"training-priority": 80, "experiment-priority": 40},
    "queues": {f"hyperpod-ns-{name}" for name in TEAMS},
    "bound": {f"hyperpod-ns-{name}": f"hyperpod:team:{name}" for name in TEAMS},
    "access entry": True,
    "repositories": {"handson-dev/john/train": "IMMUTABLE"},
}


def lower_a_quota(live):
    quota = live.quotas()["john"]
    config = quota["ComputeQuotaConfig"]
    config["ComputeQuotaResources"][0]["Count"] = 2
    live.sm.update_compute_quota(
        ComputeQuotaId=quota["ComputeQuotaId"], TargetVersion=quota["ComputeQuotaVersion"], ComputeQuotaConfig=config
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
    (found,) = live.client("ec2").describe_vpcs(Filters=[{"Name": "tag:Name", "Values": ["handson-dev"]}])["Vpcs"]
    live.client("ec2").create_tags(Resources=[found["VpcId"]], Tags=[{"Key": "cost-center", "Value": "somebody"}])


def untag_eks(live):
    arn = "arn:aws:eks:us-west-2:123456789012:cluster/handson-dev"
    live.client("eks").untag_resource(resourceArn=arn, tagKeys=["cost-center"])


def grow_a_group(live):
    (group,) = (found for found in live.cluster()["InstanceGroups"] if found["InstanceGroupName"] == "gpu")
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
    delete_a_quota: each(
        "create",
        *(f"{kind}:smith" for kind in ("ComputeQuota", "LimitRange", "NamespacePatch")),
        *(f"{kind}:smith" for kind in ("ResourceQuota", "Role", "RoleBinding")),
    ),
    delete_a_role_binding: {"RoleBinding:john": "create"},
    lower_a_level: {"NamespacePatch:john": "update"},
    weaken_a_policy: {"ValidatingAdmissionPolicy:hpkit-team-pods": "update"},
    bind_a_policy_as_a_warning: {"ValidatingAdmissionPolicyBinding:hpkit-team-jobs": "replace"},
    unbind_a_policy: {"ValidatingAdmissionPolicyBinding:hpkit-member-work": "create"},
    tag_the_vpc: {"Vpc:vpc": "update"},
    untag_eks: {"EksCluster:cluster": "update"},
    grow_a_group: {"Cluster:cluster": "update"},
    add_a_priority_class: {"ClusterSchedulerConfig:policy": "update"},
    # This is last: from now on, Kueue's work waits until `up` has created the rule again.
    close_the_nodes_off: {"SecurityGroupEgressRule:nodes-to-anywhere": "create"},
}


def preflight(live):
    """Return preflight's results for the admission of the teams' namespaces: subjects by status."""
    session = boto3.Session("local", "local", region_name="us-west-2")
    cluster = live.client("eks").describe_cluster(name="handson-dev")["cluster"]
    recording = record(load(ROOT / "stacks" / "handson.yaml", "dev").plans["dev"])
    results = check_admission(recording, Responses({ADMISSION_CALL.key: find_admission(session, cluster)}))
    return sorted((result.status, result.what) for result in results)


def test_refresh_finds_every_manual_change_and_up_reverts_it(up, live):
    before = live.settled()
    in_force = preflight(live)
    assert in_force == [("ok", "admission of the teams' namespaces")]
    for by_hand in BY_HAND:
        by_hand(live)
    assert preflight(live) == [
        ("changed", "Namespace hyperpod-ns-john"),
        ("changed", "ValidatingAdmissionPolicy hpkit-team-pods"),
        ("changed", "ValidatingAdmissionPolicyBinding hpkit-member-work"),
        ("changed", "ValidatingAdmissionPolicyBinding hpkit-team-jobs"),
    ]
    found = up.preview("--refresh")
    assert found == {name: op for expected in BY_HAND.values() for name, op in expected.items()}
    up.up("--refresh")
    assert live.settled() == before
    assert preflight(live) == in_force
    tags = live.client("eks").describe_cluster(name="handson-dev")["cluster"]["tags"]
    assert tags["cost-center"] == "ml"
    assert up.preview("--refresh") == {}


def test_an_edit_changes_only_its_resources_and_reverting_it_leaves_no_trace(up, edit, live):
    edit(add_parts)
    assert up.preview() == {**each("create", *ADDED), **CHANGED}
    up.up()
    assert seen(live) == SEEN
    # The provider gets the name of the removed team.
    edit.back({**each("delete", *ADDED), **CHANGED, "hyperpod:hyperpod": "update"})


def remove_parts(data, dev):
    del data["teams"][1], dev["governance"]["allocations"]["smith"]
    dev["governance"]["allocations"]["john"][0]["count"] = 4


@pytest.mark.nightly
def test_the_engine_asks_only_for_what_the_review_advises(up, edit, live, repository):
    base, head = repository.read("handson"), repository.read("handson")
    remove_parts(head, head["environments"]["dev"])
    found = change(recorded_from(base), recorded_from(head))
    advice = [(decision.subject, decision.message) for decision in found.decisions if decision.rejected]
    edit(remove_parts)
    refused = up.run("preview", check=False)
    assert refused.returncode != 0
    advised = "`allowDelete: {teams: [smith]}`"
    assert advised in refused.stdout + refused.stderr
    assert [advised in message for _, message in advice] == [True]
    for _, file in runs(base, head, "dev", advice):
        edit(lambda data, _, file=file: data.update(file))
        assert "doesn't fit" not in up.run("preview").stdout
        up.up()
    assert seen(live)["quotas"] == {"john": 4}
    assert "hyperpod-ns-smith" not in {item["metadata"]["name"] for item in live.api.items("/api/v1/namespaces")}
    assert up.preview() == {}


@pytest.mark.nightly
def test_a_lower_service_quota_keeps_the_nodes_and_refuses_more(edit, up, live):
    def sizes(gpu, john):
        def resize(_, dev):
            dev["cluster"]["instanceGroups"][0]["instanceCount"] = gpu
            dev["governance"]["allocations"]["john"][0]["count"] = john

        return resize

    def cut(quota):
        urllib3.request("POST", f"{live.url}/_hpkit/faults", json={"instance-quota": quota})

    cut("3@ml.g5.12xlarge")
    try:
        assert up.preview("--refresh") == {}
        edit(sizes(5, 3))
        refused = up.up(check=False)
        assert refused.returncode != 0
        for words in ("ResourceLimitExceeded", "ml.g5.12xlarge for cluster usage", "request a higher SageMaker quota"):
            assert words in refused.stdout + refused.stderr
        assert seen(live)["groups"]["gpu"][0] == 4
        edit(sizes(3, 2))
        up.up()
        assert seen(live)["groups"]["gpu"][0] == 3
    finally:
        cut(None)


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
def test_a_viewer_previews_drift_and_changes_nothing(edit, viewer, up, live):
    arn, work_as_it, work_as_before = viewer
    work_as_it()
    unknown = up.run("preview", check=False)
    assert unknown.returncode != 0, "a role without an access entry cannot read Kueue's settings"
    work_as_before()

    edit(lambda _, dev: dev["eks"].update(viewers=[arn]))
    up.up()
    before = live.settled()
    work_as_it()
    assert up.preview("--refresh").keys() <= PROVIDERS
    refused = up.up(check=False)
    assert refused.returncode != 0
    assert f"{VIEWER}/" in refused.stdout + refused.stderr
    assert "is listed in eks.viewers of handson-dev" in refused.stdout + refused.stderr
    assert live.settled() == before
    # What it can't try on the API server is shown as the program reports it.
    edit(
        lambda _, dev: (dev["eks"].update(viewers=[arn]), dev["governance"].update(topologyAwareScheduling="Disabled"))
    )
    assert up.preview()["ConfigMapPatch:kueue-config"] == "update"


NODES = "gpu 4 × ml.g5.12xlarge"


# Other rejections: recordings in tests/changes, the plugin in tests/provider, previews in test_engine_changes.py.
def test_a_change_that_replaces_a_protected_resource_is_refused(up, edit, live):
    expected = (
        *("REPLACE the HyperPod cluster handson", "clusterName: handson → other", f"nodes: {NODES}"),
        *("teams: john, smith", "`allowReplace: [cluster]` in environments.dev of stacks/handson.yaml"),
    )
    before = live.everything()
    edit(lambda _, dev: dev["cluster"].update(name="other"))
    for verb in ("preview", "up"):
        refused = up.run("preview", check=False) if verb == "preview" else up.up(check=False)
        said = refused.stdout + refused.stderr
        assert refused.returncode != 0
        assert [text for text in expected if text not in said] == []
    assert live.everything() == before
    edit.undo()


def destroy(up, repository, *arguments, answer=""):
    """Run `hpkit aws destroy` as a user does, with the settings of the instance."""
    command = [Path(sys.executable).parent / "hpkit", "aws", "destroy", "--stack", "handson-dev", *arguments]
    return subprocess.run(
        command, cwd=repository.folder, env=up.environment, input=answer, capture_output=True, text=True, timeout=300
    )


@pytest.mark.platform(taken_away=2)
def test_only_a_confirmed_destroy_deletes_the_stack_and_it_leaves_nothing(up, repository, live, clouds):
    before = live.everything()
    refused = up.run("destroy", "--yes", "--skip-preview", check=False)
    assert refused.returncode != 0
    assert "protected" in refused.stdout + refused.stderr
    refused = destroy(up, repository, answer="handson\n")
    assert refused.returncode == 1
    assert 'nothing was deleted: "handson" isn\'t handson-dev' in refused.stderr
    for text in ("gpu: 4 × ml.g5.12xlarge", "the quotas of 2 teams: john, smith", "the VPC: vpc-"):
        assert text in refused.stdout
    assert live.everything() == before
    done = destroy(up, repository, "--", "--skip-preview", *up.settings_options, answer="handson-dev\n")
    assert done.returncode == 0, done.stdout + done.stderr
    eventually(clouds.is_empty, "everything is deleted")
