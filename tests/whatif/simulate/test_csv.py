"""The tasks table as CSV: one row per task, as in the report."""

import csv
import io
from pathlib import Path

from hpkit_whatif.simulate.as_csv import COLUMNS, as_csv
from hpkit_whatif.simulate.report import Admission, ClusterReport, Eviction, Report, TaskReport
from tests.cli.invoke import hpkit

ROOT = Path(__file__).parents[3]


def test_every_task_has_a_row():
    output = hpkit(
        "whatif", "simulate", "stacks/scenarios/handson.yaml", "--stack", "handson-dev", "--format", "csv", cwd=ROOT
    )
    rows = list(csv.DictReader(io.StringIO(output.stdout)))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["name"], row["admitted"], row["finished"], row["wait"]) for row in rows] == [
        ("john-first", "0", "", "0"),
        ("smith-job", "600", "", "1800"),
        ("john-next", "1800", "3600", "0"),
    ]
    smith = rows[1]
    assert (smith["borrowed"], smith["borrowedFrom"], smith["preempted"], smith["preemptedBy"], smith["lost"]) == (
        "1;1", "john;john", "1", "john-next", "1200",
    )  # fmt: skip
    assert (smith["admissions"], smith["preemptedAt"]) == ("600;3600", "1800")
    assert smith["preemptionReasons"] == "InCohortReclamation"


def test_no_cell_is_a_formula_and_commas_stay_inside():
    task = TaskReport("=1+1", "a", "ml.g5.12xlarge", 1.0, 0, 0.0)
    task.admissions.append(Admission(0.5, {"": 0.5, "b,c": 0.25, "=d": 0.25}))
    task.evictions.append(Eviction(1.0, '@x"', "b", "InCohortReclamation", 2.0))
    cluster = ClusterReport(1, 0, 0, 0, None, (), "", 1, 0, ())
    (row,) = csv.DictReader(io.StringIO(as_csv(Report("s", "f", 1.0, cluster, (), (task,), 0, 15.0, {}))))
    assert (row["name"], row["borrowed"], row["borrowedFrom"], row["preemptedBy"]) == (
        "'=1+1", "1", "b,c+'=d", "'@x\"",
    )  # fmt: skip
