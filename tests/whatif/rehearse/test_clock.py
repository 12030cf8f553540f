"""The clock of a rehearsal: with the simulator as the scheduler, everything happens when the simulator predicts."""

from dataclasses import replace

from hypothesis import given, settings

from hpkit_whatif.admission import Event, PodSet, PodSetAssignment, Simulator, Workload
from hpkit_whatif.rehearse import apart, event_differences, run
from tests.whatif.admission import neutral
from tests.whatif.admission.cases import cases


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
