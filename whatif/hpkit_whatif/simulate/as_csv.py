"""The result of each task as CSV, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from typing import Final

from hpkit.text.printable import csv_cell
from hpkit_whatif.simulate.report import Report, TaskReport

__all__ = ["COLUMNS", "as_csv"]

COLUMNS: Final = (
    "name", "team", "instanceType", "instances", "priority", "submit", "admitted", "finished", "wait", "admissions",
    "borrowed", "borrowedFrom", "preempted", "preemptedAt", "preemptedBy", "preemptionReasons", "lost", "never",
    "waitsFor",
)  # fmt: skip
"""Times are seconds from the scenario's beginning, amounts are in instances; lists have `;` between their items.

admissions, borrowed and borrowedFrom have an item for each admission, with `+` between the teams of one.
"""


def as_csv(report: Report) -> str:
    """Return a row for each task of a report, in the order of submission; an empty cell is what did not happen."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for task in report.tasks:
        writer.writerow(_row(task))
    return text.getvalue()


def _row(task: TaskReport) -> tuple[str, ...]:
    evictions = task.evictions
    return (
        csv_cell(task.name),
        csv_cell(task.team),
        csv_cell(task.instance_type),
        _number(task.instances),
        str(task.priority),
        _number(task.submit),
        _number(task.admitted),
        _number(task.finished),
        _number(task.wait),
        ";".join(_number(each.time) for each in task.admissions),
        ";".join(_number(sum(each.borrowed.values())) for each in task.admissions),
        ";".join("+".join(csv_cell(team) for team in each.borrowed if team) for each in task.admissions),
        str(len(evictions)),
        ";".join(_number(each.time) for each in evictions),
        ";".join(csv_cell(each.by) for each in evictions),
        ";".join(dict.fromkeys(each.reason for each in evictions)),
        _number(task.lost),
        csv_cell(task.never or ""),
        csv_cell(task.waits_for or ""),
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"
