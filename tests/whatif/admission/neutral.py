"""Kueue's behavior as cases in a neutral JSON format, which the simulator runs and compares with the expected results.

Amounts are plain numbers, CPU in cores; times are seconds; a limit of null is none. The kinds of cases are `cycle` (a
state and exactly one cycle) and `scenario` (steps, each run until nothing changes).
"""

import json
import math
from typing import Any

from hpkit.kueue.model import WaitForPodsReady
from hpkit_whatif.admission import (
    Admission,
    BorrowWithinCohort,
    ClusterQueue,
    Cohort,
    FlavorFungibility,
    FlavorQuotas,
    Model,
    Node,
    PodSet,
    PodSetAssignment,
    Preemption,
    ResourceGroup,
    ResourceQuota,
    Simulator,
    Topology,
    TopologyRequest,
    Workload,
)

Case = dict[str, Any]
TICK = 1.0


def run(case: Case) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the simulator's result for a case, in the format of `expect`; for a scenario, one result per step."""
    return run_scenario(case) if case["kind"] == "scenario" else run_cycle(case)


def amount(resource: str, value: float) -> int:
    """Return an amount in base units."""
    return math.floor(value * 1000 + 0.5) if resource == "cpu" else int(value)


def quota(resource: str, data: Case) -> ResourceQuota:
    """Return a quota of the neutral format."""
    borrowing, lending = data.get("borrowing_limit"), data.get("lending_limit")
    return ResourceQuota(
        amount(resource, data["nominal"]),
        None if borrowing is None else amount(resource, borrowing),
        None if lending is None else amount(resource, lending),
    )


def model(case: Case) -> Model:
    """Return the organization of a case."""
    sharing = case.get("fair_sharing")
    strategies = None
    if sharing is not None:
        strategies = tuple(sharing.get("strategies") or ()) or ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    return Model(
        queues=tuple(_queue(each) for each in case["queues"]),
        cohorts=tuple(_cohort(each) for each in case.get("cohorts") or ()),
        fair_sharing=strategies,
        topologies=_topologies(case),
        wait_for_pods_ready=_gang(case.get("wait_for_pods_ready")),
    )


def _gang(data: Case | None) -> WaitForPodsReady | None:
    if data is None:
        return None
    return WaitForPodsReady(
        timeout=math.inf,
        recovery_timeout=0,
        timestamp=data["timestamp"],
        backoff_limit_count=data["backoff_limit_count"],
        backoff_base_seconds=data["backoff_base_s"],
        backoff_max_seconds=data["backoff_max_s"],
    )


def _topologies(case: Case) -> tuple[Topology, ...]:
    """Return the topology of all flavors, if the case has one; a node's label `type` names its flavor."""
    given = case.get("topology")
    if given is None:
        return ()
    flavors = {
        flavor["name"] for queue in case["queues"] for group in queue["resource_groups"] for flavor in group["flavors"]
    }
    nodes = tuple(_node(each) for each in given["nodes"])
    return (Topology(tuple(given["levels"]), nodes, {name: {"type": name} for name in sorted(flavors)}),)


def _node(data: Case) -> Node:
    allocatable = {name: amount(name, found) for name, found in data["allocatable"].items()}
    return Node(data["name"], data["labels"], allocatable, data.get("ready", True))


def _cohort(data: Case) -> Cohort:
    flavors: dict[str, dict[str, ResourceQuota]] = {}
    for each in data.get("quotas") or ():
        flavors.setdefault(each["flavor"], {})[each["resource"]] = quota(each["resource"], each)
    return Cohort(
        data["name"],
        data.get("parent"),
        float(data.get("fair_weight", 1)),
        tuple(FlavorQuotas(name, resources) for name, resources in flavors.items()),
    )


