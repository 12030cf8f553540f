"""Runs a scenario on a plan and notes what becomes of every task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hpkit.catalog import find_instance_type
from hpkit.catalog.prices import Price, near_price
from hpkit.errors import InputError
from hpkit.plan.model import Plan
from hpkit.scenario.read import Located, Source
from hpkit.scenario.workloads import Task, Tasks, model_for
from hpkit.simulate.meters import Amount, Lending, Timeline, Waits
from hpkit.simulate.report import QUEUED, ClusterReport, Eviction, Report, TaskReport, TeamReport, reason_in_words
from hpkit.whatif import IDLE_QUEUE, Event, Model, Simulator, Workload

__all__ = ["MOST_TASKS", "Recorder", "simulate", "simulate_tasks"]

MOST_TASKS = 100_000
"""So many tasks a report holds one by one; all are counted."""

_HOUR = 3600.0
# What is less than this is left over from sums of fractions.
_LEAST = 1e-6


def simulate(
    plan: Plan, source: Source, *, seed: int | None = None, lenient: bool = False, keep: int = MOST_TASKS
) -> Report:
    """Return what becomes of a scenario's tasks on a plan.

    seed: another draw of the generators. lenient: count a task that can never run instead of refusing it. keep: how
    many tasks the report holds one by one. InputError for what is wrong with a task, CatalogError for an instance type
    without figures.
    """
    return simulate_tasks(plan, source, source.tasks(seed=seed), lenient=lenient, keep=keep)


def simulate_tasks(
    plan: Plan, source: Source, located: Iterable[Located], *, lenient: bool = False, keep: int = MOST_TASKS
) -> Report:
    """Return the same of tasks of the scenario that were read or drawn before, in the order of their time."""
    scenario = source.scenario
    model = model_for(plan, scenario.topology)
    recorder = Recorder(plan, model, keep=keep)
    simulator = Simulator(model)
    tasks = Tasks(plan, model).workloads(located)
    coming = recorder.taken(tasks, lenient=lenient, until=scenario.until)
    flapping = simulator.run_clock(coming, until=scenario.until, on_event=recorder.note)
    waiting = {each.name: each.reason or QUEUED for each in (simulator.pending() if keep else ())}
    if scenario.until is None:
        return recorder.report(source.file, simulator.now, flapping, waiting=waiting, is_over=True)
    return recorder.report(source.file, scenario.until, flapping, waiting=waiting)


class _State:
    """A task that is in the system."""

    __slots__ = ("report", "running", "since")

    def __init__(self, report: TaskReport) -> None:
        self.report = report
        self.running = False
        self.since = report.submit


class _Team:
    """What is counted of a team."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("submitted", "admitted", "finished", "evicted", "evicts"), 0)
        self.never: list[str] = []
        self.waits = Waits()
        self.used: dict[str, Amount] = {}
        self.over: dict[str, Amount] = {}
        self.idle: dict[str, Amount] = {}
        self.waiting = Amount()
        self.total = Amount()
        self.lost = 0.0


