"""Comparing policies: which value a path refers to, what the validator rejects, and equal results in two processes."""

import json
import sys
from pathlib import Path

import pytest

from hpkit.errors import SelectionError
from hpkit.project import load_stack
from hpkit_whatif.scenario import open_scenario
from hpkit_whatif.simulate.vary import NewValue, changed, grid, sweep, variation
from hpkit_whatif.simulate.workers import Cluster, cluster
from tests.cli.invoke import hpkit

ROOT = Path(__file__).parents[3]
HANDSON = ROOT / "stacks" / "scenarios" / "handson.yaml"
VARY = ("whatif", "simulate", HANDSON, "--stack", "handson-dev", "--vary", "teams[smith].sharing.borrowLimit=50,100")


@pytest.fixture(scope="module")
def loaded():
    return load_stack("handson-dev")


@pytest.mark.parametrize(
    ("text", "value", "reads"),
    [
        ("teams[smith].fairShareWeight", 7, lambda plan: plan.teams[1].spec.fair_share_weight),
        ("governance.teams[smith].fairShareWeight", 7, lambda plan: plan.teams[1].spec.fair_share_weight),
        ("teams[smith].sharing.borrowLimit", 7, lambda plan: plan.teams[1].spec.sharing.borrow_limit),
        ("clusterPolicy.fairShare", "Disabled", lambda plan: plan.policy.fair_share),
        ("governance.allocations.john[0].count", 2, lambda plan: plan.teams[0].quota_resources[0].count),
        ("governance.allocations.john[ml.g5.12xlarge].count", 2, lambda plan: plan.teams[0].quota_resources[0].count),
    ],
)
def test_a_path_leads_to_a_value_of_the_plan(loaded, text, value, reads):
    _, plan = changed(loaded, [NewValue(text, value)])
    assert reads(plan) == value
    assert reads(loaded.plans["dev"]) != value, "the file itself stays as it is"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("teams[smit].fairShareWeight", r"there is no \[smit\]; there are john, smith"),
        ("teamz[smith].fairShareWeight", "did you mean `teams`"),
        ("allocations.john[0].count", r"did you mean `governance\.allocations`"),
        ("governance.alocations.john[0].count", "there is no `alocations`; there are allocations"),
        ("teams[smith].name.x", "`name` is `smith`, and has no `x`"),
        ("teams..name", "isn't a valid path"),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(loaded, text, said):
    with pytest.raises(SelectionError, match=said):
        changed(loaded, [NewValue(text, 1)])


@pytest.mark.parametrize("text", ["teams[smith].fairShareWeight", "=1", "a=", ""])
def test_a_variation_has_a_path_and_values(text):
    with pytest.raises(SelectionError, match="isn't a valid --vary option"):
        variation(text)


def test_too_many_combinations_are_refused_before_the_first():
    numbers = ",".join(map(str, range(101)))
    with pytest.raises(SelectionError, match="10,201 policies"):
        grid([variation(f"a={numbers}"), variation(f"b={numbers}")])


def test_what_the_validator_refuses_is_not_simulated(loaded):
    policies = grid(
        [variation("governance.allocations.john[0].count=3,30"), variation("teams[john].fairShareWeight=1,101")]
    )
    refused = [result.rejected for result in sweep(loaded, open_scenario(HANDSON), policies, workers=1)]
    assert refused[0] is None
    assert "CFG002 teams[john].fairShareWeight" in refused[1]
    assert "CAP001" in refused[2]


def test_a_refused_value_is_the_one_that_was_tried(loaded):
    _, refused = changed(loaded, [NewValue("teams[smith].fairShareWeight", 101)])
    assert "fairShareWeight is `101`; the maximum is 100" in refused


def test_a_sweep_of_which_nothing_is_left_fails():
    vary = ("whatif", "simulate", HANDSON, "--stack", "handson-dev", "--vary", "teams[smith].fairShareWeight=101,102")
    result = hpkit(*vary, cwd=ROOT)
    assert (result.returncode, "the validator rejects every policy" in result.stderr) == (1, True)


def test_two_processes_find_what_one_finds(loaded):
    policies = grid([variation("teams[smith].sharing.borrowLimit=50,100")])
    alone, together = (list(sweep(loaded, open_scenario(HANDSON), policies, workers=workers)) for workers in (1, 2))
    assert alone == together
    assert [result.report.team("smith").never for result in alone] == [1, 0], "with half an instance more it fits not"


