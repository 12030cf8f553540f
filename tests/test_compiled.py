"""The simulator as machine code decides what its sources decide, and only the sources that it was made of."""

import ast
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hpkit import compiled
from local.toolchain import get_all
from local.toolchain.model import MachineCode
from local.toolchain.table import tool_named
from tests.whatif import neutral
from tests.whatif.cases import drawn

ROOT = Path(__file__).parents[1]
COUNTS = {"cycle": 100, "scenario": 30, "topology": 20}
RUN = """
import json, sys
from hpkit import compiled
from tests.whatif import neutral
assert compiled.is_used() and neutral.Simulator.run_cycle.__class__.__name__ == "method_descriptor"
print(json.dumps([neutral.run(case) for case in json.load(sys.stdin)]))
"""
USED = "from hpkit import compiled, whatif; print(compiled.is_used(), whatif.Simulator.__module__)"


REFUSED = """
from hpkit.whatif import ClusterQueue, Model, PodSet, Simulator, Workload
for made in ((1.5, {}), (1, {"gpu": 0.5}), (1, {}, 0.5), (float("nan"), {}), (-1, {}), ("1", {})):
    try:
        Simulator(Model((ClusterQueue("a"),)), [Workload("t", "a", (PodSet("main", *made),))])
    except ValueError as error:
        print(error)
"""


@pytest.fixture(scope="module", autouse=True)
def tool():
    """Have the simulator translated, once for each version of its sources."""
    (found,) = get_all([tool_named(compiled.SIMULATOR)], say=print)
    if found.path is None:
        pytest.skip("the simulator cannot be translated here: it takes mypyc and a C compiler")
    return found.path.parent


def python(code, *, text="", root=ROOT / "infra", **variables):
    """Return what a program prints; the simulator may be machine code in it."""
    env = {name: value for name, value in os.environ.items() if name != "HPKIT_COMPILED"}
    path = os.pathsep.join([str(root), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=text,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**env, "PYTHONPATH": path, **variables},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_random_organizations_end_the_same():
    there = [case for kind, count in COUNTS.items() for case in drawn(kind, count, 3)]
    outcomes = json.loads(python(RUN, text=json.dumps(there)))
    differ = [
        case["id"]
        for case, outcome in zip(there, outcomes, strict=True)
        if json.loads(json.dumps(neutral.run(case))) != outcome
    ]
    assert differ == []


def test_what_is_no_pod_set_is_refused_in_the_same_words():
    as_source, as_machine_code = python(REFUSED, HPKIT_COMPILED="0"), python(REFUSED)
    assert len(as_source.splitlines()) == 6
    assert as_machine_code == as_source


def test_a_month_of_an_example_is_the_same_to_the_last_figure():
    arguments = "simulate stacks/scenarios/month.yaml --stack enterprise-prod --format json"
    command = f"import sys; from hpkit.cli import main; sys.argv = 'hpkit {arguments}'.split(); main()"
    as_source, as_machine_code = python(command, HPKIT_COMPILED="0"), python(command)
    assert len(json.loads(as_source)["tasks"]) > 1000
    assert as_machine_code == as_source


def test_what_was_made_of_other_sources_is_left_aside(tmp_path):
    assert python(USED).split() == ["True", "hpkit.whatif.simulator"]
    assert python(USED, HPKIT_COMPILED="0").split()[0] == "False"
    shutil.copytree(ROOT / "infra" / "hpkit", tmp_path / "hpkit", ignore=shutil.ignore_patterns("__pycache__"))
    assert python(USED, root=tmp_path).split()[0] == "True", "where the sources are does not matter"
    with (tmp_path / "hpkit" / "whatif" / "tree.py").open("a") as file:
        file.write("\n# Edited.\n")
    assert python(USED, root=tmp_path).split()[0] == "False"


def test_the_hash_is_of_all_that_the_modules_import():
    """The modules that only say names of others count too: what a package hands on is in one of its modules."""
    known = {*compiled.MODULES, *compiled.IMPORTED}
    for module in compiled.MODULES:
        tree = ast.parse((ROOT / "infra").joinpath(*module.split(".")).with_suffix(".py").read_text())
        found = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
        assert {name for name in found if name.startswith("hpkit")} <= known, module


def test_what_this_machine_cannot_load_is_left_aside(tmp_path, tool):
    kept = tmp_path / "tools" / tool.parent.name / tool.name
    shutil.copytree(tool, kept)
    assert python(USED, HPKIT_CACHE=str(tmp_path)).split()[0] == "True"
    (shared,) = (kept / "files").glob("*__mypyc.*")
    shared.write_bytes(b"\x7fELF of another machine")
    assert python(USED, HPKIT_CACHE=str(tmp_path)).split()[0] == "False"


@pytest.mark.parametrize(
    ("lacks", "says"), [("compiler", "there is no C compiler"), ("mypyc", "there is no package mypyc")]
)
def test_without_a_compiler_it_goes_without(tmp_path, monkeypatch, lacks, says):
    monkeypatch.setenv("HPKIT_CACHE", str(tmp_path))
    if lacks == "compiler":
        monkeypatch.setattr("shutil.which", lambda _: None)
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    said = []
    (found,) = get_all([tool_named(compiled.SIMULATOR)], say=said.append)
    assert found.source == "missing"
    assert any(line.startswith("simulator: goes without: ") and says in line for line in said), said


def test_a_translation_that_fails_leaves_its_log_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("HPKIT_CACHE", str(tmp_path / "cache"))
    module = tmp_path / "kit" / "module.py"
    module.parent.mkdir()
    module.write_text("def half(number: int) -> str:\n    return number // 2\n")
    tool = tool_named(compiled.SIMULATOR)
    broken = replace(tool, sources=(MachineCode(root=tmp_path, modules=("kit.module",)),))
    said = []
    (found,) = get_all([broken], say=said.append)
    assert found.source == "missing"
    assert any("Incompatible return value type" in line and "Whole log: " in line for line in said), said
    assert list((tmp_path / "cache" / "tools" / tool.name).iterdir()) == []
