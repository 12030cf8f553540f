"""The life of handson-dev on the real engine: unchanged, edited, drifted, protected, and destroyed."""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest
import yaml

from hpkit.clients.calls import Responses
from hpkit.clients.kubernetes import find_admission
from hpkit.preflight.admission import check_admission
from hpkit.preflight.calls import ADMISSION as ADMISSION_CALL
from hpkit.program.components.admission.policies import policies_of
from hpkit.program.recording import record
from hpkit.project import load, load_stack
from hpkit_local.supervisor.pulumi_stack import Stack
from tests.builders import RANKED
from tests.conftest import NIGHTLY
from tests.program.cloud import KUEUE, RBAC, ROOT
from tests.program.conftest import Edit
from tests.program.states import differences
from tests.running import eventually

pytestmark = pytest.mark.platform

MARIA = "arn:aws:iam::123456789012:role/maria-scientists"
RIGHTS = "hpkit-data-scientist"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def test_the_state_equals_the_recording(up):
    (plan,) = load_stack("handson-dev").plans.values()
    export = json.loads(up.read("stack", "export"))
    assert list(differences(export, record(plan))) == []
    for resource in export["deployment"]["resources"][1:]:
        frames = [frame.get("sourcePosition", "") for frame in resource["stackTrace"]]
        assert any("hpkit/program/components/" in frame for frame in frames), resource["urn"]


def each(op, *names):
    return dict.fromkeys(names, op)


def add_parts(data, dev):
    """Add zone, group, paused team, repositories, labels, priority classes and limit; move quotas at full capacity.

    The stack is protected from now on.
    """
    dev["protect"] = True
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
    # Because the stack is protected.
    **each("update", "Bucket:lifecycle", "EksCluster:cluster"),
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
    live.sm.update_cluster(ClusterName="handson", InstanceGroups=[{**same, "InstanceCount": 6}])


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


DRIFT = {name: op for expected in BY_HAND.values() for name, op in expected.items()}


def preflight(live, repository):
    """Return preflight's results for the admission of the teams' namespaces: subjects by status."""
    session = boto3.Session("local", "local", region_name="us-west-2")
    cluster = live.client("eks").describe_cluster(name="handson-dev")["cluster"]
    recording = record(load(repository.folder / "stacks" / "handson.yaml", "dev").plans["dev"])
    results = check_admission(recording, Responses({ADMISSION_CALL.key: find_admission(session, cluster)}))
    return sorted((result.status, result.what) for result in results)


@pytest.fixture(scope="module")
def edited(up, repository, live):
    """Change the platform by hand, then edit its file and run `up --refresh`; return the edit and what was seen."""
    edit, in_force = Edit(up, repository, live), preflight(live, repository)
    for by_hand in BY_HAND:
        by_hand(live)
    drifted, found = preflight(live, repository), up.preview("--refresh")
    edit(add_parts)
    done = up.up_steps("--refresh")
    yield SimpleNamespace(edit=edit, in_force=in_force, drifted=drifted, found=found, done=done)
    if edit.pending:
        edit.back()


def test_refresh_finds_every_manual_change(edited):
    assert edited.in_force == [("ok", "admission of the teams' namespaces")]
    assert edited.drifted == [
        ("changed", "Namespace hyperpod-ns-john"),
        ("changed", "ValidatingAdmissionPolicy hpkit-team-pods"),
        ("changed", "ValidatingAdmissionPolicyBinding hpkit-member-work"),
        ("changed", "ValidatingAdmissionPolicyBinding hpkit-team-jobs"),
    ]
    assert edited.found == DRIFT


def test_up_reverts_manual_changes_and_an_edit_changes_only_its_resources(edited, up, live, repository):
    assert edited.done == {**each("create", *ADDED), **CHANGED, **DRIFT}
    assert seen(live) == SEEN
    assert preflight(live, repository) == edited.in_force
    (vpc,) = live.client("ec2").describe_vpcs(Filters=[{"Name": "tag:Name", "Values": ["handson-dev"]}])["Vpcs"]
    assert {"Key": "cost-center", "Value": "ml"} in vpc["Tags"]
    eks = live.client("eks").describe_cluster(name="handson-dev")["cluster"]
    assert (eks["tags"]["cost-center"], eks["deletionProtection"]) == ("ml", True)
    if NIGHTLY:
        assert up.preview("--refresh") == {}


def remove_a_team(data, environment):
    data["teams"].pop()
    environment["governance"]["allocations"].popitem()


def rename_a_group(data, environment):
    environment["cluster"]["instanceGroups"][0]["name"] = "gpus"


def rename_the_cluster(data, environment):
    environment["cluster"]["name"] = "other"


def move_the_vpc(data, environment):
    environment["network"] = json.loads(json.dumps(environment["network"]).replace("10.192.", "10.200."))


def move_the_groups(data, environment):
    environment["network"]["zones"][0]["nodeCidr"] = "10.192.192.0/18"


