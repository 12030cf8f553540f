"""Predicts what Kueue does with a job that is submitted now: it starts, borrows, waits, or never runs."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from hpkit.cluster.jobs.kinds import PRIORITY, RUN_TIME, PodTemplate, Unit, is_paused, templates, units
from hpkit.cluster.jobs.resources import requests_of, topology_request, types_of
from hpkit.cluster.jobs.scaling import deleted_first
from hpkit.cluster.live.model import Condition, Observed, Queue, Task, without_basics
from hpkit.cluster.live.parse import task_of
from hpkit.cluster.live.placement import Places
from hpkit.cluster.live.state import Jobs
from hpkit.cluster.live.waiting import counted
from hpkit.cluster.live.why import Strategies, fewer_pods, holders, room, start_time
from hpkit.cluster.live.without_task import CohortSimulation, Start
from hpkit.errors import ToolError
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.pods import mapping
from hpkit.text.formatting import listing

__all__ = ["Forecast", "predict", "predict_all", "tasks_of", "within_plans"]

Fate = Literal["now", "borrowing", "unknown", "waits", "never"]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What Kueue does with a job, and why, as text.

    - borrows_from: teams with idle quota that it borrows.
    - preempts: tasks that it preempts to start; preempted: their UIDs. usage: quota that it holds then.
    - may_be_preempted_by: whose tasks can preempt it later.
    - holders: teams that hold the quota for which it waits.
    - remedies: changes that would let it run.
    - runs_at: when it could start, if known; when: that as text with its basis, or why it isn't known.
    """

    task: Task
    fate: Fate
    reason: str
    borrows_from: tuple[str, ...] = ()
    preempts: tuple[str, ...] = ()
    may_be_preempted_by: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    runs_at: datetime | None = None
    when: str = ""
    preempted: Collection[str] = ()
    usage: Mapping[tuple[str, str], Decimal] = field(default_factory=dict)


def tasks_of(documents: Iterable[Any], plan: Plan, observed: Observed) -> Iterator[Task]:
    """Return the tasks that Kueue would create for the jobs in documents; jobs without a team are skipped.

    Kueue admits pods of a Deployment one by one, so each of them is a task. A paused Deployment creates none.
    """
    teams = {team.namespace: team for team in plan.teams}
    jobs = [(each, unit) for each in documents if isinstance(each, Mapping) for unit in units(each)]
    for number, (document, unit) in enumerate(jobs):
        owner: Any = document
        for step in unit.namespaced:
            owner = owner[step]
        metadata = mapping(owner.get("metadata"))
        team = teams.get(str(metadata.get("namespace")))
        if team is not None and not is_paused(unit):
            yield from _tasks(
                unit, str(metadata.get("name") or metadata.get("generateName", "")), number, team, observed, plan
            )


