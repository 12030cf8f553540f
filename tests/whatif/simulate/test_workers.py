"""Plans simulated in other processes: on this machine, and on a Dask cluster with its own workers."""

import sys
from pathlib import Path

import pytest

from hpkit.errors import SelectionError
from hpkit.project import load_stack
from hpkit_whatif.scenario import open_scenario
from hpkit_whatif.simulate.vary import grid, sweep, variation
from hpkit_whatif.simulate.workers import Cluster, cluster
from tests.cli.invoke import hpkit

ROOT = Path(__file__).parents[3]
HANDSON = ROOT / "stacks" / "scenarios" / "handson.yaml"
VARY = ("whatif", "simulate", HANDSON, "--stack", "handson-dev", "--vary", "teams[smith].sharing.borrowLimit=50,100")


@pytest.mark.parametrize(
    ("text", "found"),
    [("dask://10.0.0.5:8786", Cluster("10.0.0.5", 8786)), ("dask://[::1]:1/", Cluster("[::1]", 1))],
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
