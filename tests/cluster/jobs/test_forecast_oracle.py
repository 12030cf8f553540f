"""`hpkit job check --live` against the real Kueue's scheduler: in random states of queues, each forecast comes true.

The states are those of the queues that the service creates: one cohort, one resource group, and Kueue's defaults. Each
case has tasks that start, borrow, wait and end, and then one more task, for which the forecast is made.
"""

import os
from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest

from hpkit.cluster.jobs.forecast import predict
from hpkit.cluster.live.model import Condition, Observed, Queue, Quota, Task, TaskPods
from tests.cluster.live.builders import NOW
from tests.running import tools_required
from tests.whatif.admission import oracle
from tests.whatif.admission.cases import drawn

NIGHTLY = os.environ.get("HPKIT_NIGHTLY") == "1"
COUNT = 600 if NIGHTLY else 60
# Which of two equal tasks of different queues comes first is random in Kueue.
AGAIN = 24
MORE = 3


def as_the_service_makes_it(case):
    """Return a random case with the queues of task governance, in which one more task is submitted in the last step.

    A second case has only that task, and shows whether it can ever run. Return None for a case without tasks.
    """
    for queue in case["queues"]:
        cohort = queue["cohort"] and "all"
        groups = queue["resource_groups"]
        resources = [name for group in groups for name in group["resources"] if name != "pods"]
        flavors = {amounts["name"]: amounts["quotas"] for group in groups for amounts in group["flavors"]}
        zero = {"nominal": 0, "borrowing_limit": None, "lending_limit": None}
        rows = [
            {"name": name, "quotas": {amounts: {**zero, **quotas.get(amounts, {})} for amounts in resources}}
            for name, quotas in flavors.items()
        ]
        for amounts in (quota for row in rows for quota in row["quotas"].values()):
            # Else most tasks would never run.
            amounts["nominal"] += MORE
        preemption = {**queue["preemption"], "borrow_within_cohort": None}
        fungibility = {"when_can_borrow": "MayStopSearch", "when_can_preempt": "TryNextFlavor", "preference": None}
        queue |= {"cohort": cohort, "queueing": "BestEffortFIFO", "preemption": preemption, "fungibility": fungibility}
        queue["resource_groups"] = [{"resources": resources, "flavors": rows}]
    case["cohorts"] = []
    tasks = [task for step in case["steps"] for task in step["submit"]]
    for pods in (pods for task in tasks for pods in task["pod_sets"]):
        pods["min_count"] = None
    if not tasks:
        return None
    last = tasks[-1]
    steps = [
        {**step, "submit": [amounts for amounts in step["submit"] if amounts is not last]} for step in case["steps"]
    ]
    alone = [{"submit": [last], "finish": None}]
    return {**case, "steps": [*steps, *alone]}, {**case, "id": f"{case['id']}-alone", "steps": alone}


def observed_of(case, answer):
    """Return Kueue's state after the step before the last as `hpkit job check --live` reads it."""
    queues = tuple(
        Queue(
            name=queue["name"],
            cohort=queue["cohort"],
            weight=Decimal(str(queue["fair_weight"])),
            active=True,
            message="",
            within=queue["preemption"]["within_queue"],
            reclaim=queue["preemption"]["reclaim_in_cohort"],
            quotas={
                (flavor["name"], name): Quota(
                    Decimal(quota["nominal"]), _limit(quota["borrowing_limit"]), _limit(quota["lending_limit"])
                )
                for flavor in queue["resource_groups"][0]["flavors"]
                for name, quota in flavor["quotas"].items()
            },
        )
        for queue in case["queues"]
    )
    waiting = {each["name"] for each in answer["pending"]}
    everyone = [each for step in case["steps"][:-1] for each in step["submit"]]
    tasks = tuple(
        task_of(task, number, answer)
        for number, task in enumerate(everyone)
        if task["name"] in answer["pod_sets"] or task["name"] in waiting
    )
    return Observed(time=NOW, queues=queues, tasks=tasks)


def _limit(value):
    return None if value is None else Decimal(value)


