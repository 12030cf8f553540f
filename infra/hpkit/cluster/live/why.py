"""Explains why a task waits, what would let it run now, and when it could run, using the simulator."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from hpkit.cluster.live.model import Observed, Platform, Queue, Task, team_of, without_basics
from hpkit.cluster.live.nodes import failed_instances
from hpkit.cluster.live.placement import Places
from hpkit.cluster.live.state import RETRIED, Jobs, JobState, State
from hpkit.cluster.live.waiting import NEVER, counted, is_crowded, preemptor
from hpkit.cluster.live.without_task import MOST_STARTS, CohortSimulation
from hpkit.errors import SelectionError, ToolError
from hpkit.extensions import is_installed
from hpkit.kueue.model import Strategy
from hpkit.text.formatting import plural

__all__ = [
    "Explanation",
    "Strategies",
    "explain",
    "fewer_pods",
    "find_task",
    "holders",
    "room",
    "start_time",
    "with_failed_instances",
]

# As many running tasks are tried one by one; more would take longer than anybody waits.
_MOST_TRIED: Final = 50
_SHOWN: Final = 5
_NO_SIMULATOR: Final = "finding what would let it run requires the simulator: pip install 'hpkit[whatif]'"
# Of a Deployment's pods, the first of these is explained.
_FIRST: Final[tuple[State, ...]] = (
    "blocked", "evicted", "pending", "ending", "stopped", "failed", "admitted", "starting", "running", "succeeded",
)  # fmt: skip
Strategies = tuple[Strategy, ...] | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A task's state as text.

    nodes: what is wrong with the nodes of its pods. failed: failed instances of the types of its queue, None if the
    caller can't list instances. preempted_by: the task for which it was last preempted, with its
    team. siblings: how the other pods of its Deployment are. holders: teams that hold the quota that it needs: team,
    flavor, amount. remedies: changes that would let it run now, each simulated; without any, outlook explains why.
    runs_at: when it could run, if known; when: that as text, or why it isn't known.
    """

    task: Task
    job: JobState
    preempted_by: str | None = None
    siblings: str = ""
    nodes: tuple[str, ...] = ()
    failed: tuple[str, ...] | None = ()
    holders: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    outlook: str = ""
    runs_at: datetime | None = None
    when: str = ""


def find_task(jobs: Jobs, name: str, team: str | None) -> Task:
    """Return the task with the name of a job, of the object that created it, or of a Workload.

    If several match, it's the newest; of a Deployment's pods, which are tasks, one that needs attention.

    Raises SelectionError if no task or tasks of several teams match, and ToolError if tasks could not be read.
    """
    observed = jobs.observed
    if "workloads" in observed.unread:
        raise ToolError(
            "the tasks couldn't be read. Use a role that can list workloads.kueue.x-k8s.io, in all namespaces or in "
            "the team's"
        )
    tasks = [task for task in jobs.named(name) if team is None or task.team == team]
    if not tasks:
        raise SelectionError(_not_found(jobs, name, team))
    teams = sorted({task.team for task in tasks})
    if len(teams) > 1:
        raise SelectionError(f"{', '.join(teams)} each have a task {name}; choose one with --team")
    newest = max(tasks, key=lambda task: task.created)
    if jobs.owner(newest)[0] != "Deployment":
        return newest
    return min(tasks, key=lambda task: (_FIRST.index(jobs.state(task).state), -task.created.timestamp()))


def _not_found(jobs: Jobs, name: str, team: str | None) -> str:
    observed = jobs.observed
    namespaces = dict.fromkeys(warning.namespace for warning in observed.warnings)
    warnings = [jobs.warning(each, name) for each in namespaces if team is None or team_of(each) == team]
    causes = "".join(f". {each.kind} {each.name}: {each.message.rstrip('.')}" for each in warnings if each is not None)
    near = list(dict.fromkeys(sorted(jobs.owner(task)[1] for task in observed.tasks)))
    task_names = ", ".join(near[:8]) + (", …" if len(near) > 8 else "")
    where = (
        "" if observed.namespaces is None else f" in {', '.join(observed.namespaces)}; no other namespace could be read"
    )
    classes = ", ".join(sorted(observed.priority_classes))
    return (
        f"Kueue has no task {name}"
        + (f" of team {team}" if team else "")
        + causes
        + (f"; its tasks: {task_names}" if near else "; it has no tasks")
        + where
        + ". It queues only jobs with the label kueue.x-k8s.io/queue-name; a priorityClassName must exist"
        + (f", and a kueue.x-k8s.io/priority-class must be one of {classes}" if classes else "")
        + "; `hpkit job check` checks a manifest"
    )


