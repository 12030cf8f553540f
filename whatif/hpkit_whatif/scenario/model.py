"""The scenario file: tasks, generators of tasks, files of tasks, and places of nodes."""

import math
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from hpkit.config.models.base import Model
from hpkit.text.formatting import seconds_in
from hpkit.text.printable import printable, quoted

__all__ = [
    "MOST_NAME",
    "MOST_PODS",
    "Placement",
    "Rack",
    "Scenario",
    "TaskSpec",
    "duration",
    "generated",
    "written_duration",
]

MOST_SECONDS = 36525 * 86400.0
_HOUR = 3600.0
_DAY = 24
"""A hundred years: the longest duration."""
MOST_NAME = 200
"""The most characters of a task's name."""
MOST_PODS = 100_000
"""The most pods of a task."""

_PART = r"[0-9]+(?:\.[0-9]+)?[smhdw]"
_DURATION = re.compile(rf"(?:{_PART})+\Z")


def duration(text: Any) -> float:
    """Return the seconds of a duration such as `90s`, `2h` or `1h30m`; raises ValueError with the problem."""
    if isinstance(text, str) and _DURATION.match(text):
        seconds = seconds_in(text)
        if seconds > MOST_SECONDS:
            raise ValueError(
                f"{quoted(text)} is longer than the maximum of 100 years; for a task without an end, omit it"
            )
        return seconds
    if isinstance(text, (int, float)) and not isinstance(text, bool) and text == 0:
        return 0.0
    negative = str(text).strip().startswith("-")
    wrong = "is negative" if negative else "isn't a duration"
    raise ValueError(f"{quoted(str(text))} {wrong}: write a number with its unit, such as 90s, 15m, 2h, 1h30m or 3d")


def written_duration(seconds: float) -> str:
    """Return a duration as files have it, such as `90s`: `duration` reads the same, however short or long it is."""
    return f"{Decimal(f'{seconds:.15g}'):f}s"


def _duration(value: Any) -> float:
    try:
        return duration(value)
    except ValueError as error:
        raise PydanticCustomError("duration", "{said}", {"said": str(error)}) from None


Seconds = Annotated[
    float, BeforeValidator(_duration), WithJsonSchema({"type": ["string", "integer"], "pattern": f"^(?:{_PART})+$|^0$"})
]
_Positive = Annotated[int, Field(ge=1, le=MOST_PODS)]
# Beyond any instance, and small enough to multiply.
_Amount = Annotated[float, Field(gt=0, le=1_000_000)]
_Weight = Annotated[float, Field(ge=0, le=1_000_000)]
# A pod can request zero of what would be filled in pro rata, because Kueue counts only requests.
_Asked = Annotated[float, Field(ge=0, le=1_000_000)]


class Placement(Model):
    """How close to each other the pods of a task must be."""

    mode: Literal["required", "preferred", "unconstrained"] = Field(
        description="required: all pods under one network node of the layer. preferred: as close as possible."
    )
    layer: Annotated[int, Field(ge=1, le=3)] | None = Field(
        default=None, description="Network layer, from 1 (widest) to 3. Not with unconstrained."
    )


class _Size(Model):
    """The requests of each pod of a task: whole instances, or parts of one."""

    instance_type: str | None = Field(
        default=None, description="An `ml.*` instance type. Optional if the team has quota for only one."
    )
    count: _Positive | None = Field(default=None, description="Whole instances, with one pod each.")
    accelerators: _Positive | None = Field(
        default=None,
        description="GPUs or Trainium chips per pod. Unless you set vCPUs and memory, they are added in proportion.",
    )
    v_cpu: _Asked | None = Field(default=None, description="vCPUs per pod. 0: none are requested.")
    memory_in_gib: _Asked | None = Field(
        default=None, alias="memoryInGiB", description="Memory per pod in GiB. 0: none is requested."
    )
    pods: _Positive = Field(
        default=1, description="Number of pods that start together. With `count`, one per instance."
    )
    placement: Placement | None = Field(default=None, description="Where topology-aware scheduling puts the pods.")


def _one_line(name: str) -> str:
    # Tables print names as they are, and a line break would end a row of a CSV.
    if name != printable(name):
        raise PydanticCustomError("control_character", "a name with a line break, a tab or another control character")
    return name