def _queue(data: Case) -> ClusterQueue:
    preemption, fungibility = data["preemption"], data["fungibility"]
    borrow = preemption.get("borrow_within_cohort")
    return ClusterQueue(
        name=data["name"],
        cohort=data.get("cohort"),
        queueing_strategy=data.get("queueing", "BestEffortFIFO"),
        fair_weight=float(data.get("fair_weight", 1)),
        preemption=Preemption(
            preemption["within_queue"],
            preemption["reclaim_in_cohort"],
            borrow and BorrowWithinCohort(borrow["policy"], borrow.get("max_priority_threshold")),
        ),
        fungibility=FlavorFungibility(
            fungibility["when_can_borrow"],
            fungibility["when_can_preempt"],
            fungibility.get("preference") or "BorrowingOverPreemption",
        ),
        resource_groups=tuple(
            ResourceGroup(
                tuple(group["resources"]),
                tuple(
                    FlavorQuotas(flavor["name"], {name: quota(name, found) for name, found in flavor["quotas"].items()})
                    for flavor in group["flavors"]
                ),
            )
            for group in data["resource_groups"]
        ),
    )


def workload(data: Case, *, created: float | None = None) -> Workload:
    """Return a workload of the neutral format."""
    admission = None
    if "admitted_s" in data:
        got = tuple(
            PodSetAssignment(
                pod_set["name"],
                pod_set["count"],
                pod_set["flavors"],
                {name: amount(name, found) for name, found in pod_set["usage"].items()},
            )
            for pod_set in data["pod_sets"]
        )
        admission = Admission(data["admitted_s"], got, data.get("evicted", False))
    return Workload(
        name=data["name"],
        queue=data["queue"],
        priority=data.get("priority", 0),
        created=data.get("created_s", 0) if created is None else created,
        pod_sets=tuple(_pod_set(each) for each in data["pod_sets"]),
        admission=admission,
    )


def _pod_set(data: Case) -> PodSet:
    count = data["count"]
    per_pod = data.get("per_pod")
    if per_pod is None:
        per_pod = {name: found / max(count, 1) for name, found in data["usage"].items()}
    amounts = {name: amount(name, found) for name, found in per_pod.items()}
    wanted = data.get("topology")
    request = None if wanted is None else TopologyRequest(wanted["mode"], wanted.get("level"))
    return PodSet(data["name"], count, amounts, data.get("min_count"), topology=request)


def run_cycle(case: Case) -> dict[str, Any]:
    """Run one cycle of a state."""
    everyone = [workload(each) for each in [*(case.get("running") or ()), *(case.get("pending") or ())]]
    simulator = Simulator(model(case), everyone)
    outcome = simulator.run_cycle()
    admitted = [
        {
            "name": workload.name,
            "pod_sets": [{"name": ps.name, "count": ps.count, "flavors": dict(ps.flavors)} for ps in workload.pod_sets],
        }
        for workload in outcome.admitted
    ]
    return {
        "admitted": by_name(admitted),
        "preempted": by_name([{"name": each.name, "reason": each.reason} for each in outcome.preempted]),
        "pending": [{"name": each.name, "reason": each.reason, "parked": each.parked} for each in simulator.pending()],
    }


def run_scenario(case: Case) -> list[dict[str, Any]]:
    """Run the steps of a scenario; each result has all fields that `expect` can contain."""
    simulator = Simulator(model(case))
    preempted: list[dict[str, str]] = []
    backoffs: dict[str, int] = {}
    shares = []
    for step in case["steps"]:
        for each in step.get("submit") or ():
            simulator.submit(workload(each, created=simulator.now))
            simulator.now += TICK
        for name in _finished(step.get("finish"), simulator):
            simulator.finish(name)
        if step.get("requeue"):
            simulator.now = max([simulator.now, *simulator.backoffs().values()]) + TICK
            simulator.requeue()
            backoffs.clear()
        _time_out(step.get("time_out"), simulator, backoffs)
        outcome = simulator.run_until_quiet(tick=TICK)
        preempted += [{"name": each.name, "reason": each.reason} for each in outcome.preempted]
        state = _state(case, simulator, preempted, flapping=bool(outcome.flapping))
        shares.append({**state, "backoffs": dict(backoffs)})
    return shares