def explain(jobs: Jobs, task: Task, *, fair_sharing: Strategies) -> Explanation:
    """Return why a task waits, which teams hold its quota, what would let it run now, and when it could run."""
    observed, job = jobs.observed, jobs.state(task)
    queue = next((each for each in observed.queues if each.name == task.queue), None)
    explanation = Explanation(
        task, job, _preempted_by(observed, task), siblings=_siblings(jobs, task, job), nodes=_troubles(observed, task)
    )
    if not task.waits:
        if job.cause == "Unschedulable" and queue is not None and not jobs.never(task):
            return replace(explanation, outlook=Places(jobs).lacking(task, queue, without=(task.uid,)))
        return explanation
    if jobs.is_over(task):
        return explanation
    if queue is None and observed.unread & {"localqueues", "clusterqueues"}:
        return replace(explanation, outlook="what would let it run isn't known, because queues couldn't be read")
    if queue is None:
        return replace(explanation, outlook="it can never run without its LocalQueue")
    if not queue.active:
        enabled = "activationState of its team is Enabled" if queue.stopped else "its queue is active"
        return replace(explanation, outlook=f"it can only run once {enabled}")
    if observed.stop(task):
        return replace(explanation, outlook="it can only run once the stopPolicy of its LocalQueue is None")
    if task.holds:
        return replace(explanation, outlook="it needs no more quota")
    if task.retry_at is not None and task.retry_at > observed.time:
        when = f"Kueue retries it at {task.retry_at:%Y-%m-%d %H:%M:%S} UTC, and doesn't admit it earlier"
        return replace(explanation, outlook=when)
    return _simulated(jobs, explanation, queue, fair_sharing)


def with_failed_instances(explanation: Explanation, observed: Observed, platform: Platform | None) -> Explanation:
    """Return the explanation with the failed instances that its task could run on."""
    if platform is None:
        return replace(explanation, failed=None)
    queue = next((each for each in observed.queues if each.name == explanation.task.queue), None)
    # Task governance names flavors after instance types.
    types = {flavor for flavor, _ in queue.quotas} if queue is not None else set()
    return replace(explanation, failed=failed_instances(platform, types))


def _troubles(observed: Observed, task: Task) -> tuple[str, ...]:
    """Return what is wrong with the nodes on which pods of a task are."""
    own = {pod.node for pod in observed.pods if (pod.namespace, pod.task) == (task.namespace, task.name)}
    return tuple(f"{node.name}: {node.trouble}" for node in observed.nodes if node.name in own and node.trouble)


def _simulated(jobs: Jobs, explanation: Explanation, queue: Queue, fair_sharing: Strategies) -> Explanation:
    """Return the explanation with what the simulator finds for a task that waits for quota or nodes."""
    observed, task = jobs.observed, explanation.task
    simulation = CohortSimulation(jobs, task, queue, fair_sharing)
    explanation = replace(explanation, holders=tuple(holders(simulation, observed, task, queue)))
    if not is_installed("simulator"):
        return replace(explanation, outlook=_NO_SIMULATOR)
    never = simulation.never()
    if never is not None:
        fewer = tuple(fewer_pods(simulation, task, never=True))
        if fewer:
            return replace(explanation, remedies=fewer)
        # Kueue's own message can already say so.
        is_said = NEVER in explanation.job.reason
        return replace(explanation, holders=(), outlook="" if is_said else f"it can never run as it is: {never}")
    places = Places(jobs)
    has_quota = simulation.runs(task)
    lacking = places.lacking(task, queue) if has_quota else ""
    alone = "" if has_quota else simulation.lacking()
    if alone:
        return replace(explanation, holders=(), outlook=f"even if nothing else ran, {alone}")
    if has_quota and not lacking and is_crowded(task):
        return replace(explanation, outlook="the simulator can't tell which tasks hold the nodes that it needs")
    remedies = tuple(_remedies(jobs, task, queue, simulation, places, lacking=lacking))
    if lacking:
        return replace(explanation, holders=(), remedies=remedies, outlook=f"quota is free, but {lacking}")
    outlook = "" if remedies else "no single change would let it run now; several tasks must end"
    if not fair_sharing and _spares_own(task, queue, simulation):
        outlook = (
            "it doesn't preempt its team's tasks of lower priority, because it requests more than the team's quota, "
            "and `fairShare` is Disabled"
        )
    if observed.namespaces is not None:
        more = "pods and waiting tasks of other namespaces couldn't be read, and aren't counted"
        outlook = f"{outlook}; {more}" if outlook else more
    if has_quota:
        # Kueue's message is older than the state that the simulator has seen.
        is_old = "QuotaReserved" in task.conditions
        job = replace(explanation.job, reason=f"Kueue's last answer: {explanation.job.reason}")
        answer = replace(explanation, job=job) if is_old else explanation
        return replace(answer, holders=(), remedies=remedies, outlook=outlook)
    runs_at, words = start_time(observed, simulation)
    return replace(explanation, remedies=remedies, outlook=outlook, runs_at=runs_at, when=words)


