"""Calls the real Kueue's scheduler, in a Go test that is built once and kept in the tool cache."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import GO, TOOLS, get
from hpkit_local.toolchain.golang import build_test
from hpkit_local.toolchain.model import GoBuild
from hpkit_local.toolchain.steps import Steps, locked

SOURCE = Path(__file__).with_name("oracle_test.go")
NAME = "kueue-oracle"
MODULE = "sigs.k8s.io/kueue"
PACKAGE = "pkg/scheduler"


def binary() -> Path:
    """Return the test's executable, built first if it doesn't exist; ToolError if that fails."""
    kueue = next(tool for tool in TOOLS if tool.name == "kueue")
    recipe = next(source.recipe for source in kueue.sources if isinstance(source, GoBuild))
    mark = hashlib.sha256(SOURCE.read_bytes() + kueue.version.encode()).hexdigest()[:12]
    path = cache_root() / "tests" / f"{NAME}-{mark}"
    with locked(NAME, print):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            steps, stage = Steps(NAME, print), path.with_suffix(".partial")
            build_test(MODULE, PACKAGE, SOURCE, recipe=recipe, go=get(GO, say=print), into=stage, steps=steps)
            stage.rename(path)
            steps.finish()
    return path


def ask(cases: list[dict[str, Any]], *, times: int = 1, seconds: int = 60) -> list[list[Any]]:
    """Return the different results of a number of runs of each case; ToolError if a run takes longer than allowed."""
    executable = binary()
    with tempfile.TemporaryDirectory() as folder:
        given, answers = Path(folder, "cases.json"), Path(folder, "answers.json")
        given.write_text(json.dumps(cases), encoding="utf-8")
        done = subprocess.run(
            [executable, "-test.run", "^TestOracle$", "-test.timeout", "0"],
            cwd=folder,
            env={
                **os.environ,
                "ORACLE_IN": str(given),
                "ORACLE_OUT": str(answers),
                "ORACLE_TIMES": str(times),
                "ORACLE_SECONDS": str(seconds),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ToolError(f"the oracle failed with exit code {done.returncode}: {done.stdout[-2000:]}")
        return [each["answers"] for each in json.loads(answers.read_text(encoding="utf-8"))]
