"""Two local clouds at once, with an `up` on each at the same time: neither sees, hinders or outlives the other."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from hpkit_local.supervisor import control
from tests.local.chaos.harness import marked, run_of
from tests.program.cloud import Live, Program
from tests.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(1800)]


@pytest.fixture
def both(make):
    """Return two clouds that were started at once."""
    instances = [make(name, latency=0) for name in ("one", "other")]
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda each: control.start(each, say=print), instances))
    return instances


def namespaces(live):
    return {name for name in live.objects()["/api/v1/namespaces"] if name.startswith("hyperpod-ns-")}


@pytest.mark.nightly
def test_two_ups_at_once_make_two_platforms_and_the_end_of_one_is_nothing_to_the_other(
    both, repository, mark, tmp_path_factory
):
    one, other = both
    assert not set(one.ports().values()) & set(other.ports().values())
    lives = [Live(each) for each in both]
    empty = lives[0].everything()
    programs = [
        Program(one, "handson-dev", root=repository.folder),
        Program(other, "startup-dev", root=repository.folder),
    ]
    with (
        run_of(programs[0], one, tmp_path_factory.mktemp("one")) as first,
        run_of(programs[1], other, tmp_path_factory.mktemp("other")) as second,
    ):
        assert first.going_on
        assert first.ends(), first.said
        assert second.ends(), second.said
    assert [live.cluster()["ClusterName"] for live in lives] == ["handson", "startup"]
    for live, organization in zip(lives, ("handson", "startup"), strict=True):
        teams = set(repository.read(organization)["environments"]["dev"]["governance"]["allocations"])
        assert set(live.quotas()) == teams
        assert namespaces(live) == {f"hyperpod-ns-{team}" for team in teams}
    before = lives[0].everything(), lives[0].settled()
    processes = other.state().processes()
    control.reset(other)
    assert not [each for each in processes if each.alive()]
    assert not other.folder.exists()
    assert control.running(one).ready
    assert (lives[0].everything(), lives[0].settled()) == before
    programs[0].destroy()
    eventually(lambda: lives[0].everything() == empty, lambda: (empty, lives[0].everything()))
    control.reset(one)
    assert marked(mark) == []