def test_a_task_that_can_never_run_counts_as_waiting(loaded):
    (result,) = sweep(loaded, open_scenario(HANDSON), [(NewValue("teams[smith].sharing.borrowLimit", 50),)], workers=1)
    smith = result.report.team("smith")
    assert (smith.service, smith.wait_p95) == (0, 110 * 60)


def test_variations_are_said_as_json():
    result = hpkit(
        "whatif", "simulate", HANDSON, "--stack", "handson-dev", "--vary", "teams[smith].sharing.borrowLimit=100,20000",
        "--workers", 1, "--format", "json", cwd=ROOT,
    )  # fmt: skip
    items = json.loads(result.stdout)["items"]
    assert [each["policy"] for each in items] == [{"teams[smith].sharing.borrowLimit": value} for value in (100, 20000)]
    assert items[0]["run"]["cluster"]["preemptions"] == 1
    assert items[1]["rejected"].startswith("GOV")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "Missing option '--stack'"),
        (("--stack", "handson-dev", "--vary", "teams[x].y=1"), 2, "there is no [x]"),
        (("--stack", "handson-dev", "--vary", "a=1", "--skip-impossible"), 2, "can't be combined with --vary"),
        (("--stack", "handson-dev", "--output", "/no/such/folder"), 1, "no such file or directory"),
        (("--stack", "nosuch-dev"), 2, "requires stacks/nosuch.yaml, which doesn't exist"),
    ],
)
def test_misuse_is_said_in_a_sentence(arguments, code, said):
    result = hpkit("whatif", "simulate", HANDSON, *arguments, cwd=ROOT)
    assert (result.returncode, said in result.stderr) == (code, True), result.stderr


@pytest.mark.parametrize(
    ("text", "found"), [("dask://10.0.0.5:8786", Cluster("10.0.0.5", 8786)), ("dask://[::1]:1/", Cluster("[::1]", 1))]
)
def test_a_cluster_has_an_address(text, found):
    assert cluster(text) == found


@pytest.mark.parametrize("text", ["ray://x:1", "dask://x", "dask://:1", "dask://x:99999", "x:1", "dask://a/b:1"])
def test_what_is_no_address_says_how_one_is_written(text):
    with pytest.raises(SelectionError, match="use dask://HOST:PORT"):
        cluster(text)


def test_without_the_package_it_says_how_to_install_it(monkeypatch):
    # Python's error for a module that can't be imported.
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = hpkit(*VARY, "--on", "dask://127.0.0.1:1", cwd=ROOT)
    assert (result.returncode, "pip install 'hpkit[dask]'" in result.stderr) == (1, True), result.stderr


@pytest.fixture(scope="module")
def dask():
    """Return the address of a cluster of two workers, each in a separate process."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
    ) as running:
        yield running


@pytest.mark.nightly
@pytest.mark.filterwarnings("default")
def test_two_workers_find_what_one_process_finds(dask):
    loaded = load_stack("handson-dev")
    policies = grid(
        [variation("teams[smith].sharing.borrowLimit=50,100"), variation("teams[john].fairShareWeight=0,9")]
    )
    there = cluster(f"dask://{dask.scheduler_address.removeprefix('tcp://')}")
    source = open_scenario(HANDSON)
    alone, together = (list(sweep(loaded, source, policies, workers=1, on=on, seed=1)) for on in (None, there))
    assert alone == together
    assert len(dask.workers) == 2


@pytest.mark.nightly
@pytest.mark.filterwarnings("default")
def test_what_is_wrong_with_the_scenario_is_one_line_from_a_cluster_too(dask, tmp_path):
    file = tmp_path / "tasks.csv"
    file.write_text("name,team,submit,run,count\na,john,0s,1h,1\nb,smit,1s,1h,1\n")
    vary = ("--vary", "teams[smith].fairShareWeight=1,2,3,4,5,6,7,8")
    on = dask.scheduler_address.replace("tcp://", "dask://")
    result = hpkit("whatif", "simulate", file, "--stack", "handson-dev", *vary, "--on", on, cwd=ROOT)
    assert result.returncode == 1
    assert result.stderr == (
        f"error: {file}:3: task b is of team smit, which handson-dev lacks; did you mean smith?\n"
    ), "and no traceback of what was under way"
