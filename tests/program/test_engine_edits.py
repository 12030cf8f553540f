"""Editing a live platform: only the edit's resources change, and reverting it leaves no trace."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import urllib3

from hpkit.changes import change
from hpkit.program.components.admission import policies_of
from tests.builders import RANKED
from tests.changes.advice import runs
from tests.cli.invoke import hpkit
from tests.program.cloud import KUEUE, RBAC, ROOT
from tests.program.recorder import recorded_from

pytestmark = pytest.mark.platform

MARIA = "arn:aws:iam::123456789012:role/maria-scientists"
RIGHTS = "hpkit-data-scientist"


@dataclass(frozen=True)
class Case:
    """The edit, the expected previews of it and of its reverse, and checks of the live platform."""

    change: Callable
    there: dict
    back: dict
    look: Callable
    seen: dict


def settings(data, dev):
    dev["governance"]["allocations"]["john"][0]["count"] = 1
    dev["governance"]["allocations"]["smith"][0]["count"] = 4
    dev["cluster"]["instanceGroups"][0] |= {"instanceCount": 5, "labels": {"example.com/rack": "left"}}
    data["clusterPolicy"] |= RANKED


def see_settings(live):
    (group,) = (each for each in live.cluster()["InstanceGroups"] if each["InstanceGroupName"] == "gpu")
    labels = [each["metadata"]["labels"] for each in live.api.items("/api/v1/nodes")]
    return {
        "quotas": counts(live),
        "nodes": (group["TargetCount"], group["CurrentCount"]),
        "labelled": sum(each.get("example.com/rack") == "left" for each in labels),
        "priorities": {
            each["metadata"]["name"]: each["value"] for each in live.api.items(f"{KUEUE}/workloadpriorityclasses")
        },
    }


def counts(live):
    return {
        team: quota["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"] for team, quota in live.quotas().items()
    }


def a_team(data, dev):
    data["teams"].insert(1, {"name": "maria", "fairShareWeight": 50, "members": [MARIA]})
    john, smith = dev["governance"]["allocations"].values()
    maria = [{"instanceType": "ml.m5.4xlarge", "count": 1}]
    dev["governance"]["allocations"] = {"john": john, "maria": maria, "smith": smith}


def see_teams(live):
    def rights(kind):
        return [each for each in live.api.items(f"{RBAC}/{kind}") if each["metadata"]["name"] == RIGHTS]

    (everybody,) = rights("clusterrolebindings")
    queues = live.api.items(f"{KUEUE}/localqueues")
    return {
        "quotas": counts(live),
        "queues": {each["metadata"]["namespace"]: each["spec"]["clusterQueue"] for each in queues},
        "bound": {each["metadata"]["namespace"]: each["subjects"][0]["name"] for each in rights("rolebindings")},
        "everywhere": {each["name"] for each in everybody["subjects"]},
        "entry": MARIA in live.client("eks").list_access_entries(clusterName="handson-dev")["accessEntries"],
    }


def a_registry(data, dev):
    data["teams"][0]["registry"] = ["train", "serve/large"]
    dev["registry"] = {"pullFrom": ["shared/*"], "keepImages": 50}


def see_repositories(live):
    ecr = live.client("ecr")
    repositories = {each["repositoryName"]: each for each in ecr.describe_repositories()["repositories"]}
    rules = {
        name: json.loads(ecr.get_lifecycle_policy(repositoryName=name)["lifecyclePolicyText"])["rules"]
        for name in repositories
    }
    iam = live.client("iam")
    role = live.cluster()["InstanceGroups"][0]["ExecutionRole"].rpartition("/")[2]
    (name,) = iam.list_role_policies(RoleName=role)["PolicyNames"]
    policy = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
    (images,) = (each for each in policy["Statement"] if each.get("Sid") == "OwnImages")
    return {
        "repositories": {name: each["imageTagMutability"] for name, each in repositories.items()},
        "encrypted": {each["encryptionConfiguration"]["encryptionType"] for each in repositories.values()},
        "kept": {name: [each["selection"]["countNumber"] for each in there] for name, there in rules.items()},
        "pulled": {each.partition(":repository/")[2] for each in images["Resource"]},
    }


def zones(_, dev):
    dev["network"]["zones"].insert(1, {"availabilityZone": "us-west-2c", "nodeCidr": "10.3.0.0/16"})
    group = {"name": "cpu", "instanceType": "ml.m5.4xlarge", "instanceCount": 1, "availabilityZone": "us-west-2c"}
    dev["cluster"]["instanceGroups"].insert(1, group)
    dev["network"]["zones"][2]["nodeCidr"] = "10.4.0.0/16"


def another_range(_, dev):
    dev["network"]["zones"][0]["nodeCidr"] = "10.5.0.0/16"


def another_range_and_names(data, dev):
    another_range(data, dev)
    dev["allowDelete"] = {"instanceGroups": [group["name"] for group in dev["cluster"]["instanceGroups"]]}
    for group in dev["cluster"]["instanceGroups"]:
        group["name"] += "-2"


def see_places(live):
    """Return the subnets of each group's nodes, and the ranges of all node subnets."""
    found = live.client("ec2").describe_subnets()["Subnets"]
    names = {each["SubnetId"]: tag["Value"] for each in found for tag in each.get("Tags", ()) if tag["Key"] == "Name"}
    ranges = {each["SubnetId"]: each["CidrBlock"] for each in found}
    return {
        "groups": {
            group["InstanceGroupName"]: (
                group["CurrentCount"],
                [ranges[id_] for id_ in group["OverrideVpcConfig"]["Subnets"]],
            )
            for group in live.cluster()["InstanceGroups"]
        },
        "subnets": {ranges[id_] for id_, name in names.items() if name.startswith("handson-dev-nodes-")},
    }


