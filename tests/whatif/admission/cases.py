"""Random organizations and workloads in the neutral format, small enough that they compete for quota constantly."""

from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

Case = dict[str, Any]
HOST = "kubernetes.io/hostname"
STRATEGIES = (
    ["LessThanOrEqualToFinalShare", "LessThanInitialShare"],
    ["LessThanOrEqualToFinalShare"],
    ["LessThanInitialShare"],
)
# Weights whose reciprocals aren't round numbers: for equal results, shares must be computed in Kueue's own order.
WEIGHTS = (0, 0.5, 1, 1, 1, 2, 3)


@st.composite
def cases(draw: st.DrawFn, kind: str) -> Case:
    """Draw a case.

    `cycle`: a state and waiting workloads. `scenario`: steps. `topology`: steps on nodes. `gang`: steps in which pods
    are late.
    """
    if kind == "topology":
        return draw(_on_nodes())
    if kind == "gang":
        return draw(_with_late_pods())
    flavors = [f"f{n}" for n in range(draw(st.integers(1, 3)))]
    resources = ["gpu", "cpu", "pods"][: draw(st.sampled_from((1, 1, 2, 2, 3)))]
    cohorts = draw(_cohorts(flavors, resources))
    homes = [each["name"] for each in cohorts] or ["all"]
    queues = [
        draw(_queue(f"q{n}", homes, flavors, resources)) for n in range(draw(st.sampled_from((1, 2, 2, 3, 3, 4))))
    ]
    sharing = draw(st.sampled_from((None, *STRATEGIES, STRATEGIES[0])))
    case: Case = {
        "id": "",
        "kind": kind,
        "fair_sharing": sharing and {"strategies": sharing},
        "feature_gates": {},
        "cohorts": cohorts,
        "queues": queues,
    }
    if kind == "cycle":
        case["running"] = [draw(_running(f"r{n}", n, queues)) for n in range(draw(st.integers(0, 7)))]
        case["pending"] = [draw(_pending(f"w{n}", n, queues)) for n in range(draw(st.integers(1, 6)))]
    else:
        case["steps"] = draw(_steps(queues))
    return case


@st.composite
def _with_late_pods(draw: st.DrawFn) -> Case:
    """Draw a scenario in which pods are often late, and workloads are sometimes requeued."""
    case = draw(cases("scenario"))
    for step in case["steps"]:
        queue = draw(st.sampled_from(case["queues"]))["name"]
        step["time_out"] = {"queue": queue, "count": draw(st.integers(1, 3))} if draw(st.integers(0, 3)) else None
        step["requeue"] = draw(st.booleans())
    limits = st.sampled_from((None, None, 0, 1, 2))
    gang = {
        "timestamp": draw(st.sampled_from(("Eviction", "Creation"))),
        "backoff_limit_count": draw(limits),
        "backoff_base_s": draw(st.sampled_from((0, 1, 60))),
        "backoff_max_s": draw(st.sampled_from((1, 90, 3600))),
    }
    queues = [queue["name"] for queue in case["queues"]]
    again = [
        {"submit": [], "finish": None, "time_out": {"queue": name, "count": 2}, "requeue": True}
        for name in [draw(st.sampled_from(queues)) for _ in range(3)]
    ]
    return {**case, "wait_for_pods_ready": gang, "steps": [*case["steps"], *again]}


@st.composite
def _on_nodes(draw: st.DrawFn) -> Case:
    """Draw a scenario whose flavors all have nodes in racks and blocks, some of them not ready."""
    case = draw(cases("scenario"))
    for queue in case["queues"]:
        # Kueue doesn't place pods that use two flavors; the service creates one resource group for each team.
        del queue["resource_groups"][1:]
    covered = {queue["name"]: queue["resource_groups"][0]["resources"] for queue in case["queues"]}
    levels = ["block", "rack", HOST][draw(st.integers(0, 1)) :]
    flavors = sorted({each["name"] for q in case["queues"] for g in q["resource_groups"] for each in g["flavors"]})
    resources = sorted({name for q in case["queues"] for group in q["resource_groups"] for name in group["resources"]})
    nodes = []
    for flavor in flavors:
        for _ in range(draw(st.integers(1, 5))):
            name = f"n{len(nodes)}"
            labels = {"block": f"b{draw(st.integers(0, 1))}", "rack": f"r{draw(st.integers(0, 2))}", HOST: name}
            has = {each: draw(st.integers(1, 6)) for each in resources if each != "pods"}
            pods = draw(st.sampled_from((2, 5, 110)))
            ready = draw(st.integers(0, 7)) > 0
            nodes.append(
                {
                    "name": name,
                    "labels": {**labels, "type": flavor},
                    "allocatable": {**has, "pods": pods},
                    "ready": ready,
                }
            )
    for step in case["steps"]:
        for task in step["submit"]:
            for pod_set in task["pod_sets"]:
                asked = pod_set["per_pod"]
                pod_set["per_pod"] = {name: asked[name] for name in asked if name in covered[task["queue"]]}
                mode = draw(st.sampled_from(("required", "preferred", "unconstrained", None)))
                level = draw(st.sampled_from(levels)) if mode in ("required", "preferred") else None
                pod_set["topology"] = mode and {"mode": mode, "level": level or ""}
    return {**case, "topology": {"levels": levels, "nodes": nodes}}


