"""Queries a real Prometheus: its engine with its own TSDB, in a Go test that is built once and kept."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hpkit.errors import ToolError
from hpkit_local import toolchain
from tests.go_tests import go_test

SOURCE = Path(__file__).with_name("promql_test.go")
NAME = "promql"
MODULE = "github.com/prometheus/prometheus"
PACKAGE = "promql/promqltest"
RECIPE = Path(toolchain.__file__).parent / "modules" / "prometheus"


def binary() -> Path:
    """Return the test's executable, built first if it doesn't exist; ToolError if that fails."""
    version = (RECIPE / "go.sum").read_text(encoding="utf-8")
    return go_test(NAME, SOURCE, MODULE, PACKAGE, recipe=RECIPE, version=version)


def ask(cases: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the results of each case's queries: `samples` with labels and value, or `error`."""
    executable = binary()
    with tempfile.TemporaryDirectory() as folder:
        given, answers = Path(folder, "cases.json"), Path(folder, "answers.json")
        given.write_text(json.dumps(cases), encoding="utf-8")
        done = subprocess.run(
            [executable, "-test.run", "^TestPromql$", "-test.timeout", "0"],
            cwd=folder,
            env={**os.environ, "PROMQL_IN": str(given), "PROMQL_OUT": str(answers)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ToolError(f"Prometheus failed with exit code {done.returncode}: {done.stdout[-2000:]}")
        found: list[list[dict[str, Any]]] = json.loads(answers.read_text(encoding="utf-8"))
        return found
