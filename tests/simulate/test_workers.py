"""Plans simulated elsewhere: in processes of this machine, and on a Dask cluster with workers of their own."""

import sys
from pathlib import Path

import pytest

from hpkit.errors import SelectionError, ToolError
from hpkit.project import load_stack
from hpkit.scenario import open_scenario
from hpkit.simulate.vary import grid, sweep, variation
from hpkit.simulate.workers import Cluster, cluster
from tests.cli.invoke import hpkit

ROOT = Path(__file__).parents[2]
HANDSON = ROOT / "stacks" / "scenarios" / "handson.yaml"
VARY = ("simulate", HANDSON, "--stack", "handson-dev", "--vary", "teams[smith].sharing.borrowLimit=50,100")


@pytest.mark.parametrize(
    ("text", "found"),
    [("dask://10.0.0.5:8786", Cluster("10.0.0.5", 8786)), ("dask://[::1]:1/", Cluster("[::1]", 1))],
)
def test_a_cluster_has_an_address(text, found):
    assert cluster(text) == found


@pytest.mark.parametrize("text", ["ray://x:1", "dask://x", "dask://:1", "dask://x:99999", "x:1", "dask://a/b:1"])
def test_what_is_no_address_says_how_one_is_written(text):
    with pytest.raises(SelectionError, match="write dask://HOST:PORT"):
        cluster(text)


def test_a_single_run_needs_no_cluster():
    result = hpkit("simulate", HANDSON, "--stack", "handson-dev", "--on", "dask://x:1", cwd=ROOT)
    assert (result.returncode, "--on belongs to --vary" in result.stderr) == (2, True)


def test_without_the_package_it_says_how_to_install_it(monkeypatch):
    # As Python has it for a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = hpkit(*VARY, "--on", "dask://127.0.0.1:1", cwd=ROOT)
    assert (result.returncode, "pip install 'hpkit[dask]'" in result.stderr) == (1, True), result.stderr


@pytest.fixture(scope="module")
def dask():
    """Return the address of a cluster of two workers, each a process of its own."""
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
    alone, together = (list(sweep(loaded, source, policies, workers=1, on=on, seeds=(0, 1))) for on in (None, there))
    assert alone == together
    assert len(dask.workers) == 2


@pytest.mark.nightly
@pytest.mark.filterwarnings("default")
def test_a_cluster_without_workers_is_said():
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=":0") as empty:
        there = cluster(f"dask://{empty.scheduler_address.removeprefix('tcp://')}")
        run = sweep(load_stack("handson-dev"), open_scenario(HANDSON), [()], on=there)
        with pytest.raises(ToolError, match="has no workers"):
            next(run)