def move_and_rename_the_groups(data, environment):
    move_the_groups(data, environment)
    for group in environment["cluster"]["instanceGroups"]:
        group["name"] += "2"


def name_no_owner(data, environment):
    """Leave out a tag that a policy requires."""


ALLOW = re.compile(r"to allow it once, set (`.*?`(?: and `.*?`)*) in ")


def written(data, advice):
    """Return the file with all settings that messages have in backquotes."""
    edited = copy.deepcopy(data)
    dev = edited["environments"]["dev"]
    for setting in re.findall(r"`(.*?)`", advice):
        for key, value in yaml.safe_load(setting).items():
            there = dev.get(key) or {}
            merged = isinstance(value, dict) and {k: [*there.get(k, ()), *value.get(k, ())] for k in {**there, **value}}
            dev[key] = merged or value
    return edited


# Other rejections: recordings in tests/changes, the plugin in tests/provider, previews in test_engine_changes.py.
REJECTED, GOAL = {}, [rename_the_cluster]
if NIGHTLY:
    REJECTED = {
        remove_a_team: "ChangeGuard keep-parts: This change would",
        rename_a_group: "Cluster cluster: This change would DELETE the instance group",
        move_the_groups: "ChangeGuard keep-groups: ",
        move_the_vpc: "ChangeGuard keep-groups: handson-dev: an EKS cluster can't move",
        name_no_owner: "mandatory-tags: ",
    }
    GOAL += [remove_a_team, move_and_rename_the_groups]
REPLACED = (
    *("REPLACE the HyperPod cluster handson", "clusterName: handson → other", "nodes: gpu 5 × ml.g5.12xlarge"),
    *("teams: john, maria, smith", "`allowReplace: [cluster]` in environments.dev of stacks/handson.yaml"),
)


def test_a_rejected_up_changes_nothing_and_its_printed_advice_is_enough(
    edited, up, instance, repository, live, tmp_path
):
    config = tmp_path / "policy.json"
    config.write_text(json.dumps({"mandatory-tags": {"enforcementLevel": "mandatory", "keys": ["owner"]}}))
    policed = ("--policy-pack", str(ROOT / "policies"), "--policy-pack-config", str(config))
    stack = Stack(instance, "handson-dev", root=repository.folder)
    stack.environment = up.environment
    there = yaml.safe_load((repository.folder / "stacks" / "handson.yaml").read_text(encoding="utf-8"))

    def write(*changes, tags=()):
        data = copy.deepcopy(there)
        for change in changes:
            change(data, data["environments"]["dev"])
        data["tags"].update(tags)
        repository.write("handson", data)
        return data

    state, before, said, shown = up.read("stack", "export"), live.settled(), [], []
    for change, expected in REJECTED.items():
        # Each resource with tags would be updated.
        write(change, tags={"cost-center": "other"})
        assert stack.run("up", *(policed if change is name_no_owner else ()), show=shown.append) != 0
        assert shown[-1].done == {}
        said += shown[-1].errors
        assert any(expected in each for each in shown[-1].errors)
    assert live.settled() == before
    assert json.loads(up.read("stack", "export")) == json.loads(state)

    # Without a preview before it, too.
    before = live.everything()
    write(rename_the_cluster)
    refused = up.up(check=False)
    assert refused.returncode != 0
    said.append(refused.stdout + refused.stderr)
    assert [text for text in REPLACED if text not in said[-1]] == []
    assert live.everything() == before

    goal = write(*GOAL)
    advice = [found[1] for found in map(ALLOW.search, said) if found]
    repository.write("handson", written(goal, " ".join(advice)))
    assert up.preview()["Cluster:cluster"] == "replace"


def test_reverting_the_edit_leaves_no_trace(edited, live, repository):
    # The provider gets the name of the removed team.
    edited.edit.back({**each("delete", *ADDED), **CHANGED, "hyperpod:hyperpod": "update"})
    assert preflight(live, repository) == edited.in_force


def destroy(up, repository, *arguments, answer=""):
    """Run `hpkit aws destroy` as a user does, with the settings of the instance."""
    command = [Path(sys.executable).parent / "hpkit", "aws", "destroy", "--stack", "handson-dev", *arguments]
    return subprocess.run(
        command, cwd=repository.folder, env=up.environment, input=answer, capture_output=True, text=True, timeout=300
    )


# The engine's own destroy takes a component out of the state before it finds what is protected.
@pytest.mark.platform(taken_away=2)
def test_an_unconfirmed_destroy_deletes_nothing(up, repository, live):
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


# By day, tests/test_walk.py destroys a stack.
@pytest.mark.nightly
@pytest.mark.platform(taken_away=2)
def test_a_confirmed_destroy_deletes_the_stack_and_leaves_nothing(up, repository, clouds):
    done = destroy(up, repository, "--", "--skip-preview", *up.settings_options, answer="handson-dev\n")
    assert done.returncode == 0, done.stdout + done.stderr
    eventually(clouds.is_empty, "everything is deleted")