def _tasks(unit: Unit, name: str, number: int, team: TeamPlan, observed: Observed, plan: Plan) -> Iterator[Task]:
    labels = mapping(mapping(unit.content.get("metadata")).get("labels"))
    pods = [template for template in templates(unit) if template.count]
    if any(template.alone for template in pods):
        # Kueue queues the pods, and writes only this label of their Deployment into them (deployment_webhook.go).
        rank = {PRIORITY: labels[PRIORITY]} if labels.get(PRIORITY) else {}
        labels = {**mapping(mapping(pods[0].template.get("metadata")).get("labels")), **rank}
    priority, unranked = _priority(unit, labels, pods, observed)
    sets = [
        {
            "name": f"pods-{index}",
            "count": 1 if template.alone else template.count,
            "minCount": template.least,
            "template": {**template.template, "spec": mapping(template.template.get("spec"))},
            "topologyRequest": topology_request(template.template),
        }
        for index, template in enumerate(pods)
    ]
    run_time = str(labels.get(RUN_TIME, ""))
    requested = [
        {
            "name": f"pods-{index}",
            "resources": _written(requests_of(template, plan), 1 if template.alone else template.count),
        }
        for index, template in enumerate(pods)
    ]
    # All tasks of an object with this name, except that a rollout deletes some pods of a Deployment one by one.
    jobs = Jobs(observed)
    same = (team.namespace, unit.kind, name)
    own = [each for each in observed.tasks if (each.namespace, *jobs.owner(each)) == same]
    existing = [each.uid for each in sorted(own, key=lambda each: bool(each.holds))]
    first = len(existing)
    if unit.kind == "Deployment":
        first -= (holding := sum(bool(each.holds) for each in own)) - deleted_first(
            mapping(unit.content.get("spec")), holding
        )
    for copy in range(max((template.count if template.alone else 1 for template in pods), default=0)):
        uid = f"checked-{number}-{copy}"
        document = {
            "metadata": {
                "name": uid,
                "uid": uid,
                "namespace": team.namespace,
                "creationTimestamp": observed.time.isoformat(),
                "ownerReferences": [{"kind": unit.kind, "name": name, "controller": True}],
            },
            "spec": {
                "queueName": team.local_queue,
                "priority": priority,
                "podSets": sets,
                "maximumExecutionTimeSeconds": int(run_time) if run_time.isdecimal() else None,
            },
            "status": {"resourceRequests": requested},
        }
        task = task_of(document, {(team.namespace, team.local_queue): team.cluster_queue})
        yield replace(task, replaces=tuple(existing[: first + copy]) if existing else None, unranked=unranked)


def _priority(
    unit: Unit, labels: Mapping[Any, Any], pods: Iterable[PodTemplate], observed: Observed
) -> tuple[int, str]:
    """Return the priority that Kueue gives to a task, and why it isn't known.

    Sources: Kueue 0.19.2, ExtractPriority of pkg/controller/jobframework, and PriorityClass of Kubeflow's kinds.
    """
    policy = mapping(mapping(mapping(unit.content.get("spec")).get("runPolicy")).get("schedulingPolicy"))
    of_pods = (mapping(each.template.get("spec")).get("priorityClassName") for each in pods)
    label, name = labels.get(PRIORITY), next(filter(None, (policy.get("priorityClass"), *of_pods)), "")
    kind, name, classes = (
        ("WorkloadPriorityClass", label, observed.priority_classes)
        if label
        else ("PriorityClass", name, observed.pod_priorities)
    )
    if name in classes or not name:
        return classes.get(name, 0), ""
    if f"{kind.lower()}es" in observed.unread:
        return 0, f"its priority isn't known, because the {kind} {name} couldn't be read"
    return 0, f"Kueue creates no task for it, because the {kind} {name} doesn't exist"


def _written(per_pod: Mapping[str, int], count: int) -> dict[str, str]:
    return {name: f"{amount * count}{'m' if name == 'cpu' else ''}" for name, amount in per_pod.items()}


