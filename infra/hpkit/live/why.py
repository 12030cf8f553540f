"""Why a task waits and what would let it run now, tried out on the simulator of Kueue's admission."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, cast

from hpkit.errors import SelectionError
from hpkit.live.model import Observed, Queue, Task
from hpkit.live.waiting import amount, preemption, preemptor, waiting_reason
from hpkit.whatif import (
    Admission,
    ClusterQueue,
    FlavorQuotas,
    Model,
    Outcome,
    PodSet,
    PodSetAssignment,
    Preemption,
    ResourceGroup,
    ResourceQuota,
    Simulator,
    Workload,
    per_unit,
)
from hpkit.whatif.model import Policy, Strategy

__all__ = ["Explanation", "explain", "find_task", "holders"]

# As many running tasks are tried one by one; more would take longer than anybody waits.
_MOST_TRIED: Final = 50
Strategies = tuple[Strategy, ...] | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A task's state in words.

    preempted_by: the task for which it was last preempted, with its team. holders: who holds quota of the kinds that
    it needs: team, flavor, pieces. remedies: what would let it run now, each tried on the simulator.
    """

    task: Task
    reason: str
    preempted_by: str | None
    holders: tuple[str, ...]
    remedies: tuple[str, ...]


def find_task(observed: Observed, name: str, team: str | None) -> Task:
    """Return the task that a person means: by the name of its job or its Workload, the newest where several match.

    SelectionError where there is none, or where several teams have one.
    """
    found = [
        task for task in observed.tasks if name in (task.owner_name, task.name) and (team is None or task.team == team)
    ]
    if not found:
        near = sorted({task.owner_name for task in observed.tasks})
        shown = ", ".join(near[:8]) + (", …" if len(near) > 8 else "")
        raise SelectionError(
            f"Kueue knows no task {name}"
            + (f" of team {team}" if team else "")
            + (f"; it knows {shown}" if near else "; it knows none at all")
        )
    teams = sorted({task.team for task in found})
    if len(teams) > 1:
        raise SelectionError(f"{', '.join(teams)} each have a task {name}: say whose with --team")
    return max(found, key=lambda task: task.created)


def explain(observed: Observed, task: Task, *, fair_sharing: Strategies) -> Explanation:
    """Return why a task waits, who holds what it needs, and what would let it run now."""
    queue = next((each for each in observed.queues if each.name == task.queue), None)
    by = _preempted_by(observed, task)
    if task.state != "pending":
        return Explanation(task, _ended(task), by, (), ())
    reason = waiting_reason(task, queue)
    if queue is None or not queue.active:
        return Explanation(task, reason, by, (), ())
    trial = _Trial(observed, task, queue.cohort, fair_sharing)
    return Explanation(task, reason, by, tuple(holders(observed, task)), tuple(_remedies(observed, task, queue, trial)))


def _preempted_by(observed: Observed, task: Task) -> str | None:
    uid = preemptor(task)
    found = next((each for each in observed.tasks if each.uid == uid), None)
    return None if found is None else f"{found.owner_name} of {found.team}"


def _ended(task: Task) -> str:
    words = {
        "running": "it runs",
        "starting": "it is admitted, and its pods are not all ready yet",
        "stopped": "it was stopped by hand: spec.active of its Workload is false",
        "succeeded": "it has finished",
        "failed": "it has failed",
    }
    finished = task.conditions.get("Finished")
    said = f": {finished.message}" if finished is not None and finished.status and finished.message else ""
    before = preemption(task)
    return words[task.state] + said + (f". Before, {before}" if before else "")


def holders(observed: Observed, task: Task) -> Iterable[str]:
    """Return who holds what a task needs, those that hold most first."""
    queue = next(each for each in observed.queues if each.name == task.queue)
    teams = {each.name: each.team or "idle capacity" for each in observed.queues if each.cohort == queue.cohort}
    # Whoever waits for accelerators does not wait for CPUs.
    scarce = task.requests.keys() - {"cpu", "memory"} or task.requests.keys()
    held: defaultdict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    for each in observed.tasks:
        for (flavor, resource), used in each.usage.items():
            if each.queue in teams and resource in scarce and (flavor, resource) in queue.quotas and used:
                held[teams[each.queue], flavor, resource] += used
    for (team, flavor, resource), used in sorted(held.items(), key=lambda each: (-each[1], each[0])):
        yield f"{team} holds {amount(used)} {resource} of {flavor}"


