"""Readiness: waits until something that AWS applies with a delay can be used. It creates nothing.

What AWS accepts isn't in effect immediately: EKS access entries and Pod Identity associations are eventually
consistent, and so are KMS keys and permissions on them. A HyperPod node joins Kubernetes minutes after its cluster is
InService. What depends on such a resource waits for it here, with its own time limit.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final
from urllib.parse import quote

from hpkit_provider.aws.client import Document, SageMakerApi
from hpkit_provider.aws.kubernetes import EksApi, Unanswered
from hpkit_provider.engine.call import EngineCall, wait
from hpkit_provider.engine.errors import TimedOutError
from hpkit_provider.engine.values import Props
from hpkit_provider.resources.handler import ResourceState
from hpkit_provider.resources.state_only import StateOnlyHandler

__all__ = ["ReadinessHandler"]

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
class _JoinedNodes:
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
            + f"\nTo fix: read the log of the lifecycle script, in log group {where}, stream {first}"
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


_MAX_POLL_SECONDS: Final = 10.0
_POLL_FRACTION: Final = 0.05
# AWS names no number: "several seconds" for EKS (API reference, CreateAccessEntry and CreatePodIdentityAssociation),
# "usually less than five minutes" for KMS (developer guide, "AWS KMS eventual consistency"). In the only public
# measurement of the race between a key's policy and CreateCluster, 4 s were enough.
_SETTLE_SECONDS: Final = 10.0
_SETTLE_VARIABLE: Final = "HYPERPOD_SETTLE_SECONDS"
# Every deployer can send this request. EKS rejects it to callers without an access policy.
_ANY_PATH: Final = "/api/v1/nodes?limit=1"


@dataclass(frozen=True)
class _Check:
    """Something to wait for.

    - lacking: returns what is still missing, or "".
    - remedy: what to do if it never appears.
    - settles: whether one response isn't enough, because other servers of AWS might not know it yet.
    - late: called when the time is up; returns whether the run can continue without it.
    """

    lacking: Callable[[], str]
    remedy: str
    settles: bool = False
    late: Callable[[], bool] = lambda: False


class ReadinessHandler(StateOnlyHandler):
    """Handler of hyperpod:index:Readiness."""

    name: ClassVar[str] = "Readiness"
    seconds: ClassVar[float] = 24 * 3600.0  # its input `minutes` is the limit
    example: ClassVar[Props] = {
        "keyArn": "arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f",
        "minutes": 10,
    }

    def create(self, call: EngineCall, inputs: Props) -> ResourceState:
        """Wait."""
        self._wait(call, inputs)
        return super().create(call, inputs)

    def update(self, call: EngineCall, resource_id: str, *, old: Props, new: Props, state: Props) -> ResourceState:
        """Wait for what the inputs now contain; not for nodes of added groups, as long as others stay."""
        staying = [group for group in new.get("instanceGroups", []) if group in old.get("instanceGroups", [])]
        self._wait(call, {**new, "instanceGroups": staying} if staying else new)
        return super().update(call, resource_id, old=old, new=new, state=state)

    def _wait(self, call: EngineCall, inputs: Props) -> None:
        for check in _checks(self.api, call, inputs):
            _await(call, check, minutes=inputs["minutes"])


def _await(call: EngineCall, check: _Check, *, minutes: float) -> None:
    started = time.monotonic()
    settle = _settle_seconds() if check.settles else 0.0
    there_since: list[float] = []

    def poll() -> str:
        lacking = check.lacking()
        if lacking:
            there_since.clear()
            return lacking
        there_since.append(time.monotonic())
        return "" if time.monotonic() - there_since[0] >= settle else f"ready; confirming for {settle:g} s"

    def settled(lacking: str) -> bool:
        if not lacking:
            return True
        if time.monotonic() - started < 60 * minutes:
            return False
        if check.late():
            return True
        raise TimedOutError(f"{lacking} after {minutes:g} min. {check.remedy}")

    def progress(lacking: str) -> str:
        minutes = int((time.monotonic() - started) / 60)
        waited = f"; waited {minutes} min so far" if minutes else ""
        return f"{lacking}{waited}" if lacking else "ready"

    wait(call, poll, settled=settled, progress=progress, max_seconds=_MAX_POLL_SECONDS, fraction=_POLL_FRACTION)


def _settle_seconds() -> float:
    """Return how long a response must stay the same; a local cloud has one server, and its own times."""
    return float(os.environ.get(_SETTLE_VARIABLE) or _SETTLE_SECONDS)


def _checks(api: SageMakerApi, call: EngineCall, inputs: Props) -> Iterator[_Check]:
    if "keyArn" in inputs:
        yield _key(api, call, inputs["keyArn"])
    for account, association in inputs.get("podIdentityAssociations", {}).items():
        yield _association(api, call, inputs["eksClusterName"], account, association)
    if "instanceCounts" in inputs:
        yield _capacity(api, call, inputs["clusterArn"], inputs["instanceCounts"])
    if "endpoint" not in inputs:
        return
    eks = EksApi(api, inputs["eksClusterName"], inputs["endpoint"], inputs["certificateAuthority"])
    names = inputs.get("instanceGroups", [])
    deployments = inputs.get("deployments", [])
    if names:
        nodes = _JoinedNodes(api, call, eks, cluster=inputs["clusterArn"], groups=tuple(names))
        yield _Check(nodes.lacking, "", late=nodes.late)
    for deployment in deployments:
        yield _Check(
            partial(_unavailable, eks, deployment),
            f"To fix: look at its pods with `kubectl describe deployment -n {deployment.replace('/', ' ')}`, then "
            "run `pulumi up` again.",
        )
    if not names and not deployments:
        yield _Check(
            partial(_closed, eks),
            "To fix: list the deployer in eks.administrators, or in the access entries of an existing cluster; "
            "check that this machine reaches the endpoint. Then run `pulumi up` again.",
            settles=True,
        )


def _key(api: SageMakerApi, call: EngineCall, arn: str) -> _Check:
    def lacking() -> str:
        found = api.find(call, "kms.describe_key", KeyId=arn)
        state = found["KeyMetadata"]["KeyState"] if found else "unknown to KMS"
        return "" if state == "Enabled" else f"KMS key {arn} is {state}"

    return _Check(lacking, "To fix: enable the key, then run `pulumi up` again.", settles=True)


def _capacity(api: SageMakerApi, call: EngineCall, arn: str, counts: Mapping[str, float]) -> _Check:
    """Wait for a limited time: continuous provisioning starts with a part of the capacity, and requests the rest."""

    def lacking() -> str:
        document = api.find(call, "describe_cluster", ClusterName=arn) or {}
        groups = [*document.get("InstanceGroups", ()), *document.get("RestrictedInstanceGroups", ())]
        there = {group["InstanceGroupName"]: group.get("CurrentCount", 0) for group in groups}
        missing = {name: int(count) for name, count in counts.items() if there.get(name, 0) < count}
        return ", ".join(f"{name} has {there.get(name, 0)} of {count} instances" for name, count in missing.items())

    def late() -> bool:
        call.warn(f"{lacking()}; HyperPod keeps requesting the rest.")
        return True

    return _Check(lacking, "", late=late)


def _association(api: SageMakerApi, call: EngineCall, cluster: str, account: str, association: str) -> _Check:
    def lacking() -> str:
        found = api.find(call, "eks.describe_pod_identity_association", clusterName=cluster, associationId=association)
        return "" if found else f"the Pod Identity association of {account} doesn't exist in EKS cluster {cluster}"

    return _Check(lacking, "To fix: run `pulumi refresh`, then `pulumi up`.", settles=True)


def _closed(eks: EksApi) -> str:
    try:
        eks.get(_ANY_PATH)
    except Unanswered as error:
        return f"the Kubernetes API of EKS cluster {eks.cluster} isn't usable yet ({error})"
    return ""


def _unavailable(eks: EksApi, name: str) -> str:
    namespace, _, deployment = name.partition("/")
    try:
        status = eks.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}")
    except Unanswered as error:
        return f"deployment {name} isn't available yet ({error})"
    conditions = {each["type"]: each for each in status.get("status", {}).get("conditions", [])}
    available = conditions.get("Available", {})
    if available.get("status") == "True":
        return ""
    return f"deployment {name} isn't available yet ({available.get('message', 'no replica runs')})"