@st.composite
def _cohorts(draw: st.DrawFn, flavors: list[str], resources: list[str]) -> list[Case]:
    if draw(st.integers(0, 2)):
        return []
    cohorts: list[Case] = []
    for number in range(draw(st.integers(1, 4))):
        parent = f"c{draw(st.integers(0, number - 1))}" if number and draw(st.integers(0, 4)) else None
        quotas = [
            {"flavor": flavor, "resource": resource, **draw(_quota(with_limits=parent is not None))}
            for flavor in flavors
            for resource in resources
            if draw(st.integers(0, 2)) == 0
        ]
        weight = draw(st.sampled_from(WEIGHTS))
        cohorts.append({"name": f"c{number}", "parent": parent, "fair_weight": weight, "quotas": quotas})
    return cohorts


@st.composite
def _quota(draw: st.DrawFn, *, with_limits: bool) -> Case:
    limit = st.one_of(st.none(), st.integers(0, 6)) if with_limits else st.none()
    return {"nominal": draw(st.integers(0, 8)), "borrowing_limit": draw(limit), "lending_limit": draw(limit)}


@st.composite
def _queue(draw: st.DrawFn, name: str, homes: list[str], flavors: list[str], resources: list[str]) -> Case:
    cohort = draw(st.sampled_from((*homes, *homes, *homes, None)))
    groups = [resources]
    if len(resources) > 1 and len(flavors) > 1 and draw(st.integers(0, 2)) == 0:
        groups = [resources[:1], resources[1:]]
    shares = [flavors] if len(groups) == 1 else [flavors[:1], flavors[1:]]
    preference = draw(st.sampled_from((None, None, "BorrowingOverPreemption", "PreemptionOverBorrowing")))
    can = st.sampled_from(("MayStopSearch", "TryNextFlavor"))
    fungibility = {"when_can_borrow": draw(can), "when_can_preempt": draw(can), "preference": preference}
    if preference == "PreemptionOverBorrowing":
        fungibility |= {"when_can_borrow": "TryNextFlavor", "when_can_preempt": "TryNextFlavor"}
    borrow = draw(st.sampled_from((None, None, None, "LowerPriority")))
    reclaim = draw(st.sampled_from(("Any", "Any", "LowerPriority", "Never")))
    if reclaim == "Never":
        borrow = None
    return {
        "name": name,
        "cohort": cohort,
        "queueing": draw(st.sampled_from(("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"))),
        "fair_weight": draw(st.sampled_from(WEIGHTS)),
        "preemption": {
            "within_queue": draw(st.sampled_from(("Never", "LowerPriority", "LowerOrNewerEqualPriority"))),
            "reclaim_in_cohort": reclaim,
            "borrow_within_cohort": borrow
            and {"policy": borrow, "max_priority_threshold": draw(st.sampled_from((None, 0, 1)))},
        },
        "fungibility": fungibility,
        "resource_groups": [
            {
                "resources": list(names),
                "flavors": [
                    {"name": flavor, "quotas": {each: draw(_quota(with_limits=cohort is not None)) for each in names}}
                    for flavor in draw(st.permutations(there))[: draw(st.integers(1, len(there)))]
                ],
            }
            for names, there in zip(groups, shares, strict=True)
        ],
    }


@st.composite
def _pending(draw: st.DrawFn, name: str, number: int, queues: list[Case]) -> Case:
    queue = draw(st.sampled_from(queues))
    names = [each for group in queue["resource_groups"] for each in group["resources"] if each != "pods"]
    partial = draw(st.integers(0, 5)) == 0
    pod_sets = []
    for index in range(draw(st.sampled_from((1, 1, 1, 2)))):
        count = draw(st.integers(1, 4))
        asked = names if draw(st.integers(0, 2)) else names[:1]
        least = draw(st.integers(1, count)) if partial else None
        per_pod = {each: draw(st.integers(1, 3)) for each in asked}
        pod_sets.append({"name": f"p{index}", "count": count, "min_count": least, "per_pod": per_pod})
    return {
        "name": name,
        "queue": queue["name"],
        "priority": draw(st.integers(0, 2)),
        "created_s": -100 + number,
        "pod_sets": pod_sets,
    }


@st.composite
def _running(draw: st.DrawFn, name: str, number: int, queues: list[Case]) -> Case:
    queue = draw(st.sampled_from(queues))
    flavors, usage = {}, {}
    for group in queue["resource_groups"]:
        flavor = draw(st.sampled_from(group["flavors"]))["name"]
        for each in group["resources"]:
            flavors[each] = flavor
            usage[each] = 1 if each == "pods" else draw(st.integers(1, 5))
    return {
        "name": name,
        "queue": queue["name"],
        "priority": draw(st.integers(0, 2)),
        "created_s": -300 + number,
        "admitted_s": -200 + draw(st.integers(0, 3)),
        "evicted": draw(st.integers(0, 9)) == 0,
        "pod_sets": [{"name": "p0", "count": 1, "flavors": flavors, "usage": usage}],
    }


@st.composite
def _steps(draw: st.DrawFn, queues: list[Case]) -> list[Case]:
    steps: list[Case] = []
    number = 0
    for _ in range(draw(st.integers(1, 5))):
        submit = []
        for _ in range(draw(st.integers(0, 4))):
            task = draw(_pending(f"w{number:02}", number, queues))
            del task["created_s"]
            submit.append(task)
            number += 1
        queue = draw(st.sampled_from(queues))["name"]
        finish = {"queue": queue, "count": draw(st.integers(1, 2))} if steps and draw(st.booleans()) else None
        steps.append({"submit": submit, "finish": finish})
    return steps


def drawn(kind: str, count: int, number: int) -> list[Case]:
    """Return random cases, the same for the same number."""
    drawn_cases: list[Case] = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(kind))
    def collect(case: Case) -> None:
        drawn_cases.append({**case, "id": f"{kind}-{number}-{len(drawn_cases)}"})

    collect()
    return drawn_cases