def task_of(task, number, answer=None):
    """Return a Workload that was submitted as the one with a number, with what Kueue assigned to it, if anything."""
    name = task["name"]
    assigned = (answer or {"pod_sets": {}})["pod_sets"].get(name)
    usage = Counter()
    for pods, given in zip(task["pod_sets"], assigned or (), strict=bool(assigned)):
        for resource, amount in pods["per_pod"].items():
            usage[given["flavors"][resource], resource] += amount * given["count"]
    conditions = {}
    if assigned:
        since = NOW - timedelta(days=1) + timedelta(seconds=answer["reserved_s"][name])
        conditions = {"QuotaReserved": Condition(True, "", "", since), "Admitted": Condition(True, "", "", since)}
    sets = tuple(
        TaskPods(
            pod_set["name"], pod_set["count"], {name: Decimal(value) for name, value in pod_set["per_pod"].items()}
        )
        for pod_set in task["pod_sets"]
    )
    requests = Counter()
    for each in sets:
        requests.update({name: value * each.count for name, value in each.requests.items()})
    return Task(
        name=name,
        namespace=task["queue"],
        uid=name,
        owner_kind="Job",
        owner_name=name,
        local_queue=task["queue"],
        queue=task["queue"],
        priority=task["priority"],
        priority_class=None,
        created=NOW - timedelta(days=1) + timedelta(seconds=number),
        pods=sum(each.count for each in sets),
        active=True,
        requests=requests,
        usage={key: Decimal(value) for key, value in usage.items()},
        conditions=conditions,
        pod_sets=sets,
    )


def happened(case, answers, alone):
    """Return what Kueue did with the last task: its fate, and who was preempted since it was submitted."""
    (task,) = case["steps"][-1]["submit"]
    name, answer = task["name"], answers[-1]
    before = Counter(each["name"] for each in answers[-2]["preempted"])
    victims = Counter(each["name"] for each in answer["preempted"]) - before
    if name not in alone[-1]["admitted"]:
        return "never", victims
    if name not in answer["admitted"]:
        return "waits", victims
    queue = next(each for each in case["queues"] if each["name"] == task["queue"])
    quotas = {each["name"]: each["quotas"] for each in queue["resource_groups"][0]["flavors"]}
    used = Counter()
    everyone = [each for step in case["steps"] for each in step["submit"]]
    for each in everyone:
        if each["queue"] == task["queue"] and each["name"] in answer["pod_sets"]:
            used.update(task_of(each, 0, answer).usage)
    own = task_of(task, 0, answer).usage
    borrows = any(amount and used[key] > quotas[key[0]][key[1]]["nominal"] for key, amount in own.items())
    return "borrowing" if borrows else "now", victims


def differs(case, answers, alone):
    """Return the forecast and what happened, if they differ; None if not, or if Kueue never comes to rest."""
    if not all(each["rests"] for each in answers):
        return None
    (task,) = case["steps"][-1]["submit"]
    number = sum(len(step["submit"]) for step in case["steps"])
    fair = case["fair_sharing"] and tuple(case["fair_sharing"]["strategies"])
    forecast = predict(observed_of(case, answers[-2]), task_of(task, number), fair_sharing=fair)
    fate, victims = happened(case, answers, alone)
    # A task that is preempted can itself preempt another one elsewhere.
    named = Counter(each.partition(" of ")[0] for each in forecast.preempts)
    # The case has no nodes, so whether they have room isn't known.
    told = {"it borrows": "borrowing", "it fits th": "now"}.get(forecast.reason[:10], forecast.fate)
    same = told == fate and not named - victims and bool(named) >= bool(victims and fate != "never")
    return None if same else (forecast, fate, victims)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_in_each_random_state_kueue_does_what_was_foretold():
    with tools_required():
        oracle.binary()
    pairs = [pair for case in drawn("scenario", COUNT, 42) if (pair := as_the_service_makes_it(case))]
    cases = [case for pair in pairs for case in pair]
    answers = [answer for answer, *_ in oracle.ask(cases)]
    fates, suspects = Counter(), []
    for (case, alone), given, given_alone in zip(pairs, answers[::2], answers[1::2], strict=True):
        fates[happened(case, given, given_alone)[0] if len(given) > 1 else ""] += 1
        if differs(case, given, given_alone):
            suspects.append((case, alone, given_alone))
    wrong = []
    for (case, _, given_alone), all_answers in zip(
        suspects, oracle.ask([case for case, *_ in suspects], times=AGAIN) if suspects else (), strict=True
    ):
        results = [differs(case, given, given_alone) for given in all_answers]
        if all(results):
            wrong.append((case["id"], *results[0]))
    print(fates, len(suspects))
    assert not wrong, "\n".join(map(str, wrong))
    assert {"now", "borrowing", "waits", "never"} <= fates.keys(), fates
