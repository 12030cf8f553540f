"""How a change affects a deployed stack, according to two recordings: one change per test."""

import copy
import json
from types import SimpleNamespace

import pytest
import yaml

from generate.examples import example_stacks
from hpkit.catalog import UNKNOWN, TypeFacts, differences, type_facts
from hpkit.changes import change
from hpkit.changes.compare import deletes_first, facts_of
from tests.builders import group, organization, team
from tests.changes.advice import runs
from tests.changes.key_changes import refusals
from tests.program.recorder import recorded, recorded_from

ROW = {"instanceType": "ml.g5.12xlarge", "count": 2}
GROUPS = [group("gpu", "ml.g5.12xlarge", 4), group("system", "ml.m5.4xlarge", 1)]


def data(**more):
    groups, more = copy.deepcopy((GROUPS, more))
    return organization(teams=[team("ada")], groups=groups, allocations={"ada": [dict(ROW)]}, **more)


def changed(edit, **more):
    """Return the change that an edit of the environment makes."""
    head = data(**more)
    edit(head["environments"]["dev"])
    return change(recorded_from(data(**more)), recorded_from(head))


def names(found, action):
    return {(step.type.rpartition(":")[2], step.name) for step in found.of(action)}


def codes(found):
    return {(each.code, each.subject): each.rejected for each in found.decisions}


def test_a_stack_that_comes_is_created_and_one_that_is_not_described_is_run_by_nobody():
    recording = recorded_from(data())
    assert {step.action for step in change(None, recording).steps} == {"create"}
    assert change(recording, None).steps == ()


def test_steps_come_in_the_same_order_however_resources_were_registered():
    steps = change(None, recorded_from(data())).steps
    places = [(step.action, step.type, step.name) for step in steps]
    assert places == sorted(places)


def test_another_name_of_the_cluster_replaces_it_and_what_names_its_arn_or_is_in_a_namespace_of_it():
    change_ = changed(lambda dev: dev["cluster"].update(name="other"))
    assert names(change_, "replace") == {
        ("Cluster", "cluster"),
        ("ClusterSchedulerConfig", "policy"),
        ("ComputeQuota", "ada"),
        *((kind, "ada") for kind in ("LimitRange", "NamespacePatch", "ResourceQuota", "Role", "RoleBinding")),
    }
    assert codes(change_) == {("replace-cluster", "cluster"): True}
    (decision,) = change_.decisions
    assert "4 × ml.g5.12xlarge" in decision.reason
    assert "ada" in decision.reason


def test_what_is_allowed_is_no_longer_protected():
    change_ = changed(
        lambda dev: dev.update(allowReplace=["cluster"]) or dev["cluster"].update(name="other"),
        environment={"protect": True},
    )
    assert codes(change_) == {("replace-cluster", "cluster"): False}


def test_what_the_allowance_alone_would_not_do_is_said_at_once():
    change_ = changed(
        lambda dev: dev.pop("storage"),
        environment={"storage": {"lustre": {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200}}},
    )
    (files,) = [each for each in change_.decisions if each.key == "fileSystem"]
    assert files.fix == (
        "to allow it once, first run `pulumi up` with `allowReplace: [fileSystem]` in the environment and without this "
        "change, then make this change with `allowReplace: [fileSystem]` and "
        "`allowDelete: {addons: [aws-fsx-csi-driver]}`"
    )


def test_another_region_or_vpc_is_refused_whatever_is_allowed():
    allowed = {"allowReplace": ["bucket", "cluster", "eks", "key", "vpc"]}
    found = changed(lambda dev: dev.update(allowed) or dev["network"].update(vpcCidr="10.193.0.0/16"))
    assert (codes(found), found.steps) == ({("network-changed", "network"): True}, ())

    def move(dev):
        dev.update(allowed)
        dev["region"] = "us-east-1"
        for zone in (*dev["network"]["zones"], *dev["cluster"]["instanceGroups"]):
            zone["availabilityZone"] = zone["availabilityZone"].replace("us-west-2", "us-east-1")

    found = changed(move)
    assert (codes(found), found.steps) == ({("region-changed", "region"): True}, ())


