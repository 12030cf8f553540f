"""Nodes of instance groups, as HyperPod and Kubernetes show them: which ones pods can run on, and why others can't."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from hpkit_provider.aws.client import Document, SageMakerApi
from hpkit_provider.aws.kubernetes import EksApi, Unanswered
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import TimedOutError

__all__ = ["JoinedNodes"]

_GROUP: Final = "sagemaker.amazonaws.com/instance-group-name"
_HEALTH: Final = "sagemaker.amazonaws.com/node-health-status"
_PAGE: Final = 500
_NAMED: Final = 10
# Instances that leave, for another group for example (MoveClusterNodes), or that HyperPod replaces.
_GONE: Final = frozenset({"ShuttingDown", "NotFound", "DetachInProgress"})
_FAILED: Final = "Failure"


@dataclass(frozen=True)
class _Instance:
    """An instance of a group: HyperPod's data, and why its node can't run pods; "" if it can."""

    id: str
    group: str
    status: str
    message: str
    reason: str

    @property
    def log_stream(self) -> str:
        """Return the stream with the output of its lifecycle script, in the cluster's log group.

        Source: SageMaker HyperPod developer guide, cluster management: log group and log stream names.
        """
        return f"LifecycleConfig/{self.group}/{self.id}"

    def __str__(self) -> str:
        said = f"{self.status}: {self.message}" if self.message else self.status
        return f"hyperpod-{self.id} ({self.group}): HyperPod: {said}; Kubernetes: {self.reason}"


@dataclass
class JoinedNodes:
    """The nodes of some instance groups of a cluster."""

    api: SageMakerApi
    call: EngineCall
    eks: EksApi
    cluster: str
    groups: tuple[str, ...]
    _seen: list[_Instance] = field(default_factory=list)
    _wanted: dict[str, int] = field(default_factory=dict)

    def lacking(self) -> str:
        """Return the groups with nodes that can't run pods yet, or "".

        A node that HyperPod reports as failed isn't waited for, as long as its group has others. Nor is an instance
        that doesn't exist yet: HyperPod keeps requesting it, and `instanceCounts` waits for it.
        """
        try:
            joined = self._joined()
        except Unanswered as error:
            return f"the Kubernetes API isn't usable ({error})"
        document = self.api.find(self.call, "describe_cluster", ClusterName=self.cluster) or {}
        self._wanted = {each["InstanceGroupName"]: each["TargetCount"] for each in document.get("InstanceGroups", ())}
        summaries = self.api.pages(
            self.call, "list_cluster_nodes", member="ClusterNodeSummaries", ClusterName=self.cluster, MaxResults=100
        )
        self._seen = [
            _instance(summary, joined)
            for summary in summaries
            if summary["InstanceGroupName"] in self.groups and summary["InstanceStatus"]["Status"] not in _GONE
        ]
        lacking = [text for text in (self._group(name) for name in self.groups) if text]
        if not lacking:
            self._warn()
        return ", ".join(lacking)

    def late(self) -> bool:
        """Continue if pods can run on some node; raises TimedOutError with the reasons of all others."""
        if any(not each.reason for each in self._seen):
            self._warn()
            return True
        document = self.api.find(self.call, "describe_cluster", ClusterName=self.cluster) or {}
        counts = ", ".join(filter(None, (self._group(name) for name in self.groups)))
        where = f"/aws/sagemaker/Clusters/{document.get('ClusterName', 'NAME')}/{self.cluster.rpartition('/')[2]}"
        first = next((each.log_stream for each in self._seen), "LifecycleConfig/GROUP/INSTANCE-ID")
        failure = document.get("FailureMessage")
        raise TimedOutError(
            "\n  ".join([f"no node can run pods: {counts}", *self._reasons()])
            + (f"\nHyperPod's message about the cluster: {failure}" if failure else "")
            + f"\nWhat to do: read the log of the lifecycle script, in log group {where}, stream {first}"
            + (", and likewise for the others" if len(self._seen) > 1 else "")
            + ". `hpkit cluster status` shows the cluster's events. Then run `pulumi up` again, which "
            "continues from here. If the nodes only need longer, for deep health checks for example, raise "
            "cluster.nodesReadyMinutes."
        )

    def _warn(self) -> None:
        reasons = self._reasons()
        if reasons:
            self.call.warn("\n  ".join(["These nodes can't run pods; the run continues without them:", *reasons]))

    def _reasons(self) -> list[str]:
        waiting = [str(each) for each in self._seen if each.reason]
        waiting += [
            f"{name}: HyperPod has {self._wanted[name] - absent} of {self._wanted[name]} instances"
            for name in self.groups
            if (absent := self._absent(name))
        ]
        more = [f"and {len(waiting) - _NAMED} more"] if len(waiting) > _NAMED else []
        return [*waiting[:_NAMED], *more]

    def _group(self, name: str) -> str:
        nodes = [each for each in self._seen if each.group == name]
        failed = sum(each.status == _FAILED for each in nodes)
        ready = sum(not each.reason for each in nodes)
        absent = self._absent(name)
        waiting = sum(each.status != _FAILED and bool(each.reason) for each in nodes)
        if ready and not waiting:
            return ""
        details = [f"{failed} failed"] if failed else []
        details += [f"{absent} without an instance"] if absent else []
        return f"{name} {ready}/{len(nodes) + absent} Ready" + (f" ({', '.join(details)})" if details else "")

    def _absent(self, name: str) -> int:
        """Return how many instances a group lacks."""
        return max(self._wanted.get(name, 0) - sum(each.group == name for each in self._seen), 0)

    def _joined(self) -> dict[str, Mapping[str, Any]]:
        """Return the nodes of the groups, by name."""
        selector = quote(f"{_GROUP} in ({','.join(self.groups)})")
        nodes: dict[str, Mapping[str, Any]] = {}
        token = ""
        while True:
            page = self.eks.get(f"/api/v1/nodes?labelSelector={selector}&limit={_PAGE}&continue={quote(token)}")
            nodes.update({each["metadata"]["name"]: each for each in page["items"]})
            token = page["metadata"].get("continue", "")
            if not token:
                return nodes


def _instance(summary: Document, joined: Mapping[str, Mapping[str, Any]]) -> _Instance:
    status = summary["InstanceStatus"]
    node = joined.get(f"hyperpod-{summary['InstanceId']}")
    return _Instance(
        summary["InstanceId"],
        summary["InstanceGroupName"],
        status["Status"],
        status.get("Message", ""),
        "not a node yet" if node is None else _reason(node),
    )


def _reason(node: Mapping[str, Any]) -> str:
    """Return why no pod can run on a node."""
    conditions = {each["type"]: each for each in node.get("status", {}).get("conditions", [])}
    ready = conditions.get("Ready", {"status": "Unknown"})
    if ready["status"] != "True":
        return " ".join(filter(None, ("not Ready,", ready.get("reason"), ready.get("message")))).rstrip(",")
    # Unschedulable during deep health checks; UnschedulablePendingReplacement and …PendingReboot after a fault.
    health = node["metadata"].get("labels", {}).get(_HEALTH, "Schedulable")
    return "" if health == "Schedulable" else f"{_HEALTH}: {health}"