def replaced(zone):
    return {f"{kind}:nodes-{zone}": "replace" for kind in ("Subnet", "RouteTableAssociation")}


def each(op, *names):
    return dict.fromkeys(names, op)


FIRST = "10.192.64.0/18"
PLACES = ("Cluster:cluster", "Readiness:nodes", "RolePolicy:nodes")
# A range outside the VPC's first range.
RANGE = "VpcIpv4CidrBlockAssociation"
ZONE = [f"{kind}:nodes-us-west-2c" for kind in ("Route", "RouteTable", "Subnet", "RouteTableAssociation", RANGE)]
SETTINGS = each("update", "ComputeQuota:john", "ComputeQuota:smith", "Cluster:cluster", "ClusterSchedulerConfig:policy")
TEAM = [
    *(f"AccessEntry:{MARIA.partition('::')[2]}", "ComputeQuota:maria"),
    *(f"{kind}:maria" for kind in ("LimitRange", "NamespacePatch", "Role", "RoleBinding")),
]
IMAGES = ("handson-dev/john/serve/large", "handson-dev/john/train")
REPOSITORIES = ["Registry:registry"]
REPOSITORIES += [
    f"{kind}:john/{name}" for kind in ("Repository", "LifecyclePolicy") for name in ("train", "serve/large")
]
# Each policy names the namespaces of teams with members.
POLICIES = [f"ValidatingAdmissionPolicy:{policy.name}" for policy in policies_of(())]
EVERYBODY = each("update", f"ClusterRoleBinding:{RIGHTS}", *POLICIES)

