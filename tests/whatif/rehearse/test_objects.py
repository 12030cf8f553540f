"""Kueue's objects as the service creates them from a plan, compared with the simulator's model of the plan."""

import copy
from pathlib import Path

import pytest
import yaml
from kubernetes.utils.quantity import parse_quantity

from generate.examples import example_files
from hpkit.errors import CatalogError
from hpkit.plan.derive import derive
from hpkit.project import load_stack
from hpkit_local.rehearsal.jobs import team_objects
from hpkit_whatif.admission import model_of
from hpkit_whatif.cli.rehearse import Rehearsal
from hpkit_whatif.rehearse import object_differences, policy_request, quota_requests
from hpkit_whatif.scenario import open_scenario
from tests.builders import group, organization, ranked_handson, team, typed

ROOT = Path(__file__).parents[3]
EXAMPLES = [
    (file.stem, name) for file in example_files() for name in typed(yaml.safe_load(file.read_text())).environments
]


def plan_of(stem, environment):
    return derive(typed(yaml.safe_load((ROOT / "stacks" / f"{stem}.yaml").read_text())), environment)


def objects_of(plan):
    permanent = {kind: capacity.permanent for kind, capacity in plan.capacity.items()}
    return team_objects(quota_requests(plan), policy_request(plan), permanent)


def differences(plan, objects):
    return object_differences(plan, model_of(plan), objects, quantity=lambda text: float(parse_quantity(text)))


@pytest.mark.parametrize(("stem", "environment"), EXAMPLES)
def test_the_service_makes_of_every_example_what_the_simulator_takes_it_for(stem, environment):
    plan = plan_of(stem, environment)
    objects = objects_of(plan)
    classes = {"WorkloadPriorityClass"} if plan.policy.priority_classes else set()
    assert {"ClusterQueue", "ResourceFlavor", *classes} <= {each["kind"] for each in objects}
    assert differences(plan, objects) == []


TEAMS = [
    team("a", sharing={"strategy": "LendAndBorrow", "borrowLimit": 33}),
    team("b", sharing={"strategy": "Lend"}, preemptTeamTasks="Never"),
    team("c", sharing={"strategy": "DontLend"}, fairShareWeight=0),
    team(
        "d",
        sharing={
            "strategy": "LendAndBorrow",
            "absoluteBorrowLimits": [{"instanceType": "ml.p4d.24xlarge", "count": 1}],
        },
    ),
    team("e"),
    team(
        "f",
        activationState="Disabled",
        sharing={
            "strategy": "LendAndBorrow",
            "absoluteBorrowLimits": [
                {"instanceType": "ml.p4d.24xlarge", "acceleratorPartition": {"type": "mig-2g.10gb", "count": 3}},
                {"instanceType": "ml.g5.12xlarge", "accelerators": 3, "memoryInGiB": 50.5},
            ],
        },
    ),
]
GROUPS = [group("gpu", "ml.g5.12xlarge", 8), group("large", "ml.p4d.24xlarge", 4), group("cpu", "ml.c5.2xlarge", 3)]
ALLOCATIONS = {
    "a": [{"instanceType": "ml.g5.12xlarge", "count": 3}],
    "b": [{"instanceType": "ml.g5.12xlarge", "accelerators": 3}, {"instanceType": "ml.c5.2xlarge", "vCpu": 3.5}],
    "c": [{"instanceType": "ml.p4d.24xlarge", "acceleratorPartition": {"type": "mig-1g.5gb", "count": 5}}],
    "d": [{"instanceType": "ml.c5.2xlarge", "memoryInGiB": 7.3}, {"instanceType": "ml.g5.12xlarge", "count": 1}],
    "e": [{"instanceType": "ml.p4d.24xlarge", "accelerators": 3, "vCpu": 11.25}],
    "f": [{"instanceType": "ml.c5.2xlarge", "count": 1}],
}


@pytest.mark.parametrize("fair", ["Enabled", "Disabled"])
@pytest.mark.parametrize("idle", ["Enabled", "Disabled"])
def test_so_does_it_of_every_way_to_reserve_lend_and_borrow(fair, idle):
    policy = {"fairShare": fair, "idleResourceSharing": idle}
    data = organization(teams=TEAMS, groups=GROUPS, allocations=ALLOCATIONS, top={"clusterPolicy": policy})
    plan = derive(typed(data), "dev")
    assert differences(plan, objects_of(plan)) == []
    assert (model_of(plan).fair_sharing is not None) == (fair == "Enabled")


def test_an_instance_type_without_figures_is_said():
    data = organization(
        teams=[team("a")],
        groups=[group("new", "ml.g7.12xlarge", 1)],
        allocations={"a": [{"instanceType": "ml.g7.12xlarge", "count": 1}]},
    )
    with pytest.raises(CatalogError, match=r"ml\.g7\.12xlarge aren't known"):
        model_of(derive(typed(data), "dev"))


def queue_of(objects, team):
    name = f"hyperpod-ns-{team}-clusterqueue"
    return next(each for each in objects if each["kind"] == "ClusterQueue" and each["metadata"]["name"] == name)


def of_kind(objects, kind):
    return next(each for each in objects if each["kind"] == kind)


CHANGES = {
    "cohort": lambda objects: queue_of(objects, "john")["spec"].update(cohortName="elsewhere"),
    "fairSharing.weight": lambda objects: queue_of(objects, "smith")["spec"].update(fairSharing={"weight": "7"}),
    "preemption.reclaimWithinCohort": lambda objects: queue_of(objects, "john")["spec"]["preemption"].update(
        reclaimWithinCohort="Never"
    ),
    "ml.g5.12xlarge nvidia.com/gpu": lambda objects: queue_of(objects, "john")["spec"]["resourceGroups"][0]["flavors"][
        0
    ]["resources"][2].update(nominalQuota="13"),
    "stopPolicy": lambda objects: queue_of(objects, "john")["spec"].update(stopPolicy="Hold"),
    "node.kubernetes.io/instance-type": lambda objects: of_kind(objects, "ResourceFlavor")["spec"].update(
        nodeLabels={}
    ),
    "value": lambda objects: of_kind(objects, "WorkloadPriorityClass").update(value=1),
    "not in the cluster": lambda objects: objects.remove(queue_of(objects, "smith")),
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_field_that_differs_is_named(field):
    plan = ranked_handson()
    objects = copy.deepcopy(objects_of(plan))
    CHANGES[field](objects)
    (line,) = differences(plan, objects)
    assert field in line


def test_nothing_is_made_that_the_controllers_would_take_away():
    for each in objects_of(plan_of("handson", "dev")):
        assert each["metadata"]["labels"]["hpkit.local/rehearsal"] == "true"
        assert "app.kubernetes.io/managed-by" not in each["metadata"]["labels"]


def test_tasks_that_can_never_run_may_be_left_out(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("tasks:\n  - {name: big, team: smith, count: 3}\n  - {name: small, team: smith, count: 1}\n")
    plan = next(iter(load_stack("handson-dev").plans.values()))
    rehearsal = Rehearsal.from_source(plan, open_scenario(file), skip_impossible=True)
    assert [each.name for each in rehearsal.workloads] == ["small"]
    (said,) = rehearsal.recorder.report("s.yaml", 0.0).warnings
    assert said.startswith("task big of smith is left out")
