"""Hands nodes to the service, and follows them until it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from boto3 import Session
from botocore.exceptions import BotoCoreError, ClientError

from hpkit.cluster.nodes.drain import Clock
from hpkit.cluster.nodes.model import LIMITS, Verb
from hpkit.errors import ToolError

__all__ = ["OPERATIONS", "Batch", "Outcome", "follow", "hand_over", "statuses", "update_software"]

# Verb → operation of SageMaker's API.
OPERATIONS: Final[Mapping[Verb, str]] = {
    "replace": "BatchReplaceClusterNodes",
    "reboot": "BatchRebootClusterNodes",
    "delete": "BatchDeleteClusterNodes",
}
_METHODS: Final[Mapping[Verb, str]] = {
    "replace": "batch_replace_cluster_nodes",
    "reboot": "batch_reboot_cluster_nodes",
    "delete": "batch_delete_cluster_nodes",
}
_PAGE: Final = 100
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
# A reboot between two polls isn't noticed; after this time, a running node counts as rebooted.
_SETTLED_SECONDS: Final = 30.0
_OTHERS: Final = ("Running", "Failure", "NotFound")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the service accepted, and what it rejected: instance ID → reason."""

    taken: tuple[str, ...]
    refused: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Batch:
    """How many nodes an update of the software replaces at a time."""

    type: str
    value: int


def hand_over(session: Session, cluster: str, verb: Verb, ids: Sequence[str]) -> Outcome:
    """Request an operation on instances, in as many requests as the limit requires.

    Raises ToolError if a request fails as a whole, with the results of earlier ones.
    """
    client = session.client("sagemaker")
    accepted_ids: list[str] = []
    refused: dict[str, str] = {}
    for start in range(0, len(ids), LIMITS[verb]):
        some = list(ids[start : start + LIMITS[verb]])
        try:
            answer = getattr(client, _METHODS[verb])(ClusterName=cluster, NodeIds=some)
        except (ClientError, BotoCoreError) as error:
            raise _failed(OPERATIONS[verb], error, accepted_ids) from None
        accepted_ids += answer.get("Successful") or ()
        for each in answer.get("Failed") or ():
            refused[each["NodeId"]] = f"{each.get('ErrorCode') or each.get('Code')}: {each['Message']}"
    return Outcome(tuple(accepted_ids), refused)


def _failed(operation: str, error: Exception, taken: Sequence[str]) -> ToolError:
    before = f"; {', '.join(taken)} had already been accepted" if taken else ""
    if not isinstance(error, ClientError):
        return ToolError(f"sagemaker:{operation}: {error}{before}. Run it again when SageMaker responds")
    details = error.response.get("Error", {})
    code = details.get("Code", "Unknown")
    advice = "see `hpkit cluster status`, and run it again"
    if "Denied" in code:
        advice = f"allow the caller sagemaker:{operation}"
    return ToolError(f"sagemaker:{operation}: {code}: {details.get('Message', error)}{before}. What to do: {advice}")


def update_software(
    session: Session,
    cluster: str,
    groups: Sequence[str],
    *,
    release: str | None = None,
    batch: Batch | None = None,
) -> None:
    """Request an update of instance groups to an AMI release, by default the newest. Raises ToolError."""
    entry: dict[str, Any] = {} if release is None else {"ImageReleaseVersion": release}
    request: dict[str, Any] = {
        "ClusterName": cluster,
        "InstanceGroups": [{"InstanceGroupName": name, **entry} for name in groups],
    }
    if batch is not None:
        size = {"Type": batch.type, "Value": batch.value}
        request["DeploymentConfig"] = {"RollingUpdatePolicy": {"MaximumBatchSize": size}}
    try:
        session.client("sagemaker").update_cluster_software(**request)
    except (ClientError, BotoCoreError) as error:
        raise _failed("UpdateClusterSoftware", error, ()) from None


def statuses(session: Session, cluster: str) -> dict[str, tuple[str, str]]:
    """Return instance id → (status, group) of every node; raises ToolError."""
    try:
        pages = session.client("sagemaker").get_paginator("list_cluster_nodes")
        node_pages = pages.paginate(ClusterName=cluster, PaginationConfig={"PageSize": _PAGE})
        return {
            node["InstanceId"]: (node["InstanceStatus"]["Status"], node["InstanceGroupName"])
            for page in node_pages
            for node in page["ClusterNodeSummaries"]
        }
    except (ClientError, BotoCoreError) as error:
        raise _failed("ListClusterNodes", error, ()) from None


def follow(
    read_statuses: Callable[[], Mapping[str, tuple[str, str]]],
    verb: Verb,
    ids: Sequence[str],
    wanted_counts: Mapping[str, int],
    *,
    clock: Clock,
    timeout: float,
    say: Callable[[str], None],
) -> None:
    """Report each change of nodes' status until the operation on them is done.

    look returns what `statuses` does; wanted is group → how many nodes must run at the end of a replacement. Raises
    ToolError if a node fails, or after timeout (seconds).
    """
    begun, pause = clock.monotonic(), _FIRST_PAUSE
    reported: dict[str, str] = {}
    away: set[str] = set()
    while True:
        now = read_statuses()
        for line in _changes(now, ids, reported, wanted_counts):
            say(line)
        away |= {each for each in ids if now.get(each, ("", ""))[0] != "Running"}
        failed = [each for each in ids if now.get(each, ("", ""))[0] == "Failure"] if verb == "reboot" else []
        if failed:
            raise ToolError(f"{', '.join(failed)} failed. Run `hpkit node replace {' '.join(failed)}`")
        settled = clock.monotonic() - begun >= _SETTLED_SECONDS
        if _is_over(now, verb, ids, wanted_counts, away=away, settled=settled):
            return
        if clock.monotonic() - begun >= timeout:
            raise ToolError(
                f"not finished after {timeout:g} seconds; the service continues. To see its progress, run `hpkit "
                "node list`"
            )
        clock.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 1.5)


def _changes(
    now: Mapping[str, tuple[str, str]], ids: Sequence[str], reported: dict[str, str], wanted_counts: Mapping[str, int]
) -> Iterator[str]:
    new = [each for each, (_, group) in now.items() if group in wanted_counts and each not in ids]
    for node_id in [*ids, *new]:
        status = now[node_id][0] if node_id in now else "gone"
        if reported.get(node_id) not in (None, status) or (node_id not in reported and status not in _OTHERS):
            yield f"{node_id} is {status}"
        reported[node_id] = status


def _is_over(
    now: Mapping[str, tuple[str, str]],
    verb: Verb,
    ids: Sequence[str],
    wanted_counts: Mapping[str, int],
    *,
    away: set[str],
    settled: bool,
) -> bool:
    if verb == "reboot":
        back = all(now.get(each, ("", ""))[0] == "Running" for each in ids)
        return back and (settled or away >= set(ids))
    if any(each in now for each in ids):
        return False
    running = [group for status, group in now.values() if status == "Running"]
    return all(running.count(group) >= count for group, count in wanted_counts.items())