def predict(
    observed: Observed,
    task: Task,
    *,
    fair_sharing: Strategies,
    starting: Collection[str] = (),
    ended: Collection[str] = (),
) -> Forecast:
    """Return what Kueue does with a task that doesn't exist yet.

    starting: UIDs of such tasks that start before. ended: UIDs of tasks that these preempt.

    Raises ToolError if queues couldn't be read, or the simulator isn't installed.
    """
    queue = next((each for each in observed.queues if each.name == task.queue), None)
    if queue is None and "clusterqueues" in observed.unread:
        raise ToolError("the queues couldn't be read. Use a role that can list clusterqueues.kueue.x-k8s.io")
    if queue is None:
        return Forecast(task, "never", f"its queue {task.queue} doesn't exist; deploy the team's quota first")
    if not queue.active:
        return Forecast(task, "waits", f"its queue admits nothing: {queue.problem}")
    if stop := observed.stop(task):
        return Forecast(task, "waits", stop)
    jobs = Jobs(observed)
    simulation = CohortSimulation(jobs, task, queue, fair_sharing)
    never = simulation.never()
    if never is not None:
        # Without nodes, it can still be admitted, and hold quota.
        start, preempted = simulation.start(task)
        fewer, usage = tuple(fewer_pods(simulation, task, never=True)), start.usage if start else {}
        return Forecast(task, "never", never, remedies=fewer, preempted=preempted, usage=usage)
    if task.unranked:
        return Forecast(task, "unknown" if "couldn't be read" in task.unranked else "never", task.unranked)
    start, preempted = simulation.start(task)
    names = {each.uid: f"{each.owner_name} of {each.team}" for each in observed.tasks}
    preempts = tuple(names.get(each, f"tasks that couldn't be read ({each})") for each in preempted)
    if start is None and (alone := simulation.lacking()):
        return Forecast(task, "waits", f"even if nothing else ran, {alone}")
    if start is None:
        runs_at, words = start_time(observed, simulation)
        return Forecast(
            task,
            "waits",
            f"{'even after it preempts others, ' if preempts else ''}too little of its quota, and of what other teams "
            "lend, is free",
            preempts=preempts,
            preempted=preempted,
            holders=tuple(holders(simulation, observed, task, queue)),
            remedies=tuple(fewer_pods(simulation, task)),
            runs_at=runs_at,
            when=words,
        )
    places = Places(jobs, starting)
    gone = (*preempted, *ended)
    lacking = places.lacking(task, queue, without=gone)
    if lacking:
        queued = any(observed.flavors[name].topology for name, _ in queue.quotas if name in observed.flavors)
        whose = "the others" if lacking.startswith("only ") else "its pods"
        then = "Kueue keeps it queued" if queued else f"Kueue admits it, and it holds quota while {whose} wait"
        remedies = tuple(room(jobs, task, queue, simulation, places, gone))
        reason = f"{'after it preempts others, ' if preempts else ''}quota is free, but {lacking}. {then}"
        forecast = Forecast(task, "waits", reason, remedies=remedies)
        return forecast if queued else replace(forecast, preempts=preempts, preempted=preempted, usage=start.usage)
    unknown = places.unknown(task, queue, without=gone)
    return Forecast(
        task,
        "unknown" if unknown else "borrowing" if start.borrowed else "now",
        "; ".join(filter(None, (_reason(start, task), unknown, *_limits(observed, start, preempted, task)))),
        borrows_from=_teams(observed, start.lenders),
        preempts=preempts,
        may_be_preempted_by=tuple(_preemptors(observed, queue, start, places.rank(task), fair=bool(fair_sharing))),
        preempted=preempted,
        usage=start.usage,
    )


def _reason(start: Start, task: Task) -> str:
    if not start.borrowed:
        return f"it fits the own quota of {task.team}"
    names = without_basics(name for _, name in start.borrowed)
    scarce = sorted(key for key in start.borrowed if key[1] in names)
    amounts = (f"{counted(start.borrowed[key], key[1])} of {key[0]}" for key in scarce)
    return f"it borrows {', '.join(amounts)}"


def _limits(observed: Observed, start: Start, preempted: Collection[str], task: Task) -> Iterator[str]:
    """Yield what a start doesn't include."""
    if start.pods < task.pods:
        yield f"it starts with {start.pods} of its {task.pods} pods (partial admission)"
    victims = [each for each in observed.tasks if each.uid in preempted]
    seconds = [each.spec.get("terminationGracePeriodSeconds", 30) for victim in victims for each in victim.pod_sets]
    if seconds:
        yield f"the pods that it preempts have up to {max(seconds)} s to end first"
    if task.owner_kind == "Pod":
        yield "if it's preempted, nothing creates it again"


def _teams(observed: Observed, queues: Iterable[str]) -> tuple[str, ...]:
    teams = {each.name: each.team or "idle capacity" for each in observed.queues}
    return tuple(teams[each] for each in queues)