PARTS = {
    "observability": {"cloudwatch": True},
    "network": {
        "vpcCidr": "10.192.0.0/16",
        "natGateways": "PerZone",
        "zones": [
            {"availabilityZone": f"us-west-2{each}", "nodeCidr": f"10.{n}.0.0/16"} for n, each in enumerate("ab", 1)
        ],
    },
}


@pytest.mark.parametrize(
    ("edit", "code", "key", "name"),
    [
        (lambda dev: dev["governance"]["allocations"].pop("ada"), "team-removed", "teams", "ada"),
        (lambda dev: dev["governance"].update(quotaNames={"ada": "of-ada"}), "team-removed", "teams", "ada"),
        (lambda dev: dev["network"]["zones"].pop(), "nat-gateway-removed", "natGateways", "nat-us-west-2b"),
        (
            lambda dev: dev["observability"].update(cloudwatch=False),
            "addon-removed",
            "addons",
            "amazon-cloudwatch-observability",
        ),
    ],
)
def test_a_part_leaves_only_when_it_is_named(edit, code, key, name):
    assert codes(changed(edit, environment=PARTS)) == {(code, name): True}

    def allowed(dev):
        edit(dev)
        dev["allowDelete"] = {key: [name]}

    found = changed(allowed, environment=PARTS)
    assert (codes(found), found.unused_allowances) == ({(code, name): False}, ())


def test_what_goes_with_a_refused_cluster_is_not_refused_again():
    def edit(dev, **more):
        dev["cluster"]["name"] = "other"
        dev["governance"]["allocations"].pop("ada")
        dev.update(more)

    both = changed(edit)
    assert codes(both) == {("replace-cluster", "cluster"): True}
    assert "`allowDelete: {teams: [ada]}`" in both.decisions[0].fix
    team_allowed = changed(lambda dev: edit(dev, allowDelete={"teams": ["ada"]}))
    assert "allowDelete" not in team_allowed.decisions[0].fix
    # The guard of the parts doesn't know the cluster: it rejects what only the cluster's allowance names.
    cluster_allowed = changed(lambda dev: edit(dev, allowReplace=["cluster"]))
    assert codes(cluster_allowed) == {("replace-cluster", "cluster"): False, ("team-removed", "ada"): True}


EXISTING_VPC = {
    "vpcId": "vpc-0123456789abcdef0",
    "subnets": {"us-west-2a": "subnet-0123456789abcdef0", "us-west-2b": "subnet-0123456789abcdef1"},
    "securityGroupIds": ["sg-0123456789abcdef0"],
}
FULL = {
    "protect": True,
    "account": "210987654321",
    "network": PARTS["network"],
    "observability": {"cloudwatch": True, "prometheus": True},
    "storage": {"lustre": {"availabilityZone": "us-west-2a", "storageCapacityGiB": 2400}},
    "autoscaling": {
        "clusterRole": "arn:aws:iam::210987654321:role/karpenter",
        "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
        "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": {"nodes": "4"}}],
        "keda": {},
    },
}


def moved_quota(organization_, dev):
    organization_["teams"].pop()
    dev["governance"]["allocations"] = {"ada": [{**ROW, "count": 4}]}


def another_place(organization_, dev):
    text = json.dumps(dev).replace("us-west-2", "us-east-1")
    organization_["environments"]["dev"] = json.loads(text)


def another_type_for_karpenter(_, dev):
    dev["cluster"]["instanceGroups"][2]["instanceType"] = "ml.g5.4xlarge"


def every_part(organization_, dev):
    moved_quota(organization_, dev)
    dev["cluster"]["instanceGroups"][0]["name"] = "gpu-a"
    dev["cluster"]["instanceGroups"][1]["capacityType"] = "Spot"
    del dev["storage"], dev["observability"]["prometheus"]


