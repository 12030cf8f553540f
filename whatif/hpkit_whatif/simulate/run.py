"""Runs a scenario on a plan and notes what becomes of every task."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hpkit.catalog import instance_type
from hpkit.catalog.prices import Price, dated_regions, near_price
from hpkit.errors import InputError
from hpkit.plan.model import Plan
from hpkit_whatif.admission import Event, Model, Simulator, Workload
from hpkit_whatif.scenario.read import Located, Source
from hpkit_whatif.scenario.workloads import Task, Tasks, scenario_model
from hpkit_whatif.simulate.ledger import Gauge, Ledger, Timeline, Waits
from hpkit_whatif.simulate.quotas import over_reserved, type_quotas
from hpkit_whatif.simulate.report import (
    PAUSED,
    QUEUED,
    Admission,
    ClusterReport,
    Eviction,
    Report,
    Skipped,
    TaskReport,
    TeamReport,
    reason_in_words,
)

__all__ = ["MOST_TASKS", "Recorder", "simulate", "simulate_tasks"]

MOST_TASKS = 100_000
"""So many tasks a report lists, in the order of their submission; all are counted."""
MOST_SKIPPED = 1000
"""So many tasks that were left out are named in JSON; all are counted."""
MOST_SAID = 10
"""So many are named in warnings."""

_HOUR = 3600.0
_NO_PLACES = (
    "nodes aren't simulated, because the scenario has no `topology`: a task that fits the quota starts, even if no "
    "node has room for its pods. Describe the nodes in `topology`"
)


def simulate(
    plan: Plan,
    source: Source,
    *,
    seed: int | None = None,
    lenient: bool = False,
    skip_impossible: bool = False,
    keep: int = MOST_TASKS,
) -> Report:
    """Return the result of a scenario's tasks on a plan.

    seed: another draw of the generators. lenient: count a task that can never run as waiting to the end, instead of
    rejecting it; skip_impossible: continue without it. keep: number of tasks that the report lists. Raises InputError
    for an invalid task, or if no task is submitted; CatalogError for an instance type without values.
    """
    tasks = source.tasks(seed=seed)
    report = simulate_tasks(plan, source, tasks, lenient=lenient, skip_impossible=skip_impossible, keep=keep)
    if not any(team.submitted for team in report.teams):
        raise InputError(f"{source.file}: nothing can be simulated: {_why_nothing(report)}")
    places = plan.topology_aware_scheduling and any(instance_type(each).network_layers for each in plan.capacity)
    if places and not source.scenario.topology:
        return replace(report, warnings=(*report.warnings, _NO_PLACES))
    return report


def _why_nothing(report: Report) -> str:
    if report.late:
        first = "the one task" if report.late == 1 else f"the first of {report.late:,} tasks"
        return f"{first} comes after `until`"
    if report.impossible:
        tasks = "its one task" if report.impossible == 1 else f"all {report.impossible:,} tasks"
        return f"{tasks} can never run. {report.skipped[0].name} {report.skipped[0].why}"
    return "no task comes"


def simulate_tasks(
    plan: Plan,
    source: Source,
    located: Iterable[Located],
    *,
    lenient: bool = False,
    skip_impossible: bool = False,
    keep: int = MOST_TASKS,
) -> Report:
    """Return the same of tasks of the scenario that were read or drawn before, in the order of their time."""
    scenario = source.scenario
    model = scenario_model(plan, scenario.topology)
    recorder = Recorder(plan, model, keep=keep)
    simulator = Simulator(model)
    tasks = Tasks(plan, model).workloads(located)
    coming = recorder.taken(tasks, lenient=lenient, skip_impossible=skip_impossible, until=scenario.until)
    flapping = simulator.run_clock(coming, until=scenario.until, on_event=recorder.note)
    waiting = {each.name: each.reason for each in (simulator.pending() if keep else ()) if each.reason}
    if scenario.until is None:
        return recorder.report(source.file, simulator.now, flapping, waiting=waiting, is_over=True)
    return recorder.report(source.file, scenario.until, flapping, waiting=waiting)


class _State:
    """A task that is in the system."""

    __slots__ = ("amounts", "report", "running", "since")

    def __init__(self, report: TaskReport, amounts: list[int]) -> None:
        self.report = report
        # Of each resource of its instance type that counts.
        self.amounts = amounts
        self.running = False
        self.since = report.submit


class _Team:
    """The counters of a team."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("submitted", "admitted", "finished", "evicted", "evicts"), 0)
        self.never: list[str] = []
        self.waits = Waits()
        self.waiting = Gauge()
        self.running = Gauge()
        self.used = Gauge()
        self.lost = 0.0