class Recorder:
    """Follows the events of a run, simulated or real, and makes the report of them."""

    def __init__(self, plan: Plan, model: Model, *, keep: int = MOST_TASKS) -> None:
        """Take the plan and the model of its queues; keep: how many tasks are kept one by one."""
        self._plan = plan
        self._keep = keep
        self._names = tuple(team.name for team in plan.teams)
        self._teams = {name: _Team() for name in self._names}
        self._timeline = Timeline(self._names)
        self._guarantee = _guarantees(plan, model)
        self._lends = {team.name: team.lends for team in plan.teams}
        self._open: dict[str, _State] = {}
        self._coming: dict[str, Task] = {}
        self._done: list[TaskReport] = []
        self._nevers: list[_State] = []
        self._omitted = 0
        self._preemptions = 0
        self._waited_hours: dict[str, float] = {}
        self._prices: dict[str, Price | None] = {}
        self._lending: dict[str, Lending] = {kind: Lending() for kind in self._guarantee[""]}
        for name, team in self._teams.items():
            for kind, amount in self._guarantee[name].items():
                team.idle.setdefault(kind, Amount()).change(0.0, amount)
                if self._lends[name]:
                    self._lending[kind].idle(0.0, name, amount)

    def taken(self, tasks: Iterable[Task], *, lenient: bool, until: float | None) -> Iterator[Workload]:
        """Return the workloads of tasks as they come, and remember whose they are."""
        for task in tasks:
            if until is not None and task.workload.created >= until:
                return
            name = task.workload.name
            if name in self._open or name in self._coming:
                raise InputError(f"{task.place}: there are two tasks {name} at once; names must differ")
            if task.never is not None:
                if not lenient:
                    raise InputError(f"{task.place}: task {name} can never run: it {task.never}")
                self._never(task)
                continue
            self._coming[name] = task
            yield task.workload

    def note(self, event: Event) -> None:
        """Take up what happened."""
        if event.kind == "Submitted":
            self._submitted(event)
        elif event.kind == "Admitted":
            self._admitted(event)
        elif event.kind == "Preempted":
            self._preempted(event)
        else:
            self._finished(event)

    def _never(self, task: Task) -> None:
        team = self._teams[task.team]
        team.counts["submitted"] += 1
        team.never.append(task.workload.name)
        report = _report(task)
        report.never = task.never
        self._nevers.append(_State(report))

    def _submitted(self, event: Event) -> None:
        task = self._coming.pop(event.workload)
        team = self._teams[task.team]
        team.counts["submitted"] += 1
        self._open[event.workload] = _State(_report(task))
        self._change(team.waiting, task.team, "waiting", event.time, task.instances)

    def _admitted(self, event: Event) -> None:
        state = self._open[event.workload]
        report = state.report
        team = self._teams[report.team]
        self._waited(state, event.time)
        if report.admitted is None:
            report.admitted = event.time
            team.counts["admitted"] += 1
        self._change(team.waiting, report.team, "waiting", event.time, -report.instances)
        borrowed = self._more_over(report)
        report.borrowed = _lenders(self._free(report), borrowed) if borrowed > 0 else {}
        self._use(report, event.time, report.instances)
        report.nodes = {node: pods for got in event.pod_sets for node, pods in got.domains}
        state.since, state.running = event.time, True

    def _preempted(self, event: Event) -> None:
        state = self._open[event.workload]
        report = state.report
        team = self._teams[report.team]
        by = self._open[event.by].report.team if event.by in self._open else ""
        lost = event.time - state.since
        report.evictions.append(Eviction(event.time, event.by, by, event.detail, lost))
        team.lost += lost * report.instances
        team.counts["evicted"] += 1
        if by:
            self._teams[by].counts["evicts"] += 1
        self._preemptions += 1
        self._use(report, event.time, -report.instances)
        self._change(team.waiting, report.team, "waiting", event.time, report.instances)
        state.since, state.running = event.time, False

    def _finished(self, event: Event) -> None:
        state = self._open.pop(event.workload)
        report = state.report
        team = self._teams[report.team]
        report.finished = event.time
        team.counts["finished"] += 1
        team.waits.add(report.wait)
        self._use(report, event.time, -report.instances)
        self._put_away(report)

    def _put_away(self, report: TaskReport) -> None:
        if len(self._done) < self._keep:
            self._done.append(report)
        else:
            self._omitted += 1

    def _waited(self, state: _State, now: float) -> None:
        waited = now - state.since
        state.report.wait += waited
        if waited:
            kind = state.report.instance_type
            self._waited_hours[kind] = self._waited_hours.get(kind, 0.0) + waited * state.report.instances / _HOUR

    def _use(self, report: TaskReport, now: float, by: float) -> None:
        team, kind = self._teams[report.team], report.instance_type
        mine = self._guarantee[report.team].get(kind, 0.0)
        if kind not in team.used:
            for amounts in (team.used, team.over, team.idle):
                amounts.setdefault(kind, Amount())
        used, over, idle = team.used[kind], team.over[kind], team.idle[kind]
        used.change(now, by)
        more_over = max(0.0, used.value - mine) - over.value
        more_idle = max(0.0, mine - used.value) - idle.value
        if more_over:
            over.change(now, more_over)
            self._lending[kind].borrow(now, more_over)
        if more_idle:
            idle.change(now, more_idle)
            if self._lends[report.team]:
                self._lending[kind].idle(now, report.team, more_idle)
        self._change(team.total, report.team, "used", now, by)

    def _more_over(self, report: TaskReport) -> float:
        """Return how much more than its own quota a team will use with a task."""
        team, kind = self._teams[report.team], report.instance_type
        used = _value(team.used, kind) + report.instances
        return max(0.0, used - self._guarantee[report.team].get(kind, 0.0)) - _value(team.over, kind)

    def _change(self, amount: Amount, team: str, kind: str, now: float, by: float) -> None:
        if amount.value and now > amount.since:
            self._timeline.add(team, kind, amount.since, now, amount.value)
        amount.change(now, by)

    def _free(self, report: TaskReport) -> list[tuple[float, str]]:
        """Return how much of whose quota is idle and not lent, the most first."""
        lending = self._lending[report.instance_type]
        free = [(lending.free(name), name) for name in self._names if self._lends[name] and name != report.team]
        return sorted(free, key=lambda each: (-each[0], each[1]))

    def _price(self, kind: str) -> Price | None:
        if kind not in self._prices:
            self._prices[kind] = near_price(kind, self._plan.spec.region)
        return self._prices[kind]

    def report(
        self,
        scenario: str,
        end: float,
        flapping: Iterable[str] = (),
        *,
        waiting: Mapping[str, str] | None = None,
        is_over: bool = False,
    ) -> Report:
        """Return the report at a time.

        waiting: Kueue's reason for each task that waits then. is_over: nothing more will happen, so that who waits then
        waits for ever, except those that preempt each other without end.
        """
        reasons, restless = waiting or {}, frozenset(flapping)
        for state in self._nevers:
            self._waits_for_ever(state, end)
        rest = sorted(self._open.values(), key=lambda state: (state.report.submit, state.report.name))
        still: dict[str, int] = {}
        for state in rest:
            report = state.report
            if not state.running:
                self._waited(state, end)
                report.waits_for = reasons.get(report.name, QUEUED)
                if is_over and report.name not in restless:
                    report.never = f"still waits when nothing more happens: {reason_in_words(report.waits_for)}"
                    self._teams[report.team].never.append(report.name)
                else:
                    still[report.team] = still.get(report.team, 0) + 1
            self._teams[report.team].waits.add(report.wait)
            self._put_away(report)
        for name, team in self._teams.items():
            self._change(team.total, name, "used", end, 0.0)
            self._change(team.waiting, name, "waiting", end, 0.0)
        teams = tuple(self._team(plan.name, plan.fair_share_weight, end, still) for plan in self._plan.teams)
        tasks = tuple(sorted(self._done, key=lambda task: (task.submit, task.name)))
        cluster = self._cluster(teams, end, tuple(sorted(restless)))
        series = self._timeline.series(end)
        return Report(
            self._plan.stack, scenario, end, cluster, teams, tasks, self._omitted, self._timeline.step, series
        )

    def _waits_for_ever(self, state: _State, end: float) -> None:
        """Count a task that can never run as one that waits from its submission on."""
        report = state.report
        team = self._teams[report.team]
        self._waited(state, end)
        team.waits.add(report.wait)
        team.waiting.area += report.instances * report.wait
        self._timeline.add(report.team, "waiting", report.submit, end, report.instances)
        self._put_away(report)

    def _team(self, name: str, weight: int, end: float, waiting: dict[str, int]) -> TeamReport:
        team = self._teams[name]
        median, p95 = team.waits.quantiles(0.5, 0.95)
        used, wanted = team.total.until(end), team.waiting.until(end)
        return TeamReport(
            name=name,
            guarantee=sum(self._guarantee[name].values()),
            weight=weight,
            submitted=team.counts["submitted"],
            admitted=team.counts["admitted"],
            finished=team.counts["finished"],
            waiting=waiting.get(name, 0),
            never_tasks=tuple(team.never),
            used=used / _HOUR,
            borrowed=sum(each.until(end) for each in team.over.values()) / _HOUR,
            lent=sum(each.lent(end, name) for each in self._lending.values()) / _HOUR,
            lost=team.lost / _HOUR,
            idle=sum(each.until(end) for each in team.idle.values()) / _HOUR,
            service=used / (used + wanted) if used + wanted else None,
            wait_median=median,
            wait_p95=p95,
            wait_most=team.waits.most,
            evicted=team.counts["evicted"],
            evicts=team.counts["evicts"],
        )

    def _cluster(self, teams: tuple[TeamReport, ...], end: float, flapping: tuple[str, ...]) -> ClusterReport:
        capacity = sum(self._guarantee[""].values())
        hours = end / _HOUR
        guaranteed = sum(team.guarantee for team in teams)
        services = [team.service for team in teams if team.service is not None]
        squares = sum(each * each for each in services)
        waited = sum(team.waiting.until(end) for team in self._teams.values()) / _HOUR
        return ClusterReport(
            capacity=capacity,
            utilization=sum(team.used for team in teams) / (capacity * hours) if capacity and hours else 0.0,
            idle_guarantee=sum(team.idle for team in teams) / (guaranteed * hours) if guaranteed and hours else 0.0,
            waited=waited,
            wait_cost=self._wait_cost(),
            priced_in=self._priced_in(),
            fairness=sum(services) ** 2 / (len(services) * squares) if squares else 1.0,
            preemptions=self._preemptions,
            flapping=flapping,
        )

    def _wait_cost(self) -> float | None:
        """Return what was waited for at list price; None where one is not known."""
        cost = 0.0
        for kind, hours in self._waited_hours.items():
            price = self._price(kind)
            if price is None:
                return None
            cost += hours * float(price.hourly)
        return cost

    def _priced_in(self) -> tuple[str, ...]:
        found = {price.region for kind in self._waited_hours if (price := self._price(kind)) is not None}
        return tuple(sorted(found - {self._plan.spec.region}))


