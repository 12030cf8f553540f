"""Lists of a cluster's quotas, which all quotas of a run share. One call serves many threads."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from hpkit_provider.aws.client import SageMakerApi
from hpkit_provider.engine.call import EngineCall

__all__ = ["QuotaLists"]

T = TypeVar("T")


@dataclass(frozen=True)
class _Answer(Generic[T]):
    """A result, and the time of its call."""

    value: T
    started: float


class _SingleFlight(Generic[T]):
    """A call that several threads need: a thread that asks during a call shares the result of the next one."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._answer: _Answer[T] | None = None
        self._in_flight = False

    def get(self, fetch: Callable[[], T], *, not_before: float) -> _Answer[T]:
        """Return the result of a call that was made at `not_before` or later."""
        with self._condition:
            while True:
                if self._answer is not None and self._answer.started >= not_before:
                    return self._answer
                if not self._in_flight:
                    self._in_flight = True
                    break
                self._condition.wait(timeout=1.0)
        started = time.monotonic()
        try:
            answer = _Answer(fetch(), started)
        except BaseException:
            with self._condition:
                self._in_flight = False
                self._condition.notify_all()
            raise
        with self._condition:
            self._answer = answer
            self._in_flight = False
            self._condition.notify_all()
        return answer


_PAGE_SIZE: Final = 100


class QuotaLists:
    """The quotas of each cluster; one call serves all that ask at the same time."""

    def __init__(self, api: SageMakerApi) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._listed: dict[str, _SingleFlight[list[dict[str, Any]]]] = {}

    def get(self, call: EngineCall, arn: str, *, age: float = 0.0) -> list[dict[str, Any]]:
        """Return the quotas of a cluster, at most `age` seconds old."""

        def fetch() -> list[dict[str, Any]]:
            pages = self._api.pages(
                call,
                "list_compute_quotas",
                member="ComputeQuotaSummaries",
                ClusterArn=arn,
                SortBy="CreationTime",
                SortOrder="Ascending",
                MaxResults=_PAGE_SIZE,
            )
            return [entry for entry in pages if entry["Status"] != "Deleted"]

        with self._lock:
            listed = self._listed.setdefault(arn, _SingleFlight())
        return listed.get(fetch, not_before=time.monotonic() - age).value
