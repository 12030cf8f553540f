"""Lists of a cluster's quotas, which all quotas of a run share."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

from hpkit_provider.aws.client import SageMakerApi
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.single_flight import SingleFlight

__all__ = ["QuotaLists"]

_PAGE_SIZE: Final = 100


class QuotaLists:
    """The quotas of each cluster; one call serves all that ask at the same time."""

    def __init__(self, api: SageMakerApi) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._listed: dict[str, SingleFlight[list[dict[str, Any]]]] = {}

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
            listed = self._listed.setdefault(arn, SingleFlight())
        return listed.get(fetch, not_before=time.monotonic() - age).value