def _spares_own(task: Task, queue: Queue, simulation: CohortSimulation) -> bool:
    """Return whether classic preemption keeps lower tasks of its queue from a task that must borrow (Kueue 0.19)."""
    nominal = {
        name: sum(quota.nominal for (_, key), quota in queue.quotas.items() if key == name) for name in task.requests
    }
    lower = any(each.queue == queue.name and each.priority < task.priority for each in simulation.running)
    return queue.within != "Never" and lower and any(task.requests[name] > nominal[name] for name in nominal)


def _siblings(jobs: Jobs, task: Task, job: JobState) -> str:
    """Return how a Deployment's other pods are, and why it has no more; or ""."""
    if job.kind != "Deployment":
        return ""
    siblings = jobs.siblings(task)
    old = [each for each in siblings if jobs.is_older(each, task)] if task.waits else []
    holding = (
        f"{plural(len(siblings), 'other pod')} of {job.kind} {job.name} {'holds' if len(siblings) == 1 else 'hold'}"
    )
    words = [f"{holding} quota" + (f", {len(old)} of them from before the rollout" if old else "")] if siblings else []
    rejected = jobs.warning(task.namespace, job.name)
    is_rollout = bool(old)
    if rejected is not None and rejected.time >= jobs.observed.time - RETRIED:
        words.append(f"{rejected.kind} {rejected.name} can't create a pod: {rejected.message.rstrip('.')}")
        is_rollout = is_rollout or not any(pod.owner_name == rejected.name for pod in jobs.pods(task))
    if is_rollout:
        words.append(
            "A rollout deletes old pods only once new ones are ready. Set `strategy: {rollingUpdate: {maxSurge: 0, "
            "maxUnavailable: 1}}`, so that it deletes an old pod first"
        )
    return ". ".join(words)


def _preempted_by(observed: Observed, task: Task) -> str | None:
    uid, name = preemptor(task)
    preempting = next((each for each in observed.tasks if each.uid == uid), None)
    if preempting is not None:
        return f"{preempting.owner_name} of {preempting.team}"
    if name is None:
        return None
    queue = next((each for each in observed.queues if each.name == name and each.team is not None), None)
    if queue is None:
        return f"a task of {name} that couldn't be read"
    whereabouts = "that no longer exists" if observed.sees(queue.namespace) else "that couldn't be read"
    return f"a task of {queue.team} {whereabouts}"


def holders(simulation: CohortSimulation, observed: Observed, task: Task, queue: Queue) -> Iterable[str]:
    """Return which teams hold a task's quota, those that hold most first."""
    teams = {each.name: each.team or "idle capacity" for each in observed.queues if each.cohort == queue.cohort}
    scarce = _scarce(simulation, observed, task, queue)
    held: defaultdict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    for running in simulation.running:
        for (flavor, resource), used in running.holds.items():
            if running.queue in teams and (flavor, resource) in scarce and used:
                held[teams[running.queue], flavor, resource] += used
    for (team, flavor, resource), used in sorted(held.items(), key=lambda each: (-each[1], each[0])):
        yield f"{team} holds {counted(used, resource)} of {flavor}"


def _scarce(simulation: CohortSimulation, observed: Observed, task: Task, queue: Queue) -> Set[tuple[str, str]]:
    """Return the usable resources of which a task's queue has too little left, without the basic ones."""
    total: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
    own: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for other in observed.queues:
        for key, quota in other.quotas.items() if other.name == queue.name or other.cohort == queue.cohort else ():
            total[key] += quota.nominal
    for running in simulation.running:
        for key, used in running.holds.items():
            total[key] -= used
            own[key] += used if running.queue == queue.name else 0
    short = {
        key[1]
        for key, quota in queue.quotas.items()
        if key in simulation.usable
        and (
            (asked := task.requests.get(key[1], Decimal(0))) > total[key]
            or (quota.borrowing_limit is not None and asked > quota.nominal + quota.borrowing_limit - own[key])
        )
    } or task.requests.keys()
    names = without_basics(short)
    return {key for key in simulation.usable if key[1] in names}


