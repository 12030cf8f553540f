"""The what-if simulator: 100,000 tasks of 100 teams on 8 instance types, on one core; and how its time grows.

`python bench/whatif.py [TASKS TEAMS]` measures one size.
"""

import random
import resource
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("infra", "whatif")]

from hpkit_whatif.admission import (  # noqa: E402 - the path comes first
    ClusterQueue,
    FlavorQuotas,
    Model,
    PodSet,
    Preemption,
    ResourceGroup,
    ResourceQuota,
    Simulator,
    Workload,
)

TASKS, TEAMS, FLAVORS = 100_000, 100, 8
LIMIT_SECONDS, LIMIT_MIB = 20.0, 1024
GIB = 1024**3
# The resources of one instance; a team has two of each type.
INSTANCE = {"cpu": 48_000, "memory": 192 * GIB, "nvidia.com/gpu": 4, "vpc.amazonaws.com/efa": 1}
INSTANCES = 2
LOAD = 0.9  # On average, of all GPUs.
MEAN_RUN = 3600.0


def organization(teams):
    """Return a flat cohort of teams that lend and borrow with fair sharing, as HyperPod task governance creates it."""
    flavors = tuple(
        FlavorQuotas(
            f"ml.type-{n}", {name: ResourceQuota(INSTANCES * had, INSTANCES * had) for name, had in INSTANCE.items()}
        )
        for n in range(FLAVORS)
    )
    group = ResourceGroup(tuple(INSTANCE), flavors)
    return Model(
        queues=tuple(
            ClusterQueue(
                f"team-{n}",
                cohort="all",
                resource_groups=(group,),
                fair_weight=float(n % 5),
                preemption=Preemption("LowerPriority", "Any"),
            )
            for n in range(teams)
        ),
        fair_sharing=("LessThanOrEqualToFinalShare", "LessThanInitialShare"),
    )


def tasks(count, teams):
    """Return tasks that together use most of the GPUs, each on one instance type, a third of them with many pods."""
    chance = random.Random(1)  # noqa: S311 - the same in every run
    gpus = teams * FLAVORS * INSTANCES * INSTANCE["nvidia.com/gpu"]
    mean_gpus = 2.5
    gap = MEAN_RUN * mean_gpus / (gpus * LOAD)
    now = 0.0
    for n in range(count):
        now += chance.expovariate(1 / gap)
        pods = chance.choice((1, 1, 2))
        each = chance.choice((1, 2, 1, 4)) if pods == 1 else 1
        per_pod = {name: had * each // 4 for name, had in INSTANCE.items()} | {"vpc.amazonaws.com/efa": 0}
        flavor = frozenset((f"ml.type-{chance.randrange(FLAVORS)}",))
        yield Workload(
            f"task-{n}",
            f"team-{chance.randrange(teams)}",
            (PodSet("main", pods, per_pod, flavors=flavor),),
            priority=chance.choice((0, 50, 100)),
            created=float(int(now)),
            run=float(int(chance.expovariate(1 / MEAN_RUN)) + 1),
        )


def measure(count, teams):
    """Run one size to its end; return the seconds, and print the results."""
    model, work = organization(teams), list(tasks(count, teams))
    seen = {"Admitted": 0, "Preempted": 0, "Finished": 0, "Submitted": 0}

    def note(event):
        seen[event.kind] += 1

    began = time.process_time()
    simulator = Simulator(model)
    simulator.run_clock(work, on_event=note)
    seconds = time.process_time() - began
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{count:7} tasks, {teams:4} teams: {seconds:6.1f} s of CPU, {mib:5.0f} MiB, {simulator.cycles} cycles, "
        f"{seen['Admitted']} admitted, {seen['Preempted']} preempted, {simulator.count_pending()} left"
    )
    return seconds, mib


def main(arguments):
    if arguments:
        measure(*map(int, arguments))
        return 0
    quarter, _ = measure(TASKS // 4, TEAMS)
    few, _ = measure(TASKS, TEAMS // 4)
    seconds, mib = measure(TASKS, TEAMS)
    print(f"4 × the tasks: {seconds / quarter:.1f} × the time; 4 × the teams: {seconds / few:.1f} ×")
    fits = seconds < LIMIT_SECONDS and mib < LIMIT_MIB
    print(f"under {LIMIT_SECONDS:.0f} s and {LIMIT_MIB} MiB: {'yes' if fits else 'NO'}")
    return 0 if fits else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