class TaskSpec(_Size):
    """One task."""

    name: Annotated[str, AfterValidator(_one_line)] = Field(
        min_length=1, max_length=MOST_NAME, description="Name, unique in the scenario."
    )
    team: str = Field(description="A team of the stack.")
    priority: str | int = Field(
        default=0, description="Priority class of the stack, or a weight. Without classes, every task has weight 0."
    )
    submit: Seconds = Field(
        default=0.0, description="Time from the start of the scenario until the task enters the queue."
    )
    run: Seconds | None = Field(default=None, description="Run time after the pods are ready. Default: endless.")
    start: Seconds = Field(
        default=0.0, description="Time until the pods are ready, each time the task is admitted. For gang scheduling."
    )


class Choice(Model):
    """One of several sizes, with how often it occurs against the others."""

    weight: _Amount = Field(default=1.0, description="Frequency compared with the other sizes.")
    count: _Positive | None = Field(default=None, description="Whole instances.")
    accelerators: _Positive | None = Field(default=None, description="Accelerators per pod.")
    v_cpu: _Asked | None = Field(default=None, description="vCPUs per pod. 0: none are requested.")
    memory_in_gib: _Asked | None = Field(
        default=None, alias="memoryInGiB", description="Memory per pod in GiB. 0: none is requested."
    )
    pods: _Positive = Field(default=1, description="Pods of this size.")


class Distribution(Model):
    """How long tasks run: always the same, exponential, or lognormal, as traces of GPU clusters have it."""

    kind: Literal["constant", "exponential", "lognormal"] = Field(description="Kind of distribution.")
    mean: Seconds = Field(description="Mean, or for lognormal, the median.")
    sigma: Annotated[float, Field(ge=0, le=5)] = Field(
        default=1.0, description="Standard deviation of the logarithm, for lognormal only. 0 is constant."
    )
    most: Seconds | None = Field(default=None, description="Maximum. Longer values are cut off.")


class Pattern(Model):
    """How busy hours and days are against each other; the scenario begins on Monday at midnight."""

    hours: Annotated[tuple[_Weight, ...], Field(min_length=24, max_length=24)] = Field(
        default=(1.0,) * 24, description="24 weights of hours, starting at midnight."
    )
    days: Annotated[tuple[_Weight, ...], Field(min_length=7, max_length=7)] = Field(
        default=(1.0,) * 7, description="7 weights of days, starting on Monday."
    )


class Generator(Model):
    """Tasks drawn at random, the same ones for the same seed."""

    name: Annotated[str, AfterValidator(_one_line)] = Field(
        min_length=1, max_length=100, description="Prefix of the tasks' names."
    )
    team: str = Field(description="A team of the stack.")
    priority: str | int = Field(default=0, description="Priority of each task.")
    instance_type: str | None = Field(default=None, description="Instance type of each task.")
    per_hour: Annotated[float, Field(gt=0, le=1_000_000)] = Field(
        description="Average number of tasks per hour (a Poisson process)."
    )
    begin: Seconds = Field(default=0.0, description="Earliest time of the first task.")
    last: Seconds = Field(description="How long tasks are generated.")
    sizes: tuple[Choice, ...] = Field(min_length=1, description="Sizes of the tasks, with weights.")
    run: Distribution = Field(description="Run times of the tasks.")
    pattern: Pattern = Field(default=Pattern(), description="Weights of hours and days.")
    seed: int = Field(default=0, description="Random seed. Another seed gives other tasks of the same kind.")


class Rack(Model):
    """Nodes of one instance type under the same network nodes."""

    instance_type: str = Field(description="An `ml.*` instance type.")
    nodes: _Positive = Field(description="Number of nodes.")
    layers: Annotated[tuple[str, ...], Field(min_length=3, max_length=3)] = Field(
        description="Network nodes of layers 1, 2 and 3, as in the node labels."
    )


class Scenario(Model):
    """The tasks that are submitted to a stack over time."""

    description: str = Field(default="", description="Description of the scenario.")
    until: Seconds | None = Field(default=None, description="When to stop. Default: when nothing more happens.")
    tasks: tuple[TaskSpec, ...] = Field(default=(), description="Individual tasks.")
    generators: tuple[Generator, ...] = Field(default=(), description="Generators of random tasks.")
    files: tuple[str, ...] = Field(default=(), description="CSV files of tasks, relative to this file's folder.")
    topology: tuple[Rack, ...] = Field(
        default=(), description="Network positions of the nodes. Without them, all nodes are equally close."
    )


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
