"""Kueue's objects as the service creates them from a plan, compared with the simulator's model of the plan."""

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings

from generate.examples import example_files
from hpkit.errors import CatalogError
from hpkit.plan.derive import derive
from hpkit.project import load_stack
from hpkit_local.rehearsal.jobs import team_objects
from hpkit_whatif.admission import Event, PodSet, PodSetAssignment, Simulator, Workload, model_of
from hpkit_whatif.cli.rehearse import Rehearsal
from hpkit_whatif.rehearse import apart, event_differences, object_differences, policy_request, quota_requests, run
from hpkit_whatif.scenario import open_scenario
from tests.builders import group, organization, ranked_handson, team, typed
from tests.whatif.admission import neutral
from tests.whatif.admission.cases import cases

ROOT = Path(__file__).parents[3]
EXAMPLES = [
    (file.stem, name) for file in example_files() for name in typed(yaml.safe_load(file.read_text())).environments
]


def plan_of(stem, environment):
    return derive(typed(yaml.safe_load((ROOT / "stacks" / f"{stem}.yaml").read_text())), environment)


def objects_of(plan):
    permanent = {kind: capacity.permanent for kind, capacity in plan.capacity.items()}
    return team_objects(quota_requests(plan), policy_request(plan), permanent)


@pytest.mark.parametrize(("stem", "environment"), EXAMPLES)
def test_the_service_makes_of_every_example_what_the_simulator_takes_it_for(stem, environment):
    plan = plan_of(stem, environment)
    objects = objects_of(plan)
    classes = {"WorkloadPriorityClass"} if plan.policy.priority_classes else set()
    assert {"ClusterQueue", "ResourceFlavor", *classes} <= {each["kind"] for each in objects}
    assert object_differences(plan, objects) == []
    queues = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "ClusterQueue"}
    for queue in model_of(plan).queues:
        spec = queues[queue.name]
        assert (spec["cohortName"], spec["preemption"]["reclaimWithinCohort"]) == (
            queue.cohort,
            queue.preemption.reclaim_within_cohort,
        )


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
    assert object_differences(plan, objects_of(plan)) == []
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
    "fair-share weight 7": lambda objects: queue_of(objects, "smith")["spec"].update(fairSharing={"weight": "7"}),
    "quota of 13 nvidia.com/gpu": lambda objects: queue_of(objects, "john")["spec"]["resourceGroups"][0]["flavors"][0][
        "resources"
    ][2].update(nominalQuota="13"),
    "paused": lambda objects: queue_of(objects, "john")["spec"].update(stopPolicy="Hold"),
    "priority class": lambda objects: of_kind(objects, "WorkloadPriorityClass").update(value=1),
    "has no queue": lambda objects: objects.remove(queue_of(objects, "smith")),
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_field_that_differs_is_named(field):
    plan = ranked_handson()
    objects = copy.deepcopy(objects_of(plan))
    CHANGES[field](objects)
    (line,) = object_differences(plan, objects)
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


class Stepped:
    """A simulator that is called step by step, as a rehearsal calls Kueue."""

    def __init__(self, model):
        self._simulator = Simulator(model)

    def submit(self, workload):
        self._simulator.submit(workload)

    def finish(self, name):
        self._simulator.finish(name)

    def settle(self):
        changes = []

        def note(outcome):
            changes.extend(outcome.admitted)
            changes.extend(outcome.preempted)

        # The order of admissions determines which task is first later.
        self._simulator.now += 1.0
        self.flapping = self._simulator.run_until_quiet(on_cycle=note).flapping
        return changes


def workloads_of(case):
    """Return the workloads of all steps, two of a step at once."""
    workloads = []
    for step in case["steps"]:
        for task in step["submit"]:
            number = len(workloads)
            workload = neutral.workload(task, created=float(number // 2))
            workloads.append(replace(workload, run=None if number % 7 == 6 else 2.0 + number % 3))
    return list(apart(workloads))


@settings(max_examples=60)
@given(cases("scenario"))
def test_what_is_asked_step_by_step_ends_as_what_runs_by_itself(case):
    model, workloads = neutral.model(case), workloads_of(case)
    expected, events = [], []
    if Simulator(model).run_clock(workloads, until=30.0, on_event=expected.append):
        return
    run(Stepped(model), workloads, until=30.0, on_event=events.append)
    assert event_differences(events, expected) == []
    assert len(events) == len(expected)


def workload(name, created, run):
    return Workload(name, "q", (PodSet("main", 1, {"gpu": 1}),), created=created, run=run)


def test_no_two_events_of_a_scenario_happen_at_once():
    found = list(apart([workload("a", 5.0, 10.0), workload("b", 5.0, 10.0), workload("c", 5.0, None)]))
    starts = [each.created for each in found]
    ends = [each.created + each.run for each in found if each.run is not None]
    assert len({*starts, *ends}) == 5
    assert starts == sorted(starts)
    assert max(starts) - 5.0 < 0.01


class Told:
    """A scheduler with prepared responses."""

    def __init__(self, *answers):
        self.calls = []
        self._answers = list(answers)

    def submit(self, workload):
        self.calls.append(("submit", workload.name))

    def finish(self, name):
        self.calls.append(("finish", name))

    def settle(self):
        return self._answers.pop(0) if self._answers else []


def test_each_event_waits_for_its_time():
    times = []
    scheduler = Told()
    end = run(
        scheduler, [workload("a", 5.0, 1.0), workload("b", 7.5, 1.0)], until=None, on_event=lambda _: None,
        wait_for=times.append,
    )  # fmt: skip
    assert (times, end) == ([5.0, 7.5], 7.5)
    assert scheduler.calls == [("submit", "a"), ("submit", "b")]


def event(kind, time, name, **more):
    return Event(time, kind, name, **more)


def admitted(time, name, node=""):
    domains = ((node, 1),) if node else ()
    return event("Admitted", time, name, pod_sets=(PodSetAssignment("main", 1, {"gpu": "ml.x"}, {}, domains),))


def test_a_difference_says_who_did_what_and_when():
    real = [admitted(60.0, "a"), event("Preempted", 90.0, "b", detail="InCohortReclamation", by="a")]
    simulated = [admitted(60.0, "a", "node-1"), event("Finished", 90.0, "c")]
    assert event_differences(real, simulated) == [
        "a at 0:01:00: Kueue admits it on 1 × ml.x, simulated: admits it on 1 × ml.x (node-1×1)",
        "b at 0:01:30: Kueue preempts it for a (InCohortReclamation), simulated: ignores it",
        "c at 0:01:30: Kueue ignores it, simulated: lets it end",
    ]


def test_the_order_within_a_moment_is_no_difference():
    assert event_differences([admitted(1.0, "a"), admitted(1.0, "b")], [admitted(1.2, "b"), admitted(1.1, "a")]) == []