def _preemptors(observed: Observed, queue: Queue, start: Start, rank: float, *, fair: bool) -> Iterator[str]:
    """Yield whose tasks can preempt the task later, by the queues' policies; rank: the priority of its pods."""
    if any(value > rank for name, value in observed.pod_priorities.items() if not name.startswith("system-")):
        yield "pods with a higher PriorityClass, if nodes have no room"
    if queue.within != "Never":
        equal = " or, if they're older, equal" if queue.within == "LowerOrNewerEqualPriority" else ""
        yield f"tasks of its own team with a higher{equal} priority"
    if not start.borrowed:
        return
    peers = [each for each in observed.queues if each.cohort == queue.cohort and each.name != queue.name]
    peers = [each for each in peers if any(each.quotas[key].nominal for key in start.borrowed if key in each.quotas)]
    for policy, words in (("Any", ""), ("LowerPriority", ", by tasks with a higher priority")):
        teams = _teams(observed, (each.name for each in peers if each.reclaim == policy))
        if teams:
            yield f"{listing(teams)}, to reclaim quota{words}"
    if fair:
        yield "teams with less than their fair share of lent capacity"


def predict_all(observed: Observed, tasks: Iterable[Task], *, fair_sharing: Strategies) -> Sequence[Forecast]:
    """Return what Kueue does with tasks that are submitted one after the other."""
    tasks = tuple(tasks)
    forecasts = _in_order(observed, tasks, fair_sharing, ())
    ended = {uid for each in forecasts for uid in each.preempted}
    # A preemption by a later pod frees nodes for earlier ones, which Kueue has admitted.
    return _in_order(observed, tasks, fair_sharing, ended) if ended else forecasts


def within_plans(forecast: Forecast, plan: Plan, ends: Mapping[str, datetime], now: datetime) -> Forecast:
    """Return a forecast that says if the job can run past the end of its nodes' training plans; ends: by ARN."""
    task = forecast.task
    types = {each for pods in task.pod_sets for each in types_of({"spec": pods.spec}, plan)}
    quota = {
        part.instance_type for team in plan.teams if team.cluster_queue == task.queue for part in team.quota_resources
    }
    groups = [each for each in plan.groups if {*each.spec.types} & types & quota]
    known = [ends.get(str(each.spec.training_plan_arn)) for each in groups]
    last = max((each for each in known if each is not None), default=now)
    is_past = task.longest is not None and (forecast.runs_at or now) + timedelta(seconds=task.longest) > last
    if forecast.fate == "never" or not known or None in known or not is_past:
        return forecast
    words = f"its run time goes past {last:%Y-%m-%d %H:%M} UTC, when the training plan of its nodes ends"
    return replace(forecast, reason=f"{forecast.reason}; {words}")


def _in_order(
    observed: Observed, tasks: Iterable[Task], fair_sharing: Strategies, ended: Collection[str]
) -> list[Forecast]:
    forecasts: list[Forecast] = []
    starting: list[str] = []
    for task in tasks:
        # A rollout continues only while new pods start.
        if not forecasts or forecasts[-1].task.owner_name != task.owner_name or forecasts[-1].task.uid in starting:
            observed = Jobs(observed).without(task.replaces or ())
        forecast = predict(observed, task, fair_sharing=fair_sharing, starting=starting, ended=ended)
        if task.replaces is not None:
            existing = f"the existing {task.owner_kind}"
            is_rollout = task.owner_kind == "Deployment"
            words = f"it replaces {existing}" if is_rollout else f"{existing} of its name must be deleted first"
            forecast = replace(forecast, reason=f"{forecast.reason}; {words}")
        forecasts.append(forecast)
        if forecast.fate in ("now", "borrowing", "unknown"):
            starting.append(task.uid)
        # Kueue has admitted it before later tasks exist, so they can preempt it.
        conditions = {"Admitted": Condition(True, "", "", observed.time)} if forecast.usage else {}
        ended = {*ended, *forecast.preempted}
        before = (
            replace(each, usage={}, conditions={}) if each.uid in forecast.preempted else each
            for each in observed.tasks
        )
        observed = replace(observed, tasks=(*before, replace(task, usage=forecast.usage, conditions=conditions)))
    return forecasts