# Refusals that no edit of a single key causes.
REFUSALS = {
    "another account": lambda _, dev: dev.update(account="999999999999"),
    "another region": another_place,
    "an existing VPC": lambda _, dev: dev.update(network={"existing": EXISTING_VPC}),
    "an existing VPC and EKS cluster": lambda _, dev: dev.update(
        network={"existing": EXISTING_VPC}, eks={"version": "1.35", "existing": {"name": "shared"}}
    ),
    "a team whose quota another gets": moved_quota,
    "a team with all of its rows, and its cluster": lambda organization_, dev: (
        moved_quota(organization_, dev) or dev["cluster"].update(name="other")
    ),
    "another role of Karpenter": lambda _, dev: dev["autoscaling"].update(
        clusterRole="arn:aws:iam::210987654321:role/other"
    ),
    "another type for Karpenter": another_type_for_karpenter,
    "no autoscaling": lambda _, dev: dev.pop("autoscaling"),
    "no repositories": lambda organization_, _: organization_["teams"][0].pop("registry"),
    "many things at once": every_part,
}


@pytest.mark.parametrize("edit", REFUSALS.values(), ids=REFUSALS)
def test_the_advice_of_a_refusal_is_valid_and_sufficient(edit):
    base = organization(
        teams=[team("ada", registry=["train"], members=[]), team("bob", members=[])],
        groups=[*GROUPS, group("burst", "ml.g5.8xlarge", 0)],
        allocations={"ada": [ROW], "bob": [ROW]},
        environment=FULL,
    )
    head = copy.deepcopy(base)
    edit(head, head["environments"]["dev"])
    refused = [each for each in change(recorded_from(base), recorded_from(head)).decisions if each.rejected]
    assert refused
    for sides in runs(base, head, "dev", [(each.subject, each.message) for each in refused]):
        assert refusals(*sides, "dev", "acme-dev") == [], yaml.safe_dump(sides[1])


def test_the_parts_are_those_that_the_program_makes():
    for stack in example_stacks():
        program = recorded(stack)
        kept = program.named("hyperpod:index:ChangeGuard")["keep-parts"].inputs["parts"]
        made = {f"teams/{name}": each.inputs["name"] for name, each in program.named("ComputeQuota").items()}
        made |= {f"natGateways/{name}": name for name in program.named("NatGateway")}
        made |= {f"addons/{name}": name for name in program.named("eks/addon:Addon")}
        made |= {f"addons/{name}": name for name in program.named("Release")}
        pools = [each.inputs["metadata"]["name"] for each in program.named("NodePool").values()]
        assert kept == made | {f"nodePools/{name}": name for name in pools}


def test_nothing_but_its_name_its_team_and_its_cluster_replaces_a_quota():
    # A cluster has its own guard; the guard of the parts compares name and team.
    assert type_facts("hyperpod:index:ComputeQuota").immutable == {"clusterArn", "name", "computeQuotaTarget.teamName"}


def test_another_key_of_a_volume_is_refused_on_a_group_that_exists():
    key = {"rootVolume": True, "volumeKmsKeyId": "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"}
    edit = {"instanceStorageConfigs": [{"ebsVolumeConfig": key}]}
    (decision,) = changed(lambda dev: dev["cluster"]["instanceGroups"][0].update(edit)).decisions
    assert (decision.code, decision.rejected) == ("immutable", True)
    assert decision.reason == "volumeKmsKeyId of the root volume of instance group gpu changes"


def test_another_number_of_threads_per_core_is_refused_and_a_first_one_is_not():
    def edit(number):
        return lambda dev: dev["cluster"]["instanceGroups"][0].update(threadsPerCore=number)

    assert changed(edit(1)).decisions == ()
    base, head = data(), data()
    edit(2)(base["environments"]["dev"])
    edit(1)(head["environments"]["dev"])
    (decision,) = change(recorded_from(base), recorded_from(head)).decisions
    assert decision.reason == "threadsPerCore of instance group gpu 2 → 1"


def test_metrics_and_dashboards_are_not_lost_unasked():
    every = {"observability": {"prometheus": True, "grafana": True}}
    found = changed(lambda dev: dev.pop("observability"), environment=every)
    assert codes(found) == {
        ("delete-prometheus", "prometheus"): True,
        ("delete-grafana", "grafana"): True,
        ("addon-removed", "amazon-sagemaker-hyperpod-observability"): True,
    }


