"""A live cluster: described, waited for, changed, with the service's own reasons when that fails."""

from dataclasses import dataclass
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from hpkit_provider.aws.client import Document, SageMakerApi, operation_name
from hpkit_provider.aws.errors import ErrorKind, classify, classify_status, rejected
from hpkit_provider.engine.call import EngineCall, wait
from hpkit_provider.engine.errors import ChangeFailedError, PluginError, RolledBackError
from hpkit_provider.resources.cluster.update_request import settled
from hpkit_provider.resources.handler import CONFLICT_RETRIES

__all__ = ["MAX_POLL_SECONDS", "LiveCluster", "has_failed"]

MAX_POLL_SECONDS: Final = 20.0  # seconds between two polls, at most
POLL_FRACTION: Final = 0.05  # of the time waited, between two polls
_EVENTS: Final = 3
_RETRIED: Final[frozenset[ErrorKind]] = frozenset({"conflict", "transient", "role", "health check running"})


@dataclass(frozen=True)
class LiveCluster:
    """One cluster, by name or ARN, as one operation sees it."""

    api: SageMakerApi
    call: EngineCall
    name: str

    def describe(self) -> Document | None:
        """Return DescribeCluster's response; None if the cluster doesn't exist."""
        return self.api.find(self.call, "describe_cluster", ClusterName=self.name)

    def settle(self) -> Document | None:
        """Wait until no change runs."""
        return wait(
            self.call,
            self.describe,
            settled=settled,
            progress=_status_line,
            max_seconds=MAX_POLL_SECONDS,
            fraction=POLL_FRACTION,
        )

    def send(
        self, operation: str, params: Document, *, tries: int, also_retried: frozenset[ErrorKind] = frozenset()
    ) -> Document | None:
        """Send a change; None when it has to be tried again. `tries` counts how often it was before."""
        try:
            return self.api.raw(self.call, operation, **params)
        except (ClientError, BotoCoreError) as error:
            kind = classify(error)
            # Deep health checks take hours: operations that need them wait until their time-out.
            if kind not in _RETRIED | also_retried or (tries >= CONFLICT_RETRIES and kind != "health check running"):
                raise rejected(operation_name(operation), error) from None
            return None

    def update(self, request: Document, *, tries: int) -> bool:
        """Send one UpdateCluster; False when it has to be tried again."""
        return self.send("update_cluster", {"ClusterName": self.name, **request}, tries=tries) is not None

    def failure(self, document: Document) -> ChangeFailedError:
        """Return why it failed: the service's reason, and the cluster's last events."""
        reason = document.get("FailureMessage") or document.get("AutoScaling", {}).get("FailureMessage")
        return self.failure_with_events(
            f"Cluster {document['ClusterName']!r} is {document['ClusterStatus']}: {reason or 'no reason given'}",
            document,
        )

    def rolled_back(self, what: str, document: Document) -> RolledBackError:
        """Return that the service accepted an update, and undid it."""
        reason = document.get("FailureMessage")
        text = f"HyperPod accepted the update of cluster {document['ClusterName']!r}, and then undid it: {what}"
        return RolledBackError(self._with_events(f"{text}. Reason: {reason}" if reason else text, document))

    def failure_with_events(self, text: str, document: Document) -> ChangeFailedError:
        """Return a failure with the last events of the cluster."""
        return ChangeFailedError(self._with_events(text, document))

    def _with_events(self, text: str, document: Document) -> str:
        try:
            answer = self.api.call(
                self.call,
                "list_cluster_events",
                ClusterName=document["ClusterArn"],
                SortBy="EventTime",
                SortOrder="Descending",
                MaxResults=_EVENTS,
            )
        except PluginError:
            return text
        events = [f"  {event['EventTime']:%H:%M:%S} {event['Description']}" for event in answer.get("Events", [])]
        return "\n".join([text, "Last events:", *events]) if events else text


def has_failed(document: Document) -> bool:
    """Return whether the cluster or its autoscaler failed."""
    return (
        classify_status(document["ClusterStatus"]) == "failed"
        or document.get("AutoScaling", {}).get("Status") == "Failed"
    )


def _status_line(document: Document | None) -> str:
    """Return the status column: the status, and how many of the requested nodes exist."""
    if document is None:
        return "gone"
    groups = [*document.get("InstanceGroups", []), *document.get("RestrictedInstanceGroups", [])]
    there, wanted = (sum(group.get(count, 0) for group in groups) for count in ("CurrentCount", "TargetCount"))
    return f"{document['ClusterStatus']} {there}/{wanted} nodes"