def _remedies(
    jobs: Jobs, task: Task, queue: Queue, simulation: CohortSimulation, places: Places, *, lacking: str
) -> Iterable[str]:
    observed, own = jobs.observed, {each.uid for each in jobs.siblings(task)}
    if lacking:
        yield from room(jobs, task, queue, simulation, places)
        return
    if simulation.runs(task):
        yield "nothing: the simulator admits it now, and Kueue should within seconds"
        return
    needed = {key for key in queue.quotas if key[1] in task.requests}
    tried = [each for each in simulation.running if needed & each.holds.keys() and each.owner_name][:_MOST_TRIED]
    ended = [
        each
        for each in tried
        if each.uid not in own
        and simulation.runs(task, without=each.uid)
        and not places.lacking(task, queue, without=(each.uid,))
        and not places.depends(task, queue, without=(each.uid,))
    ]
    ends = list(dict.fromkeys(_ends(jobs, each) for each in ended))
    if any(each.uid in own and simulation.runs(task, without=each.uid) for each in tried if jobs.is_older(each, task)):
        yield f"an old pod of Deployment {jobs.owner(task)[1]} ends"
    yield from ends[:_SHOWN]
    if len(ends) > _SHOWN:
        yield f"any one of {len(ends) - _SHOWN} other tasks ends"
    names = {each.uid: each.owner_name for each in observed.tasks}
    for name, value in sorted(observed.priority_classes.items(), key=lambda each: each[1]):
        if value > task.priority:
            start, victims = simulation.start(replace(task, priority=value))
            if start is not None and names.keys() >= {*victims}:
                shown = ", ".join(sorted({names[each] for each in victims}))
                yield f"it gets the priority class {name}" + (f"; then it preempts {shown}" if shown else "")
                break
    yield from fewer_pods(simulation, task)


def room(
    jobs: Jobs, task: Task, queue: Queue, simulation: CohortSimulation, places: Places, ended: Collection[str] = ()
) -> Iterable[str]:
    """Return which task's end would leave room on nodes for a task that has quota; ended: UIDs of tasks that end."""
    enough = [
        each
        for each in simulation.running[:_MOST_TRIED] * (not places.unread)
        if each.owner_name
        and not places.lacking(task, queue, without=(*ended, each.uid))
        and not places.depends(task, queue, without=(*ended, each.uid))
    ]
    yield from list(dict.fromkeys(_ends(jobs, each) for each in enough))[:_SHOWN]


def _ends(jobs: Jobs, task: Task) -> str:
    """Return what must happen so that a task ends for good: a Deployment replaces a pod at once."""
    kind, name = jobs.owner(task)
    return f"Deployment {name} has one replica fewer" if kind == "Deployment" else f"task {name} ends"


def fewer_pods(simulation: CohortSimulation, task: Task, *, never: bool = False) -> Iterable[str]:
    """Return with how many pods a task would run now; never: or else if nothing else ran."""
    if task.pods < 2:
        return
    fits = simulation.most_pods()
    if fits:
        yield f"it is submitted with {fits} instead of {task.pods} pods"
        return
    ever = simulation.most_pods(idle=True) if never else 0
    if ever:
        yield f"it is submitted with at most {ever} instead of {task.pods} pods, and other tasks end"


def start_time(observed: Observed, simulation: CohortSimulation) -> tuple[datetime | None, str]:
    """Return when a task could run if no more are submitted, and a text; or why that isn't known."""
    starts, later_than = simulation.starts(observed.time.timestamp())
    if later_than is not None:
        return None, (
            f"after {datetime.fromtimestamp(later_than, tz=UTC):%Y-%m-%d %H:%M} UTC, because {MOST_STARTS} other tasks "
            "start before it"
        )
    if starts is not None:
        when = datetime.fromtimestamp(starts, tz=UTC)
        minutes = max(1, round((starts - observed.time.timestamp()) / 60))
        return when, (
            f"{when:%Y-%m-%d %H:%M} UTC, in {minutes} min, if tasks run as long as "
            "they're allowed to and no more are submitted"
        )
    endless = [each for each in simulation.running if each.longest is None and simulation.usable & each.holds.keys()]
    names = ", ".join(dict.fromkeys(each.owner_name or f"those of {each.team}" for each in endless[:_SHOWN]))
    more = f" and {len(endless) - _SHOWN} more" if len(endless) > _SHOWN else ""
    return None, (
        f"unknown, because no limit is set on how long {names}{more} can run"
        if endless
        else "unknown, because tasks that wait before it run for an unknown time"
    )