def _guarantees(plan: Plan, model: Model) -> dict[str, dict[str, float]]:
    """Return each team's quota in instances by type, and under "" what there is of each type."""
    names = {team.cluster_queue: team.name for team in plan.teams}
    found: dict[str, dict[str, float]] = {name: {} for name in names.values()}
    total: dict[str, float] = {}
    for queue in model.queues:
        for flavor in (each for group in queue.resource_groups for each in group.flavors):
            kind = find_instance_type(flavor.name)
            if kind is None:
                continue
            name, whole = (kind.accelerator_resource, kind.accelerators) if kind.accelerators else ("cpu", None)
            if name is None or name not in flavor.resources:
                continue
            amount = flavor.resources[name].nominal / (whole or 1000 * (kind.vcpu or 1))
            total[flavor.name] = total.get(flavor.name, 0.0) + amount
            if queue.name != IDLE_QUEUE:
                found[names[queue.name]][flavor.name] = amount
    for kind_name, capacity in plan.capacity.items():
        if kind_name in total:
            # Elastic quota counts on nodes beyond those that always stand.
            total[kind_name] = max(total[kind_name], float(capacity.guaranteed))
    return {**found, "": total}


def _lenders(free: Iterable[tuple[float, str]], borrowed: float) -> dict[str, float]:
    """Return from whom so much is taken: from whom most is free first; what is no team's is under ""."""
    found: dict[str, float] = {}
    for amount, name in free:
        if amount > _LEAST and borrowed > _LEAST:
            found[name] = min(amount, borrowed)
            borrowed -= found[name]
    if borrowed > _LEAST:
        found[""] = borrowed
    return found


def _report(task: Task) -> TaskReport:
    return TaskReport(
        task.workload.name,
        task.team,
        task.instance_type,
        task.instances,
        task.workload.priority,
        task.workload.created,
    )


def _value(amounts: dict[str, Amount], kind: str) -> float:
    return amounts[kind].value if kind in amounts else 0.0
