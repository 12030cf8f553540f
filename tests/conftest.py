"""Settings and fixtures for all tests."""

import datetime
import gc
import os
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import botocore.loaders
import botocore.session
import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from hpkit_local.kubernetes.api import Api
    from hpkit_local.supervisor.local_cloud import LocalCloud
    from tests.clouds import Clouds
    from tests.endpoint import RunningEndpoint
    from tests.program.cloud import Live

# Installing a chart would slow down every `up`; tests that need the chart take the folder from here.
if "HPKIT_MIRROR" in os.environ:
    os.environ["HPKIT_TESTS_MIRROR"] = os.environ.pop("HPKIT_MIRROR")
# The substitute chart would also be slow; the README's `make up` installs it.
os.environ["HPKIT_SUBSTITUTE_CHART"] = "none"

# The user's Pulumi plugins: only tests that compare Pulumi's own plugins with the fake ones use them.
os.environ.setdefault("HPKIT_TESTS_PULUMI_HOME", os.environ.get("PULUMI_HOME", ""))
os.environ["PULUMI_HOME"] = os.devnull

# Tests start Python a thousand times. If a shell forbids writing bytecode, each start compiles everything again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

NIGHTLY = os.environ.get("HPKIT_NIGHTLY") == "1"

# Recordings and clients leave many reference cycles. Python's default collection frequency took a third of the time of
# tests without a cloud.
gc.set_threshold(100_000, 20, 50)

# In tests, an API server spends half its time on garbage collection to stay small, as it should on a user's machine. A
# test's cloud lives only minutes, so the API server and Pulumi may use more memory.
os.environ.setdefault("GOGC", "off")
os.environ.setdefault("GOMEMLIMIT", "1200MiB")

# How fast examples are generated depends on the machine's load, not on the code. By day, each run has the same
# examples, so that a failure is the change's; the nightly run draws others, and twice as many.
settings.register_profile(
    "unhurried",
    deadline=None,
    derandomize=not NIGHTLY,
    max_examples=100 if NIGHTLY else 50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")


class _Loader(botocore.loaders.Loader):
    """Reads the models of AWS's services once, not for each session. S3's clients change its model: it isn't shared."""

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> dict:
        loader = botocore.loaders.Loader() if service_name == "s3" else super()
        return loader.load_service_model(service_name, type_name, api_version)


botocore.session.create_loader = cache(lambda _data_path: _Loader())

# A shell's background jobs ignore Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart() -> None:
    """Handle SIGTERM from `timeout` or CI like Ctrl-C, so that fixtures stop what they started."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Exclude everything loaded so far from garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the current date, so that the versions in files are always supported."""
    monkeypatch.setattr("hpkit.project.today", lambda: datetime.date(2026, 11, 22))


_CLOUDS = pytest.StashKey["Clouds"]()


@pytest.fixture(scope="session")
def clouds(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator["Clouds"]:
    """Return the local cloud that this worker's files share."""
    # Only tests that need it import it, because that takes seconds.
    from tests.clouds import Clouds

    clouds = request.config.stash[_CLOUDS] = Clouds(tmp_path_factory.mktemp)
    yield clouds
    clouds.close()


@pytest.fixture(scope="module")
def instance(request: pytest.FixtureRequest, clouds: "Clouds") -> "LocalCloud":
    """Return the worker's cloud: with the stack handson-dev if the file is marked `platform`, otherwise empty."""
    return clouds.handson() if request.node.get_closest_marker("platform") else clouds.empty()


@pytest.fixture(scope="module")
def live(instance: "LocalCloud") -> "Live":
    """Return clients of the cloud's AWS endpoint and API server, with all permissions."""
    from tests.program.cloud import Live

    return Live(instance)


@pytest.fixture(scope="module")
def api(live: "Live") -> "Api":
    """Return the administrator's client of Kubernetes."""
    return live.api


@pytest.fixture(scope="module")
def endpoint() -> Iterator["RunningEndpoint"]:
    """Return an AWS endpoint without AWS's 1,500 managed policies: creating them takes longer than most tests."""
    from tests.endpoint import running_endpoint

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "false")
        with running_endpoint() as running:
            yield running


@pytest.fixture
def account(endpoint: "RunningEndpoint", monkeypatch: pytest.MonkeyPatch) -> "RunningEndpoint":
    """Return the endpoint with an empty account, to which the environment's credentials belong."""
    endpoint.reset()
    endpoint.set_faults(throttle=None)
    keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_ENDPOINT_URL": endpoint.url}
    for name, value in {**keys, "AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    return endpoint


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip nightly tests by day, and run files with an engine or a cluster first.

    Long tests must not start last when tests run in parallel. Files that share a cloud or a platform run one after the
    other, because deploying the platform takes time.
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
    """Distribute files as `--dist loadfile` does, but send all files that need the platform to one worker.

    Otherwise each worker would deploy it. Nightly, these files take too long for one worker. Files of the Kubernetes
    plugin share an EKS cluster.
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
    """Decide by the file's text, because the scheduler hasn't imported the file."""
    return "mark.platform" in file.read_text(encoding="utf-8")


def _takes_platform_away(item: pytest.Item) -> int:
    """Return the position of a test after others of the platform: 1 if it deletes nodes, 2 if it deletes everything."""
    marker = item.get_closest_marker("platform")
    return 0 if marker is None else int(marker.kwargs.get("taken_away", 0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop the worker's cloud after the last file that uses it: even idle, it uses a tenth of a core."""
    yield
    shared = item.config.stash.get(_CLOUDS, None)
    if shared is not None and (nextitem is None or nextitem.path not in _with_clouds(item.session)):
        shared.close()


@cache
def _with_clouds(session: pytest.Session) -> set[Path]:
    """Return the files with tests that use the worker's cloud."""
    return {item.path for item in session.items if _has(item, "clouds")}


def _has(item: pytest.Item, name: str) -> bool:
    """Return whether a test has a marker or fixture with that name."""
    return item.get_closest_marker(name) is not None or name in getattr(item, "fixturenames", ())
