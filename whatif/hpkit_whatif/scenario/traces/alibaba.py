"""Alibaba's GPU trace of 2023 (github.com/alibaba/clusterdata): the pod list.

Columns: cluster-trace-gpu-v2023/README.md and csv/openb_pod_list_*.csv.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hpkit.errors import InputError
from hpkit_whatif.scenario.lines import lines, opened
from hpkit_whatif.scenario.traces.model import Tally, TraceTask

__all__ = ["alibaba_2023"]

_POD_COLUMNS: Final = (
    "name", "num_gpu", "gpu_milli", "qos", "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
_MOST_FIELD: Final = 100_000

Row = dict[str, str]


def alibaba_2023(path: Path, tally: Tally) -> Iterator[TraceTask]:
    """Return the pods in openb_pod_list_*.csv; their group is the quality of service (LS, BE, Burstable, …).

    A pod that was never scheduled has no run time, and is counted in tally. Raises InputError with the line for a
    missing column, an invalid number, and a time that goes backward.
    """
    for place, row in _rows(path, _POD_COLUMNS):
        created, deleted = _number(place, row, "creation_time"), _number(place, row, "deletion_time")
        if not row["scheduled_time"]:
            tally.add("pods were never scheduled, so their run time is unknown: left out", place)
            continue
        scheduled = _number(place, row, "scheduled_time")
        _refuse_backwards(place, "scheduled_time", scheduled, "creation_time", created)
        _refuse_backwards(place, "deletion_time", deleted, "scheduled_time", scheduled)
        gpus = _number(place, row, "num_gpu")
        # gpu_milli is the fraction of its only GPU that a pod uses.
        share = _number(place, row, "gpu_milli") / 1000 if gpus == 1 else 1.0
        yield TraceTask(
            place,
            row["name"],
            row["qos"] or "none",
            created,
            deleted - scheduled,
            pods=1,
            gpus=gpus * share,
        )


def _refuse_backwards(place: str, later: str, end: float, earlier: str, begin: float) -> None:
    if end < begin:
        raise InputError(f"{place}: {later} {end:g} comes before {earlier} {begin:g}: a duration can't be negative")


def _rows(path: Path, needed: tuple[str, ...]) -> Iterator[tuple[str, Row]]:
    """Return the rows of a CSV one by one, with their places."""
    csv.field_size_limit(_MOST_FIELD)
    with opened(path) as file:
        rows = csv.reader(lines(path, file), strict=True)
        line = 1
        try:
            columns = [each.strip() for each in next(rows, [])]
            for name in needed:
                if name not in columns:
                    there = ", ".join(columns) or "none"
                    raise InputError(f"{path}:1: column {name} is missing; there are {there}. Is it this trace's file?")
            line = rows.line_num + 1
            for row in rows:
                if len(row) != len(columns):
                    raise InputError(f"{path}:{line}: {len(row)} values for {len(columns)} columns")
                yield f"{path}:{line}", dict(zip(columns, map(str.strip, row), strict=True))
                line = rows.line_num + 1
        except csv.Error as error:
            raise InputError(f"{path}:{line}: {error}") from None


def _number(place: str, row: Row, column: str) -> float:
    text = row[column]
    if not text:
        raise InputError(f"{place}: {column} is empty: every row needs a value. What to do: remove the line")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{place}: {column} is `{text}` and must be a number")
    if value < 0:
        raise InputError(f"{place}: {column} is {text}, but can't be negative")
    return value
