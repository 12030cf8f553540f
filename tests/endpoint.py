"""The endpoint inside a test: real HTTP on loopback, stopped when the block ends."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from hpkit_local.aws.api import BackendView
from hpkit_local.aws.backend import Backend, EndpointSettings
from hpkit_local.aws.controllers import Controllers, Snapshot
from hpkit_local.aws.moto_state import DEFAULT_ACCOUNT, moto_services
from hpkit_local.aws.server import Endpoint

__all__ = ["ManualClock", "RunningEndpoint", "client", "running_endpoint"]


def client(url: str, service: str, *, region: str = "us-west-2") -> Any:
    """Return a boto3 client of the endpoint at `url`, with dummy credentials and without retries."""
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=url,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106 - the endpoint checks no signature
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


class ManualClock:
    """A clock that stands still until it's moved, so that a test sees every intermediate status."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._now = start

    def __call__(self) -> float:
        """Return the seconds since the epoch, as last set."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move time on."""
        self._now += seconds


class RunningEndpoint:
    """The result of `running_endpoint`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.url = endpoint.url

    def reset(
        self,
        *,
        latency_factor: float = 0.0,
        clock: Callable[[], float] | None = None,
        state: Mapping[str, bytes] | None = None,
    ) -> None:
        """Reset it to a new endpoint at the same address, or to what `state` returned."""
        account = self._endpoint.backend.settings.account
        settings = EndpointSettings(latency_factor=latency_factor, seed=1, clock=clock or time.time, account=account)
        self._endpoint.reset(Backend(settings, state))

    def state(self) -> Mapping[str, bytes]:
        """Return the whole state, for `reset`."""
        with self._endpoint.backend.locked():
            return self._endpoint.backend.state(["own", *moto_services()])

    def snapshot(self) -> Snapshot:
        """Return what controllers read of this endpoint."""
        return BackendView(self._endpoint.backend).snapshot()

    def stats(self) -> dict[str, Any]:
        """Return the response of `GET /_hpkit/stats`."""
        return self._endpoint.stats()

    def set_faults(self, faults: Mapping[str, object] | None = None, **more: object) -> None:
        """Set faults by name (`failed_update=1` is `failed-update`); None takes one away."""
        named = {name.replace("_", "-"): value for name, value in more.items()}
        self._endpoint.set_faults({**(faults or {}), **named})

    def client(self, service: str, region: str = "us-west-2") -> Any:
        """Return a boto3 client of this endpoint."""
        return client(self.url, service, region=region)


@contextmanager
def running_endpoint(
    *,
    state_file: str | Path | None = None,
    latency_factor: float = 0.0,
    faults: Iterable[str] = (),
    seed: int | None = 1,
    clock: Callable[[], float] | None = None,
    controllers: Controllers | None = None,
    account: str = DEFAULT_ACCOUNT,
    caller_account: str | None = None,
    caller_role: str | None = None,
    caller_address: str | None = None,
) -> Iterator[RunningEndpoint]:
    """Run an endpoint in this process; `faults` are `name=value`. Several may run side by side."""
    settings = EndpointSettings(
        state_file=Path(state_file) if state_file else None,
        latency_factor=latency_factor,
        faults=dict(_fault(text) for text in faults),
        seed=seed,
        clock=clock or time.time,
        controllers=controllers or Controllers(),
        account=account,
        caller_account=caller_account,
        caller_role=caller_role,
        caller_address=caller_address,
    )
    endpoint = Endpoint(Backend(settings))
    endpoint.start()
    try:
        yield RunningEndpoint(endpoint)
    finally:
        endpoint.stop()


def _fault(text: str) -> tuple[str, object]:
    name, _, value = text.partition("=")
    return name, value
