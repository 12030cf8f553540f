"""Admissions per second of the simulator and of the real Kueue's scheduler: the same tasks, in the same run.

The real one is Kueue's own scheduler on its own cache, in a test of its module: without an API server, webhooks and
etcd, but including the time of a client that holds objects in memory. The simulator's time also covers the whole
scenario. `python bench/whatif_kueue.py [TASKS TEAMS]` uses other sizes; the limit for Kueue is 30 minutes each.
"""

import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("infra", "local", "whatif"))]

from tests.whatif.admission import neutral, oracle  # noqa: E402 - the path comes first

TASKS, TEAMS, FLAVORS, PER_STEP = 400, 5, 4, 40
NOMINAL, TARGET = 8, 100
MOST_SECONDS = 1800


def queue(number: int) -> dict[str, Any]:
    """Return a team's queue as task governance creates it: it lends, borrows, and reclaims what it lent."""
    quota = {"nominal": NOMINAL, "borrowing_limit": NOMINAL, "lending_limit": None}
    return {
        "name": f"team-{number}",
        "cohort": "all",
        "queueing": "BestEffortFIFO",
        "fair_weight": 1 + number % 3,
        "preemption": {"within_queue": "LowerPriority", "reclaim_in_cohort": "Any", "borrow_within_cohort": None},
        "fungibility": {"when_can_borrow": "TryNextFlavor", "when_can_preempt": "TryNextFlavor", "preference": None},
        "resource_groups": [
            {
                "resources": ["gpu"],
                "flavors": [{"name": f"f{each}", "quotas": {"gpu": quota}} for each in range(FLAVORS)],
            }
        ],
    }


def scenario(tasks: int, teams: int) -> dict[str, Any]:
    """Return tasks of random teams, sizes and priorities, in steps; after each, some tasks of one team end."""
    chance = random.Random(1)  # noqa: S311 - the same load each time
    steps = []
    for first in range(0, tasks, PER_STEP):
        submit = [
            {
                "name": f"w{number:06}",
                "queue": f"team-{chance.randrange(teams)}",
                "priority": chance.randrange(3),
                "pod_sets": [
                    {"name": "p0", "count": 1, "min_count": None, "per_pod": {"gpu": chance.choice((1, 1, 2, 4))}}
                ],
            }
            for number in range(first, min(first + PER_STEP, tasks))
        ]
        finish = {"queue": f"team-{chance.randrange(teams)}", "count": PER_STEP // 2} if first else None
        steps.append({"submit": submit, "finish": finish})
    return {
        "id": "bench",
        "kind": "scenario",
        "fair_sharing": {"strategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        "feature_gates": {},
        "cohorts": [{"name": "all"}],
        "queues": [queue(number) for number in range(teams)],
        "steps": steps,
    }


def admissions(states: Sequence[dict[str, Any]]) -> int:
    """Return how many tasks were admitted, from the state after each step."""
    count, before = 0, set[str]()
    for state in states:
        count += len(set(state["admitted"]) - before)
        before = set(state["admitted"])
    return count


def main(arguments: list[str]) -> int:
    """Print both rates and their ratio; return 1 if the ratio misses the target, or the results differ."""
    tasks, teams = (int(each) for each in arguments) if arguments else (TASKS, TEAMS)
    case = scenario(tasks, teams)
    nothing = {**case, "steps": case["steps"][:1]}
    oracle.ask([nothing])
    started = time.perf_counter()
    oracle.ask([nothing])
    starts = time.perf_counter() - started
    started = time.perf_counter()
    ((kueues, *_),) = oracle.ask([case], seconds=MOST_SECONDS)
    real = time.perf_counter() - started - starts
    started = time.perf_counter()
    results = neutral.run_scenario(case)
    simulated = time.perf_counter() - started
    matching = sum(one["admitted"] == sorted(other["admitted"]) for one, other in zip(results, kueues, strict=True))
    rates = []
    print(f"{tasks:,} tasks of {teams} teams: the same admitted after {matching} of {len(results)} steps")
    for name, states, seconds in (("Kueue", kueues, real), ("simulator", results, simulated)):
        count = admissions(states)
        rates.append(count / seconds)
        print(f"{name:<9} {count:>7,} admissions in {seconds:7.2f} s  {rates[-1]:>9,.0f} per second")
    print(f"{rates[1] / rates[0]:.0f} × (target {TARGET})")
    return 0 if rates[1] >= TARGET * rates[0] and matching == len(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
