"""A live cluster: looked at, waited for, asked to change, with the service's own reasons when that fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from provider.client import Api
from provider.cluster_plan import nodes, settled
from provider.errors import ChangeFailedError, PluginError, classify, refused
from provider.handler import CONFLICT_TRIES
from provider.task import Task
from provider.waiter import kind_of, wait

__all__ = ["MOST", "SHARE", "LiveCluster", "broken", "line"]

Document = dict[str, Any]
MOST: Final = 20.0  # seconds between two looks, at most
SHARE: Final = 0.05  # of the time waited, between two looks
_EVENTS: Final = 3
_RETRY: Final = frozenset({"conflict", "unsure", "role", "checking"})


@dataclass(frozen=True)
class LiveCluster:
    """One cluster, by name or ARN, as one operation sees it."""

    api: Api
    task: Task
    name: str

    def describe(self) -> Document | None:
        """Return what DescribeCluster says; None when there is no such cluster."""
        found: Document | None = self.api.find(self.task, "describe_cluster", ClusterName=self.name)
        return found

    def settle(self) -> Document | None:
        """Wait until no change runs."""
        found: Document | None = wait(
            self.task, self.describe, settled=settled, progress=lambda seen: line(seen, []), most=MOST, share=SHARE
        )
        return found

    def ask(self, operation: str, params: Document, *, tries: int, fine: frozenset[str] = frozenset()) -> Any | None:
        """Send a change; None when it has to be tried again. `tries`: how often it was before; `fine`: also retried."""
        try:
            return self.api.raw(self.task, operation, **params)
        except (ClientError, BotoCoreError) as error:
            kind = classify(error)
            # Deep health checks take hours: what waits for them waits as long as its time-out lets it.
            if kind not in _RETRY | fine or (tries >= CONFLICT_TRIES and kind != "checking"):
                spoken = "".join(part.capitalize() for part in operation.split("_"))
                raise refused(spoken, error) from None
            return None

    def update(self, request: Document, *, tries: int) -> bool:
        """Send one UpdateCluster; False when it has to be tried again."""
        return self.ask("update_cluster", {"ClusterName": self.name, **request}, tries=tries) is not None

    def failure(self, document: Document) -> ChangeFailedError:
        """Say why it failed: the service's reason, and the last events of the cluster."""
        reason = document.get("FailureMessage") or document.get("AutoScaling", {}).get("FailureMessage")
        return self.explained(
            f"Cluster {document['ClusterName']!r} is {document['ClusterStatus']}: {reason or 'no reason given'}",
            document,
        )

    def explained(self, text: str, document: Document) -> ChangeFailedError:
        """Return a failure with the last events of the cluster."""
        try:
            answer = self.api.call(
                self.task,
                "list_cluster_events",
                ClusterName=document["ClusterArn"],
                SortBy="EventTime",
                SortOrder="Descending",
                MaxResults=_EVENTS,
            )
        except PluginError:
            return ChangeFailedError(text)
        events = [f"  {event['EventTime']:%H:%M:%S} {event['Description']}" for event in answer.get("Events", [])]
        return ChangeFailedError("\n".join([text, "Last events:", *events]) if events else text)


def broken(document: Document) -> bool:
    """Whether the cluster or its autoscaler failed."""
    return kind_of(document["ClusterStatus"]) == "failed" or document.get("AutoScaling", {}).get("Status") == "Failed"


def line(document: Document | None, autoscaled: list[str]) -> str:
    """Return the status column: status, and nodes that are there of those that should be."""
    if document is None:
        return "gone"
    there, wanted = nodes(document, autoscaled=autoscaled)
    return f"{document['ClusterStatus']} {there}/{wanted} nodes"
