"""Calls the real Kueue's scheduler, in a Go test that is built once and kept in the tool cache."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain import GO, TOOLS, get, golang
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
            _build(recipe, go=get(GO, say=print), into=stage, steps=steps)
            stage.rename(path)
            steps.finish()
    return path


def _build(recipe: Path, *, go: Path, into: Path, steps: Steps) -> None:
    """Build the test file as if it were Kueue's own, in the place of the tests of its package.

    The module is unpacked out of the archive that go.sum is of; it is built with its own go.mod and go.sum.
    """
    work = golang._work_folder(NAME, recipe)
    answer = golang._downloaded(MODULE, go=go, work=work, steps=steps, fine=golang._for_a_newer_go)
    with tempfile.TemporaryDirectory(dir=work) as temporary:
        with zipfile.ZipFile(answer["Zip"]) as archive:
            archive.extractall(temporary)
        root = Path(temporary) / f"{answer['Path']}@{answer['Version']}"
        for test in (root / PACKAGE).glob("*_test.go"):
            test.unlink()
        shutil.copyfile(SOURCE, root / PACKAGE / SOURCE.name)
        options = ["-trimpath", "-mod=readonly", "-buildvcs=false", "-o", str(into)]
        steps.run(
            [str(go), "test", "-c", *options, f"./{PACKAGE}"],
            doing=f"building the tests of {PACKAGE}",
            cwd=root,
            env=golang._environment(),
            usual_seconds=120,
        )


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