def _remedies(observed: Observed, task: Task, queue: Queue, trial: _Trial) -> Iterable[str]:
    if trial.runs(task):
        yield "nothing: the simulator admits it as things are; Kueue should within seconds"
        return
    needed = {key for key in queue.quotas if key[1] in task.requests}
    tried = [each for each in trial.running if needed & each.usage.keys()][:_MOST_TRIED]
    ended = [each.owner_name for each in tried if trial.runs(task, without=each.uid)]
    for name in ended[:5]:
        yield f"task {name} ends"
    if len(ended) > 5:
        yield f"any one of {len(ended) - 5} other tasks ends"
    for name, value in sorted(observed.priority_classes.items(), key=lambda each: each[1]):
        if value > task.priority:
            victims = trial.preempts(replace(task, priority=value))
            if victims:
                shown = ", ".join(sorted(victims))
                yield f"it gets the priority class {name}; then it preempts {shown}"
                break
    if task.pods > 1:
        fits = trial.most_pods(task)
        ever = fits or trial.most_pods(task, idle=True)
        if fits:
            yield f"it asks for {fits} of its {task.pods} pods"
        elif ever and not trial.runs(task, idle=True):
            yield f"it asks for at most {ever} of its {task.pods} pods, and others end"


class _Trial:
    """The platform's queues and tasks as the simulator takes them up, again for each question."""

    def __init__(self, observed: Observed, asked: Task, cohort: str | None, fair_sharing: Strategies) -> None:
        self._model = Model(
            queues=tuple(_queue(each) for each in observed.queues if each.active and each.cohort == cohort),
            fair_sharing=fair_sharing,
        )
        known = {each.name for each in self._model.queues}
        self.running = sorted(
            (each for each in observed.tasks if each.usage and each.queue in known and each.uid != asked.uid),
            key=lambda each: (each.priority, -each.created.timestamp()),
        )
        self._workloads = {each.uid: _running(each) for each in self.running}

    def runs(self, task: Task, *, without: str = "", idle: bool = False) -> bool:
        """Return whether a task would be admitted in the next cycle, preempting nobody; idle: if nothing else ran."""
        running = () if idle else [each for each in self.running if each.uid != without]
        return any(each.name == task.uid for each in self._cycle(task, running).admitted)

    def preempts(self, task: Task) -> list[str]:
        """Return whom a task would preempt in the next cycle."""
        names = {each.uid: each.owner_name for each in self.running}
        return [names[each.name] for each in self._cycle(task, self.running).preempted]

    def most_pods(self, task: Task, *, idle: bool = False) -> int:
        """Return with how many of its pods a task would be admitted now; idle: if nothing else ran."""
        low, high = 0, task.pods
        while high - low > 1:
            middle = (low + high) // 2
            smaller = {name: each * middle / task.pods for name, each in task.requests.items()}
            if self.runs(replace(task, pods=middle, requests=smaller), idle=idle):
                low = middle
            else:
                high = middle
        return low

    def _cycle(self, task: Task, running: Iterable[Task]) -> Outcome:
        workloads = [*(self._workloads[each.uid] for each in running), _waiting(task)]
        return Simulator(self._model, workloads, now=task.created.timestamp()).run_cycle()


def _queue(queue: Queue) -> ClusterQueue:
    flavors: dict[str, dict[str, ResourceQuota]] = {}
    for (flavor, resource), quota in queue.quotas.items():
        flavors.setdefault(flavor, {})[resource] = ResourceQuota(
            _units(resource, quota.nominal),
            _limit(resource, quota.borrowing_limit),
            _limit(resource, quota.lending_limit),
        )
    covered = tuple(dict.fromkeys(resource for _, resource in queue.quotas))
    groups = (ResourceGroup(covered, tuple(FlavorQuotas(name, each) for name, each in flavors.items())),)
    return ClusterQueue(
        name=queue.name,
        cohort=queue.cohort,
        resource_groups=groups if flavors else (),
        fair_weight=float(queue.weight),
        preemption=Preemption(cast("Policy", queue.within), cast("Policy", queue.reclaim)),
    )


def _limit(resource: str, value: Decimal | None) -> int | None:
    return None if value is None else _units(resource, value)


def _units(resource: str, value: Decimal) -> int:
    return int(value * per_unit(resource))


def _running(task: Task) -> Workload:
    usage = {resource: _units(resource, value) for (_, resource), value in task.usage.items()}
    flavors = {resource: flavor for flavor, resource in task.usage}
    admitted = task.conditions.get("QuotaReserved")
    since = task.created if admitted is None or admitted.since is None else admitted.since
    return replace(
        _workload(task, usage),
        admission=Admission(since.timestamp(), (PodSetAssignment("main", 1, flavors, usage),)),
    )


def _waiting(task: Task) -> Workload:
    return _workload(task, {name: _units(name, value) for name, value in task.requests.items()})


def _workload(task: Task, amounts: Mapping[str, int]) -> Workload:
    """Return a task as one pod that asks for all: pods of unlike flavors would be one pod set each."""
    pods = (PodSet("main", 1, amounts),)
    return Workload(task.uid, task.queue, pods, priority=task.priority, created=task.created.timestamp())
