"""`hpkit whatif rehearse`: a scenario on the API server and the Kueue of a local cloud."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.formats import Output, output_options
from hpkit.cli.common.inputs import choose_stack
from hpkit.errors import InputError, ToolError
from hpkit_local.cli.local_common import in_repository, root_of, to_stderr
from hpkit_whatif.cli.simulate import output_of

if TYPE_CHECKING:
    from hpkit.plan.model import Plan
    from hpkit_local.cloud import LocalCloud
    from hpkit_whatif.admission import Event, Model, Node, Workload
    from hpkit_whatif.scenario import Source
    from hpkit_whatif.simulate import Recorder, Report

__all__ = ["MOST_TASKS", "Rehearsal", "command"]

MOST_TASKS = 1000
"""Each of them takes a second or more: Kueue counts in whole seconds when something was created."""

_OWN = "rehearsal"


@click.command("rehearse")
@click.argument("scenario", metavar="SCENARIO")
@stack_option("Stack whose teams share capacity, such as handson-dev", required=True)
@click.option("--name", metavar="NAME", help="Running local cloud. Default: a temporary one.")
@in_repository
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    metavar="FACTOR",
    help="Maximum scenario seconds per second. Default: advance to the next event once Kueue is idle.",
)
@click.option("--check", is_flag=True, help="Print each difference from the simulator, and exit 1 if any exists.")
@output_options("text", "json", documents=("hpkit_whatif.simulate.report:Simulation",))
@click.option("--seed", type=int, metavar="N", help="Random seed of the scenario's generators.")
@click.option("--skip-impossible", is_flag=True, help="Skip tasks that can never run, and list them.")
def command(
    scenario: str,
    stack: str,
    name: str | None,
    root: Path | None,
    speed: float | None,
    check: bool,
    seed: int | None,
    skip_impossible: bool,
) -> Output:
    """Run a scenario on a real Kueue in a local cloud.

    Creates the stack's queues as the service does. Tasks become Jobs at their start time and end at their end time;
    no pods are started. The report is the same as that of `hpkit whatif simulate`.
    """
    from hpkit_whatif.scenario import open_scenario

    rehearsal = Rehearsal.from_source(
        choose_stack(stack), open_scenario(scenario), seed=seed, skip_impossible=skip_impossible
    )
    with _cloud(name, root) as cloud:
        report, differences = rehearsal.on(cloud, speed=speed)
    if check:
        for line in differences:
            to_stderr(f"difference: {line}")
        to_stderr(
            "error: Kueue and the simulator differ, as listed above"
            if differences
            else "no difference from the simulator, in the objects or in any task"
        )
    return output_of(report, check and bool(differences))


@contextmanager
def _cloud(name: str | None, root: Path | None) -> Iterator[LocalCloud]:
    """Return the local cloud with a name, or a temporary one."""
    from hpkit_local.cloud import TOOL_NAMES, TOOLS, LocalCloud, control, exclusive, get_all

    here = root_of(root)
    cloud = LocalCloud.named(name or _OWN, root=here)
    if name is not None:
        if control.running(cloud) is None:
            raise ToolError(f"{name} isn't running. Start it with `hpkit local start --name {name}`, or remove --name")
        with exclusive(cloud, "hpkit whatif rehearse", wait=True, say=to_stderr):
            yield cloud
        return
    if control.running(cloud) is not None:
        raise ToolError(
            f"a local cloud {_OWN} is already running: another rehearsal, or one that was killed. Wait for it, or run "
            f"`hpkit local reset --name {_OWN}`"
        )
    get_all([tool for tool in TOOLS if tool.name in TOOL_NAMES], say=to_stderr)
    try:
        control.start(cloud, say=to_stderr)
        yield cloud
    except KeyboardInterrupt:
        to_stderr("interrupted: deleting the rehearsal's own local cloud takes some seconds")
        raise
    finally:
        control.reset(cloud, say=to_stderr)


@dataclass(frozen=True)
class Rehearsal:
    """A scenario on a stack, ready for a scheduler; nothing runs yet."""

    plan: Plan
    source: Source
    model: Model
    workloads: list[Workload]
    recorder: Recorder
    classes: dict[int, str]

    @classmethod
    def from_source(
        cls, plan: Plan, source: Source, *, seed: int | None = None, skip_impossible: bool = False
    ) -> Rehearsal:
        """Return it. Raises InputError for an invalid task, or more tasks than can be rehearsed."""
        from itertools import islice

        from hpkit_whatif.rehearse import apart
        from hpkit_whatif.scenario import Tasks, scenario_model
        from hpkit_whatif.simulate import Recorder

        model = scenario_model(plan, source.scenario.topology)
        recorder = Recorder(plan, model)
        tasks = Tasks(plan, model).workloads(source.tasks(seed=seed))
        coming = recorder.taken(tasks, lenient=False, until=source.scenario.until, skip_impossible=skip_impossible)
        workloads = list(apart(islice(coming, MOST_TASKS + 1)))
        if len(workloads) > MOST_TASKS:
            raise InputError(
                f"{source.file}: more than {MOST_TASKS} tasks, and each takes Kueue a second or more. End the "
                "scenario earlier (`until`), or simulate it"
            )
        classes = {each.weight: f"{each.name}-priority" for each in plan.policy.priority_classes} if plan.policy else {}
        _reject_other_weights(workloads, classes)
        late = next((each.name for each in workloads if each.start), None)
        if late is not None:
            raise InputError(
                f"{source.file}: task {late} has `start`, but a rehearsal runs no pods. Use `hpkit whatif simulate` "
                f"instead"
            )
        return cls(plan, source, model, workloads, recorder, classes)

    def on(
        self, cloud: LocalCloud, *, speed: float | None = None, say: Callable[[str], None] = to_stderr
    ) -> tuple[Report, list[str]]:
        """Return the report, and each difference from the simulator, in objects and in what happened."""
        from hpkit_local.cloud import rehearsal, team_objects
        from hpkit_whatif.rehearse import event_differences, object_differences, policy_request, quota_requests, run

        until = self.source.scenario.until
        permanent = {kind: capacity.permanent for kind, capacity in self.plan.capacity.items()}
        objects = team_objects(quota_requests(self.plan), policy_request(self.plan), permanent)
        nodes = _nodes(self.model, objects, permanent)
        notes = _Notes(self, _Pace(speed, len(self.workloads), say))
        with rehearsal(cloud, objects, nodes, classes=self.classes) as session:
            differences = object_differences(self.plan, session.objects)
            end = run(session.scheduler, self.workloads, until=until, on_event=notes.take, wait_for=notes.pace.wait_for)
            reasons = session.scheduler.reasons()
        stopped = _whole(end) if until is None else until
        report = self.recorder.report(self.source.file, stopped, waiting=reasons, is_over=until is None)
        happened = event_differences(notes.events, _simulated(self.model, self.workloads, until))
        said = [f"{name} is waiting; Kueue reports: {why}" for name, why in reasons.items()] if happened else []
        return report, [*differences, *happened, *said]


class _Notes:
    """The events in the form of the report and the comparison."""

    def __init__(self, rehearsal: Rehearsal, pace: _Pace) -> None:
        self.pace = pace
        self.events: list[Event] = []
        self._recorder = rehearsal.recorder
        # If the scenario has no topology, the simulator has no places.
        self._with_places = bool(rehearsal.model.topologies)

    def take(self, event: Event) -> None:
        """Add an event."""
        sets = event.pod_sets
        places = sets if self._with_places else tuple(replace(each, domains=()) for each in sets)
        event = replace(event, time=_whole(event.time), pod_sets=places)
        self.pace.note(event)
        self.events.append(event)
        self._recorder.note(event)


def _simulated(model: Model, workloads: list[Workload], until: float | None) -> list[Event]:
    from hpkit_whatif.admission import Simulator

    events: list[Event] = []
    Simulator(model).run_clock(workloads, until=until, on_event=events.append)
    return [replace(event, time=_whole(event.time)) for event in events]


def _reject_other_weights(workloads: list[Workload], classes: dict[int, str]) -> None:
    for workload in workloads:
        if workload.priority and workload.priority not in classes:
            priority_classes = ", ".join(
                f"{name.removesuffix('-priority')} {weight}" for weight, name in sorted(classes.items())
            )
            raise InputError(
                f"task {workload.name} has priority {workload.priority}, but the stack has no such class. Use one of "
                f"{priority_classes or 'none'}"
            )


def _nodes(model: Model, objects: list[dict[str, Any]], permanent: dict[str, int]) -> list[Node]:
    """Return the scenario's nodes; without any, nodes side by side of each type that has a topology."""
    from hpkit_whatif.scenario import Rack, rack_nodes

    if model.topologies:
        return [node for topology in model.topologies for node in topology.nodes]
    kinds = [each["metadata"]["name"] for each in objects if "topologyName" in each.get("spec", {})]
    near = ("nn-1", "nn-2", "nn-3")
    there = {kind: permanent[kind] for kind in kinds if permanent.get(kind)}
    return list(rack_nodes(Rack(instance_type=kind, nodes=count, layers=near) for kind, count in there.items()))


def _whole(seconds: float) -> float:
    """Return a time without the offset that separates events."""
    return int(seconds * 10 + 1e-6) / 10


class _Pace:
    """Reports progress, and limits the clock's speed."""

    def __init__(self, speed: float | None, tasks: int, say: Callable[[str], None]) -> None:
        self._speed = speed
        self._tasks = tasks
        self._say = say
        self._began = time.monotonic()
        self._submitted = 0

    def wait_for(self, moment: float) -> None:
        """Wait until it is time."""
        if self._speed is not None:
            time.sleep(max(0.0, self._began + moment / self._speed - time.monotonic()))

    def note(self, event: Event) -> None:
        """Report an event."""
        from hpkit.text.formatting import span

        self._submitted += event.kind == "Submitted"
        what = f"{event.kind.lower()} {event.workload}" + (f" for {event.by}" if event.by else "")
        self._say(f"{span(event.time)}: {what} ({self._submitted} of {self._tasks} tasks submitted)")