FACTS = TypeFacts(
    immutable=frozenset({"a.b", "list"}),
    optional=frozenset({"filled"}),
    sets=frozenset({"set"}),
    entries={"named": "name"},
    defaults={"flag": True},
)


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {"a.b": True}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 1, "c": 2}}, {"a.c": False}),
        ({"a": {"b": 1}}, {}, {"a.b": True}),
        ({"a": UNKNOWN}, {"a": {"b": 1}}, {"a": False}),
        ({"list": ["x"]}, {"list": [UNKNOWN]}, {"list": True}),
        ({"filled": 1}, {}, {}),
        ({"set": ["x", "y"]}, {"set": ["y", "x"]}, {}),
        ({"flag": True}, {}, {}),
        ({"flag": False}, {}, {"flag": False}),
        ({"text": ""}, {}, {}),
        ({"named": [{"name": "x", "v": 1}]}, {"named": [{"name": "y"}, {"name": "x", "v": 1}]}, {"named[y]": False}),
    ],
)
def test_values_are_compared_as_the_plugins_compare_them(old, new, paths):
    assert {each.path: each.replaces for each in differences(FACTS, old, new)} == paths


@pytest.mark.parametrize(("lower", "higher"), [(1200, 2400), ("2.9", "2.15")])
def test_a_number_or_version_that_only_grows_replaces_what_has_it_when_it_falls(lower, higher):
    facts = TypeFacts(grows=frozenset({"size"}))
    replaced = [
        next(differences(facts, {"size": old}, {"size": new})).replaces
        for old, new in ((higher, lower), (lower, higher))
    ]
    assert replaced == [True, False]


def test_what_must_be_kept_replaces_what_has_it_when_it_goes_and_only_then():
    facts = TypeFacts(kept=frozenset({"source", "key"}))
    sides = [({"source": "a"}, {}), ({"source": "a"}, {"source": "b"}), ({}, {"source": "b"}), ({"key": {"x": 1}}, {})]
    found = [{each.path: each.replaces for each in differences(facts, *side)} for side in sides]
    assert found == [{"source": True}, {"source": False}, {"source": False}, {"key.x": True}]


@pytest.mark.parametrize(
    ("version", "kind", "path", "replaces"),
    [
        ("v1", "PersistentVolumeClaim", "spec.resources", False),
        ("v1", "PersistentVolumeClaim", "spec.volumeName", True),
        ("v1", "ConfigMap", "metadata.name", True),
        ("v1", "ConfigMap", "metadata.labels", False),
        ("apps/v1", "Deployment", "spec.selector", True),
        # The API server rejects these changes: the official plugin's preview shows an update.
        ("scheduling.k8s.io/v1", "PriorityClass", "value", False),
        ("storage.k8s.io/v1", "StorageClass", "reclaimPolicy", False),
    ],
)
def test_objects_are_replaced_for_what_the_official_plugin_replaces_them_for(version, kind, path, replaces):
    inputs = {"apiVersion": version, "kind": kind}
    facts = facts_of(SimpleNamespace(type=f"kubernetes:{version}:{kind}", inputs=inputs, replace_on_changes=()))
    assert (path in facts.immutable) is replaces
    patch = facts_of(SimpleNamespace(type=f"kubernetes:{version}:{kind}Patch", inputs=inputs, replace_on_changes=()))
    assert patch.immutable == {"metadata.name", "metadata.namespace"}


@pytest.mark.parametrize(("option", "first"), [(None, True), (False, False), (True, True)])
def test_an_option_of_the_program_decides_about_the_order_of_a_replacement(option, first):
    role = SimpleNamespace(
        type="aws:iam/role:Role", inputs={"name": "a"}, replace_on_changes=(), delete_before_replace=option
    )
    assert deletes_first(role, role) is first


def test_what_is_false_in_a_chart_is_something_else_than_what_is_left_out():
    release = type_facts("kubernetes:helm.sh/v3:Release")
    (found,) = differences(release, {"values": {}}, {"values": {"part": {"enabled": False}}})
    assert (found.place, found.before, found.after) == ("values.part.enabled", None, False)
    assert list(differences(TypeFacts(), {}, {"enabled": False})) == []
    volume = {"emptyDir": {}}
    assert [each.kind for each in differences(TypeFacts(literal=True), volume, {})] == ["delete"]
    assert list(differences(TypeFacts(), volume, {})) == []
