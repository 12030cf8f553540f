"""Draws tasks: a Poisson process whose rate follows hours and days, sizes by weight, run times by distribution."""

import math
import random
from collections.abc import Iterator

from hpkit_whatif.scenario.model import MOST_SECONDS, Choice, Distribution, Generator, TaskSpec

__all__ = ["generated"]

_HOUR = 3600.0
_DAY = 24


def generated(generator: Generator, *, seed: int | None = None) -> Iterator[TaskSpec]:
    """Return a generator's tasks in order, the same ones for the same seed; `seed` replaces the generator's."""
    # The generator's name is part of the seed, so that two generators with the same seed draw different tasks.
    chance = random.Random(f"{generator.seed if seed is None else seed}/{generator.name}")  # noqa: S311 - not a secret
    pattern = generator.pattern
    rates = [hour * day for day in pattern.days for hour in pattern.hours]
    mean = sum(rates) / len(rates)
    highest = max(rates)
    # Candidates arrive at the highest rate; each is kept with the probability of its hour relative to the busiest.
    gap = _HOUR * mean / (generator.per_hour * highest)
    weights = [size.weight for size in generator.sizes]
    now, number = generator.begin, 0
    while True:
        now += chance.expovariate(1.0) * gap
        if now > generator.begin + generator.last:
            return
        if chance.random() * highest >= rates[int(now / _HOUR) % (7 * _DAY)]:
            continue
        number += 1
        size = chance.choices(generator.sizes, weights)[0]
        yield _task(generator, f"{generator.name}-{number}", size, float(int(now)), _run(generator.run, chance))


def _task(generator: Generator, name: str, size: Choice, submit: float, run: float) -> TaskSpec:
    return TaskSpec.model_construct(
        name=name,
        team=generator.team,
        priority=generator.priority,
        instance_type=generator.instance_type,
        count=size.count,
        accelerators=size.accelerators,
        v_cpu=size.v_cpu,
        memory_in_gib=size.memory_in_gib,
        pods=size.pods,
        placement=None,
        submit=submit,
        run=run,
    )


def _run(shape: Distribution, chance: random.Random) -> float:
    if shape.kind == "constant":
        drawn = shape.mean
    elif shape.kind == "exponential":
        drawn = chance.expovariate(1.0) * shape.mean
    else:
        drawn = shape.mean * math.exp(chance.gauss(0.0, shape.sigma))
    return max(1.0, float(int(min(drawn, MOST_SECONDS if shape.most is None else shape.most))))
