"""What every test starts from."""

import datetime
import gc
import os
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from hpkit_local.aws import api_models

if TYPE_CHECKING:
    from tests.clouds import Clouds

# A chart that every `up` installed would cost each of them; the tests that are of it take the folder from this one.
if "HPKIT_MIRROR" in os.environ:
    os.environ["HPKIT_TESTS_MIRROR"] = os.environ.pop("HPKIT_MIRROR")
# As would what stands in for it; the README's `make up` has it.
os.environ["HPKIT_SUBSTITUTE_CHART"] = "none"

# Where a user's Pulumi has its plugins: only tests that compare Pulumi's own with the fake use them.
os.environ.setdefault("HPKIT_TESTS_PULUMI_HOME", os.environ.get("PULUMI_HOME", ""))
os.environ["PULUMI_HOME"] = os.devnull

# Tests start Python a thousand times, and a shell may forbid it to keep what it compiled: each would compile all anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

NIGHTLY = os.environ.get("HPKIT_NIGHTLY") == "1"

# Recordings and clients leave many cycles behind: looking for them as often as Python does by itself took a third of
# the time of the tests that need no cloud.
gc.set_threshold(100_000, 20, 50)

# Half of what an API server does in a test is to collect garbage so that it stays small, as it should beside people's
# work. For the minutes that a test's cloud lives, it and Pulumi may be large.
os.environ.setdefault("GOGC", "off")
os.environ.setdefault("GOMEMLIMIT", "800MiB")

# Tests make sessions by the hundred.
api_models.share()

# How fast examples come says how busy the machine is, and nothing of the code.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# Started in the background, a shell's job ignores Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart() -> None:
    """A run that `timeout` or a CI ends by SIGTERM ends as by Ctrl-C: what its fixtures started is stopped."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What is loaded by now stays: no search for garbage needs to look at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are judged as on one day: the versions that they name are supported on it, whenever a test runs."""
    monkeypatch.setattr("hpkit.project.today", lambda: datetime.date(2026, 11, 22))


_CLOUDS = pytest.StashKey["Clouds"]()


@pytest.fixture(scope="session")
def clouds(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator["Clouds"]:
    """Give the local cloud that the files of this worker share."""
    # Loaded by those alone that need it: it takes seconds.
    from tests.clouds import Clouds

    clouds = request.config.stash[_CLOUDS] = Clouds(tmp_path_factory.mktemp)
    yield clouds
    clouds.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave nightly tests to the night; put the files first that drive an engine or a cluster.

    Side by side, the long ones must not be begun last. Those that share a cloud, or a platform on it, come in a row.
    The platform is an engine's work on a cluster, and takes its time.
    """
    for item in items:
        if item.get_closest_marker("platform"):
            item.add_marker("engine")
            item.add_marker("cluster")
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(1800))
    if not NIGHTLY:
        items[:] = [item for item in items if item.get_closest_marker("nightly") is None]
    first = ("platform", "clouds", "engine", "cluster")
    paths = [{item.path for item in items if _has(item, name)} for name in first]
    items.sort(key=lambda item: (*(item.path not in wanted for wanted in paths), _takes_platform_away(item)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give files to workers as `--dist loadfile` does, but those that need the platform to one: each makes its own.

    At night they take too long for that. Those of the Kubernetes plugin share an EKS cluster.
    """
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            if not NIGHTLY and _needs_platform(config.rootpath / file):
                return "platform"
            return "kubernetes" if file.startswith("tests/local/plugins/kubernetes/") else file

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@cache
def _needs_platform(file: Path) -> bool:
    """Say so from the text: who hands out files has not loaded them."""
    return "mark.platform" in file.read_text(encoding="utf-8")


def _takes_platform_away(item: pytest.Item) -> int:
    """Return how far behind the others of the platform a test comes: 1, nodes are gone then; 2, all of it."""
    marker = item.get_closest_marker("platform")
    return 0 if marker is None else int(marker.kwargs.get("taken_away", 0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop the worker's cloud after the last file that wants it: idle, it still takes a tenth of a core."""
    yield
    shared = item.config.stash.get(_CLOUDS, None)
    if shared is not None and (nextitem is None or nextitem.path not in _with_clouds(item.session)):
        shared.close()


@cache
def _with_clouds(session: pytest.Session) -> set[Path]:
    """Return the files of which any test wants the worker's cloud."""
    return {item.path for item in session.items if _has(item, "clouds")}


def _has(item: pytest.Item, name: str) -> bool:
    """Say whether a test has a marker or a fixture of that name."""
    return item.get_closest_marker(name) is not None or name in getattr(item, "fixturenames", ())