def _time_out(data: Case | None, simulator: Simulator, backoffs: dict[str, int]) -> None:
    """Let the pods of a number of workloads in a queue time out; record each backoff."""
    for name in _finished(data, simulator):
        if simulator.time_out(name):
            backoffs[name] = int(simulator.backoffs()[name] - simulator.now)
        simulator.now += TICK


def _finished(finish: Case | None, simulator: Simulator) -> list[str]:
    if not finish:
        return []
    if finish.get("names"):
        return list(finish["names"])
    names = sorted(name for name in simulator.running() if simulator.queue_of(name) == finish["queue"])
    return names[: finish["count"]]


def _state(case: Case, simulator: Simulator, preempted: list[dict[str, str]], *, flapping: bool) -> dict[str, Any]:
    running = simulator.running()
    waiting = [each for each in simulator.pending() if each.name not in simulator.backoffs()]
    shares = {queue["name"]: simulator.share(queue["name"]) for queue in case["queues"]}
    above = {queue["cohort"] for queue in case["queues"] if queue.get("cohort")}
    above |= {cohort["name"] for cohort in case.get("cohorts") or ()}
    shares |= {f"cohort:{name}": simulator.cohort_share(name) for name in sorted(above)}
    return {
        "admitted": sorted(running),
        "pending_names": [each.name for each in waiting],
        "preempted": by_name(preempted),
        "places": {name: {got.name: dict(got.domains) for got in sets} for name, sets in running.items()},
        "share": shares,
        "flapping": flapping,
    }


def by_name(items: list[Any]) -> list[Any]:
    """Return items in a fixed order."""
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


def differences(case: Case, state: Any) -> list[str]:
    """Return the differences from the expected result, each as a line; fields that aren't expected are ignored."""
    if case["kind"] == "scenario":
        return [
            f"step {index}: {line}"
            for index, (step, got) in enumerate(zip(case["steps"], state, strict=True))
            for line in _compare_state(step.get("expect") or {}, got)
        ]
    expect = case.get("expect") or {}
    lines = [
        f"{key}: {state[key]}, expected {expect[key]}"
        for key in ("admitted", "preempted")
        if key in expect and _all_shown(expect[key]) != _all_shown(state[key])
    ]
    if "pending" in expect:
        lines += _compare_pending(expect["pending"], state["pending"])
    return lines


def _all_shown(items: list[Any]) -> list[Any]:
    return by_name([_shown(each) for each in items])


def _shown(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    shown = {key: value for key, value in item.items() if key in ("name", "reason", "pod_sets")}
    if "pod_sets" in shown:
        keys = ("name", "count", "flavors")
        shown["pod_sets"] = by_name([{key: each[key] for key in keys if key in each} for each in shown["pod_sets"]])
    return shown


def _compare_pending(expected: list[Case], found: list[Case]) -> list[str]:
    by_workload = {workload["name"]: workload for workload in found}
    lines = []
    if {workload["name"] for workload in expected} != by_workload.keys():
        lines.append(f"pending: {sorted(by_workload)}, expected {sorted(workload['name'] for workload in expected)}")
    for workload in expected:
        got = by_workload.get(workload["name"], {})
        lines += [
            f"pending {workload['name']}: {key} {got.get(key)!r}, expected {workload[key]!r}"
            for key in ("reason", "parked")
            if key in workload and got.get(key) != workload[key]
        ]
    return lines


def _compare_state(expect: Case, state: Case) -> list[str]:
    lines = []
    for key, wanted in expect.items():
        got = state[key]
        if key == "share":
            got = {name: got.get(name) for name in wanted}
            same = all(_close(wanted[name], got[name]) for name in wanted)
        elif key in ("places", "backoffs"):
            same = got == wanted
        else:
            same = got == (by_name(wanted) if key == "preempted" else sorted(wanted))
        if not same:
            lines.append(f"{key}: {got}, expected {wanted}")
    return lines


def _close(wanted: Any, got: Any) -> bool:
    if got is None:
        return False
    number = math.inf if wanted in ("+Inf", "Inf", "inf", "Infinity", None) else float(wanted)
    return number == got or math.isclose(number, got, rel_tol=1e-6, abs_tol=1e-6)