class Recorder:
    """Follows the events of a run, simulated or real, and creates its report."""

    def __init__(self, plan: Plan, model: Model, *, keep: int = MOST_TASKS) -> None:
        """Create one for a plan and the model of its queues; keep: number of tasks that are listed."""
        self._plan = plan
        self._gang = model.wait_for_pods_ready
        self._keep = keep
        self._tasks: list[TaskReport] = []
        self._omitted = 0
        self._names = tuple(team.name for team in plan.teams)
        self._paused = {team.name for team in plan.teams if team.spec.activation_state == "Disabled"}
        self._teams = {name: _Team() for name in self._names}
        self._timeline = Timeline(self._names)
        self._quotas = type_quotas(plan, model)
        lenders = [team.name for team in plan.teams if team.lends]
        self._ledgers = {kind: Ledger(quota, self._names, lenders) for kind, quota in self._quotas.items()}
        self._open: dict[str, _State] = {}
        self._coming: dict[str, Task] = {}
        self._nevers: deque[Task] = deque()
        self._never_reports: list[TaskReport] = []
        self._late = 0
        self._impossible = 0
        self._skipped: list[Skipped] = []
        self._preemptions = 0
        self._waited_hours: dict[str, float] = {}
        self._prices: dict[str, Price | None] = {}

    def taken(
        self, tasks: Iterable[Task], *, lenient: bool, until: float | None, skip_impossible: bool = False
    ) -> Iterator[Workload]:
        """Return the workloads of tasks as they arrive, and remember their teams; names must be unique.

        Tasks from `until` on are checked and counted. Raises InputError for an invalid task.
        """
        for task in tasks:
            if until is not None and task.workload.created >= until:
                self._late += 1
                continue
            name = task.workload.name
            if task.never is not None:
                if skip_impossible:
                    self._skip(task, task.never)
                    continue
                if not lenient:
                    raise InputError(
                        f"{task.place}: task {name} can never run: it {task.never}. Request less, or skip such "
                        "tasks with --skip-impossible"
                    )
                self._nevers.append(task)
                continue
            if until is None and self._gang is not None and self._gang.retries_forever(task.workload.start):
                raise InputError(
                    f"{task.place}: pods of task {name} are never ready within the timeout of gang scheduling, so it "
                    "would be retried forever; set `until` in the scenario, or "
                    "`gangScheduling.requeuingStrategy.backoffLimitCount` in the organization file"
                )
            self._coming[name] = task
            yield task.workload

    def note(self, event: Event) -> None:
        """Process an event."""
        if self._nevers:
            self._never_until(event.time)
        if event.kind == "Submitted":
            self._submitted(event)
        elif event.kind == "Admitted":
            self._admitted(event)
        elif event.kind in ("Preempted", "TimedOut"):
            self._evicted(event)
        elif event.kind == "Deactivated":
            self._deactivated(event)
        else:
            self._finished(event)

    def _skip(self, task: Task, why: str) -> None:
        self._impossible += 1
        if len(self._skipped) < MOST_SKIPPED:
            self._skipped.append(Skipped(task.place, task.workload.name, task.team, why))

    def _left_out(self) -> Iterator[str]:
        """Report which tasks aren't in any figure."""
        for each in self._skipped[:MOST_SAID]:
            yield f"task {each.name} of {each.team} is left out: it {each.why} ({each.place})"
        if self._impossible > MOST_SAID:
            yield f"{self._impossible:,} tasks are left out, because they can never run"
        if self._late:
            comes, is_left = ("task comes", "is") if self._late == 1 else ("tasks come", "are")
            yield f"{self._late:,} {comes} after the end of the scenario (`until`), and {is_left} left out"

    def _never_until(self, now: float) -> None:
        """Count the waiting time of tasks that can never run from their submission.

        They are read before the clock starts.
        """
        while self._nevers and self._nevers[0].workload.created <= now:
            task = self._nevers.popleft()
            team, report = self._teams[task.team], _report(task)
            team.counts["submitted"] += 1
            team.never.append(report.name)
            report.never = task.never
            self._list(report)
            self._never_reports.append(report)
            self._change(team.waiting, task.team, "waiting", report.submit, task.instances)

    def _submitted(self, event: Event) -> None:
        task = self._coming.pop(event.workload)
        team = self._teams[task.team]
        team.counts["submitted"] += 1
        report = _report(task)
        # A rehearsal's clock can be coarser than a scenario's: a task that is admitted immediately hasn't waited.
        report.submit = event.time
        self._list(report)
        self._open[event.workload] = _State(report, self._amounts(task))
        self._change(team.waiting, task.team, "waiting", event.time, task.instances)

    def _list(self, report: TaskReport) -> None:
        if len(self._tasks) < self._keep:
            self._tasks.append(report)
        else:
            self._omitted += 1

    def _admitted(self, event: Event) -> None:
        state = self._open[event.workload]
        report = state.report
        team = self._teams[report.team]
        self._waited(report, state.since, event.time)
        if not report.admissions:
            team.counts["admitted"] += 1
        self._change(team.waiting, report.team, "waiting", event.time, -report.instances)
        borrowed = self._run(state, event.time)
        nodes = {node: pods for got in event.pod_sets for node, pods in got.domains}
        report.admissions.append(Admission(event.time, borrowed, nodes))
        state.since, state.running = event.time, True

    def _evicted(self, event: Event) -> None:
        state = self._open[event.workload]
        report = state.report
        team = self._teams[report.team]
        by = self._open[event.by].report.team if event.by in self._open else ""
        lost = event.time - state.since
        report.evictions.append(Eviction(event.time, event.by, by, event.detail, lost))
        team.lost += lost * report.instances
        if event.kind == "Preempted":
            team.counts["evicted"] += 1
            self._preemptions += 1
        if by:
            self._teams[by].counts["evicts"] += 1
        self._stop(state, event.time)
        self._change(team.waiting, report.team, "waiting", event.time, report.instances)
        state.since, state.running = event.time, False

    def _deactivated(self, event: Event) -> None:
        state = self._open.pop(event.workload)
        report = state.report
        team = self._teams[report.team]
        lost = event.time - state.since
        report.evictions.append(Eviction(event.time, "", "", event.detail, lost))
        report.never = "is deactivated: its pods were not ready in time, as often as Kueue retries it"
        team.lost += lost * report.instances
        team.never.append(report.name)
        team.waits.add(report.wait)
        self._stop(state, event.time)

    def _finished(self, event: Event) -> None:
        state = self._open.pop(event.workload)
        report = state.report
        team = self._teams[report.team]
        report.finished = event.time
        team.counts["finished"] += 1
        team.waits.add(report.wait)
        self._stop(state, event.time)

    def _waited(self, report: TaskReport, since: float, now: float) -> None:
        waited = now - since
        report.wait += waited
        if waited:
            kind = report.instance_type
            self._waited_hours[kind] = self._waited_hours.get(kind, 0.0) + waited * report.instances / _HOUR

    def _run(self, state: _State, now: float) -> dict[str, float]:
        """Add a task's usage; return how much it borrows from whom."""
        report = state.report
        ledger = self._ledgers[report.instance_type]
        account = ledger.account(report.team)
        before = account.in_use
        borrowed = ledger.begin(now, report.name, report.team, state.amounts)
        self._used(report, now, report.instances, account.in_use - before)
        return borrowed

    def _stop(self, state: _State, now: float) -> None:
        report = state.report
        ledger = self._ledgers[report.instance_type]
        account = ledger.account(report.team)
        before = account.in_use
        ledger.end(now, report.name, report.team, state.amounts)
        self._used(report, now, -report.instances, account.in_use - before)

    def _used(self, report: TaskReport, now: float, instances: float, used: float) -> None:
        """Count running tasks one by one, and usage by team, because tasks can share an instance."""
        team = self._teams[report.team]
        team.running.change(now, instances)
        self._change(team.used, report.team, "used", now, used)

    def _amounts(self, task: Task) -> list[int]:
        resources = self._quotas[task.instance_type].resources
        return [sum([each.per_pod.get(name, 0) * each.count for each in task.workload.pod_sets]) for name in resources]

    def _change(self, amount: Gauge, team: str, kind: str, now: float, delta: float) -> None:
        if amount.value and now > amount.since:
            self._timeline.add(team, kind, amount.since, now, amount.value)
        amount.change(now, delta)

    def _price(self, instance_type: str) -> Price | None:
        if instance_type not in self._prices:
            self._prices[instance_type] = near_price(instance_type, self._plan.spec.region)
        return self._prices[instance_type]

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

        waiting: Kueue's reason or message for each waiting task. is_over: nothing more will happen, so waiting tasks
        wait forever, except those that preempt each other without end.
        """
        reasons, restless = waiting or {}, frozenset(flapping)
        if is_over and self._nevers:
            end = max(end, self._nevers[-1].workload.created)
        self._never_until(end)
        for report in self._never_reports:
            self._waited(report, report.submit, end)
            self._teams[report.team].waits.add(report.wait)
        rest = sorted(self._open.values(), key=lambda state: (state.report.submit, state.report.name))
        still: dict[str, int] = {}
        for state in rest:
            report = state.report
            if not state.running:
                self._waited(report, state.since, end)
                unseen = PAUSED if report.team in self._paused else QUEUED
                report.waits_for = reasons.get(report.name, unseen)
                if is_over and report.name not in restless:
                    report.never = f"is still waiting at the end: {reason_in_words(report.waits_for)}"
                    self._teams[report.team].never.append(report.name)
                else:
                    still[report.team] = still.get(report.team, 0) + 1
            self._teams[report.team].waits.add(report.wait)
        for name, team in self._teams.items():
            self._change(team.used, name, "used", end, 0.0)
            self._change(team.waiting, name, "waiting", end, 0.0)
        teams = tuple(self._team(plan.name, plan.spec.fair_share_weight, end, still) for plan in self._plan.teams)
        cluster = self._cluster(teams, end, tuple(sorted(restless)))
        series = self._timeline.series(end)
        tasks = tuple(sorted(self._tasks, key=lambda task: (task.submit, task.name)))
        return Report(
            self._plan.stack, scenario, end, cluster, teams, tasks, self._omitted,
            self._timeline.step, series, (*over_reserved(self._plan), *self._left_out()),
            late=self._late, impossible=self._impossible, skipped=tuple(self._skipped),
        )  # fmt: skip

    def _team(self, name: str, weight: int, end: float, waiting: dict[str, int]) -> TeamReport:
        team = self._teams[name]
        median, p95 = team.waits.quantiles(0.5, 0.95)
        ran, waited = team.running.until(end), team.waiting.until(end)
        accounts = [ledger.account(name) for ledger in self._ledgers.values()]
        for account in accounts:
            account.settle(end)
        return TeamReport(
            name=name,
            quota=sum(account.quota for account in accounts),
            fair_share_weight=weight,
            submitted=team.counts["submitted"],
            admitted=team.counts["admitted"],
            finished=team.counts["finished"],
            waiting=waiting.get(name, 0),
            never_tasks=tuple(team.never),
            used=sum(account.used_sum for account in accounts) / _HOUR,
            borrowed=sum(account.over_sum for account in accounts) / _HOUR,
            lent=sum(account.away_sum for account in accounts) / _HOUR,
            lost=team.lost / _HOUR,
            idle=sum(account.idle_sum for account in accounts) / _HOUR,
            service=(ran - team.lost) / (ran + waited) if ran + waited else None,
            wait_median=median,
            wait_p95=p95,
            wait_most=team.waits.most,
            used_most=team.used.most,
            waiting_most=team.waiting.most,
            evicted=team.counts["evicted"],
            evicts=team.counts["evicts"],
        )

    def _cluster(self, teams: tuple[TeamReport, ...], end: float, flapping: tuple[str, ...]) -> ClusterReport:
        capacity = sum(quota.instances for quota in self._quotas.values())
        used = sum(ledger.used(end) for ledger in self._ledgers.values()) / _HOUR
        hours = end / _HOUR
        quotas = sum(team.quota for team in teams)
        services = [team.service for team in teams if team.service is not None]
        squares = sum(each * each for each in services)
        waited = sum(team.waiting.until(end) for team in self._teams.values()) / _HOUR
        price_regions = self._price_regions()
        return ClusterReport(
            capacity=capacity,
            utilization=used / (capacity * hours) if capacity and hours else 0.0,
            idle_quota=sum(team.idle for team in teams) / (quotas * hours) if quotas and hours else 0.0,
            waited=waited,
            wait_cost=self._wait_cost(),
            priced_in=tuple(sorted(price_regions - {self._plan.spec.region})),
            prices=dated_regions(price_regions),
            fairness=sum(services) ** 2 / (len(services) * squares) if squares else 1.0,
            preemptions=self._preemptions,
            flapping=flapping,
        )

    def _wait_cost(self) -> float | None:
        """Return the list price of the waiting; None if a price isn't known."""
        cost = 0.0
        for kind, hours in self._waited_hours.items():
            price = self._price(kind)
            if price is None:
                return None
            cost += hours * float(price.hourly)
        return cost

    def _price_regions(self) -> set[str]:
        return {
            price.region for instance_type in self._waited_hours if (price := self._price(instance_type)) is not None
        }


def _report(task: Task) -> TaskReport:
    return TaskReport(
        task.workload.name, task.team, task.instance_type, task.instances, task.workload.priority, task.workload.created
    )