# In this order, the VPC never exceeds AWS's limit of five ranges.
EDITS = {
    "quota at full capacity, a group's size and labels, priority classes": Case(
        settings,
        there=SETTINGS,
        back=SETTINGS,
        look=see_settings,
        seen={
            "quotas": {"john": 1, "smith": 4},
            "nodes": (5, 5),
            "labelled": 5,
            "priorities": {"training-priority": 80, "experiment-priority": 40},
        },
    ),
    "a zone comes and goes in the middle with a group in it, another gets other addresses": Case(
        zones,
        there={
            **each("create", *ZONE, f"{RANGE}:nodes-us-west-2b"),
            **each("update", *PLACES, "VpcEndpoint:endpoint-s3"),
            **replaced("us-west-2b"),
        },
        back={
            **each("delete", *ZONE, f"{RANGE}:nodes-us-west-2b"),
            **each("update", *PLACES, "VpcEndpoint:endpoint-s3"),
            **replaced("us-west-2b"),
        },
        look=see_places,
        seen={
            "groups": {"gpu": (4, [FIRST]), "cpu": (1, ["10.3.0.0/16"]), "system": (1, [FIRST])},
            "subnets": {FIRST, "10.3.0.0/16", "10.4.0.0/16"},
        },
    ),
    "a team comes and goes in the middle": Case(
        a_team,
        there={**each("create", *TEAM), **EVERYBODY},
        # The provider gets the name of the removed team.
        back={**each("delete", *TEAM), **EVERYBODY, "hyperpod:hyperpod": "update"},
        look=see_teams,
        seen={
            "quotas": {"john": 3, "maria": 1, "smith": 1},
            "queues": {
                f"hyperpod-ns-{name}": f"hyperpod-ns-{name}-clusterqueue" for name in ("john", "maria", "smith")
            },
            "bound": {f"hyperpod-ns-{name}": f"hyperpod:team:{name}" for name in ("john", "maria", "smith")},
            "everywhere": {f"hyperpod:team:{name}" for name in ("john", "maria", "smith")},
            "entry": True,
        },
    ),
    "a team gets repositories for its images": Case(
        a_registry,
        there={**each("create", *REPOSITORIES), "RolePolicy:nodes": "update"},
        back={**each("delete", *REPOSITORIES), "RolePolicy:nodes": "update"},
        look=see_repositories,
        seen={
            "repositories": dict.fromkeys(IMAGES, "IMMUTABLE"),
            "encrypted": {"KMS"},
            "kept": {name: [14, 50] for name in IMAGES},
            "pulled": {"handson-dev/*", "shared/*"},
        },
    ),
    "a zone gets other addresses and its groups other names": Case(
        another_range_and_names,
        there={**each("update", *PLACES), **replaced("us-west-2a"), **each("create", f"{RANGE}:nodes-us-west-2a")},
        back={**each("update", *PLACES), **replaced("us-west-2a"), **each("delete", f"{RANGE}:nodes-us-west-2a")},
        look=see_places,
        seen={
            "groups": {"gpu-2": (4, ["10.5.0.0/16"]), "system-2": (1, ["10.5.0.0/16"])},
            "subnets": {"10.5.0.0/16", "10.192.128.0/18"},
        },
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("case", EDITS.values(), ids=EDITS.keys())
def test_an_edit_changes_what_it_is_about_and_taking_it_back_leaves_no_trace(up, edit, live, case):
    # The provider gets what may be deleted; after a reverted edit, it no longer may.
    up.up()
    edit(case.change)
    assert up.preview() == case.there
    up.up()
    assert case.look(live) == case.seen
    assert up.preview() == {}
    edit.back(case.back)


def smith_goes_and_john_has_it_all(data, dev):
    del data["teams"][1], dev["governance"]["allocations"]["smith"]
    dev["governance"]["allocations"]["john"][0]["count"] = 4


def see_john_alone(live):
    seen = see_teams(live)
    spaces = {each["metadata"]["name"] for each in live.api.items("/api/v1/namespaces")}
    return seen["quotas"], list(seen["queues"]), list(seen["bound"]), "hyperpod-ns-smith" in spaces


def system_goes(_, dev):
    dev["cluster"]["instanceGroups"].pop()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("edited", "advised", "look", "seen"),
    [
        (
            smith_goes_and_john_has_it_all,
            "`allowDelete: {teams: [smith]}`",
            see_john_alone,
            ({"john": 4}, ["hyperpod-ns-john"], ["hyperpod-ns-john"], False),
        ),
        (
            system_goes,
            "`allowDelete: {instanceGroups: [system]}`",
            lambda live: [each["InstanceGroupName"] for each in live.cluster()["InstanceGroups"]],
            ["gpu"],
        ),
    ],
    ids=["a team whose quota another gets", "a group"],
)
def test_what_a_review_advises_is_all_that_the_engine_asks_for(up, edit, live, repository, edited, advised, look, seen):
    base = repository.read("handson")
    head = repository.read("handson")
    edited(head, head["environments"]["dev"])
    found = change(recorded_from(base), recorded_from(head))
    advice = [(decision.subject, decision.message) for decision in found.decisions if decision.refused]
    edit(edited)
    refused = up.run("preview", check=False)
    assert refused.returncode != 0
    assert advised in refused.stdout + refused.stderr
    assert [advised in message for _, message in advice] == [True]
    for _, file in runs(base, head, "dev", advice):
        edit(lambda data, _, file=file: data.update(file))
        said = up.run("preview")
        assert "doesn't fit" not in said.stdout + said.stderr
        up.up()
    assert look(live) == seen
    assert up.preview() == {}


@pytest.mark.nightly
def test_a_node_that_was_deleted_with_the_file_in_step_is_no_change_for_the_next_up(up, edit, live, repository):
    def john_has_less(_, dev):
        dev["governance"]["allocations"]["john"][0]["count"] = 2

    edit(john_has_less)
    up.up()
    variables = {"AWS_ENDPOINT_URL": live.url, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    (node, *_) = [
        node["InstanceId"]
        for node in live.sm.list_cluster_nodes(ClusterName=live.cluster()["ClusterName"])["ClusterNodeSummaries"]
        if node["InstanceGroupName"] == "gpu"
    ]
    words = ("node", "delete", node, "--yes", "--write", "--stack", "handson-dev")
    done = hpkit(*words, cwd=repository.folder, **variables)
    assert done.returncode == 0, done.stderr
    assert "which has nothing to change in the groups" in done.stdout + done.stderr
    assert up.preview() == {}
    up.up()
    assert up.preview("--refresh") == {}
    (gpu,) = (each for each in live.cluster()["InstanceGroups"] if each["InstanceGroupName"] == "gpu")
    assert (gpu["TargetCount"], gpu["CurrentCount"]) == (3, 3)


@pytest.mark.nightly
def test_a_service_quota_that_was_cut_keeps_what_runs_and_refuses_more_as_the_page_of_recovery_says(edit, up, live):
    def sizes(gpu, john):
        def change(_, dev):
            dev["cluster"]["instanceGroups"][0]["instanceCount"] = gpu
            dev["governance"]["allocations"]["john"][0]["count"] = john

        return change

    def cut(quota):
        urllib3.request("POST", f"{live.url}/_hpkit/faults", json={"instance-quota": quota})

    page = (ROOT / "docs" / "guides" / "recovery.md").read_text(encoding="utf-8")
    cut("3@ml.g5.12xlarge")
    try:
        assert up.preview("--refresh") == {}
        edit(sizes(5, 3))
        refused = up.up(check=False)
        assert refused.returncode != 0
        for words in ("ResourceLimitExceeded", "ml.g5.12xlarge for cluster usage", "request a higher SageMaker quota"):
            assert words in refused.stdout + refused.stderr
        assert "`ResourceLimitExceeded`" in page
        assert see_settings(live)["nodes"] == (4, 4)
        edit(sizes(3, 2))
        up.up()
        assert see_settings(live)["nodes"] == (3, 3)
    finally:
        cut(None)
