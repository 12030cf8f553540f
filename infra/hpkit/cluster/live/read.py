"""Reads a running platform in parallel: SageMaker, EKS and the Kubernetes API. Changes nothing.

A rejected or failed call doesn't mean that something is missing: it's kept as unknown, with the service's message.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args

from boto3 import Session
from kubernetes.client import ApiException

from hpkit.clients.aws import call_all
from hpkit.clients.calls import ApiCall, FailedCall, Responses
from hpkit.clients.kubernetes import KUBERNETES_ERRORS, api_client
from hpkit.cluster.live.kubernetes import FORBIDDEN, NOT_FOUND, Kubernetes
from hpkit.cluster.live.model import Observed, Platform
from hpkit.cluster.live.parse import (
    failed_streams,
    flavor_of,
    log_group_of,
    node_of,
    node_pool_of,
    platform_of,
    pod_of,
    queue_of,
    task_of,
    warned_of,
)
from hpkit.errors import MissingClusterError, ToolError

__all__ = ["AWS_PARTS", "AwsPart", "Clusters", "ask", "find", "instances", "objects_of", "plan_ends", "read"]

OnWorkload = Callable[[Mapping[str, Any]], None]
AwsPart = Literal["nodes", "policy", "addons", "events", "training-plans"]
AWS_PARTS: Final[tuple[AwsPart, ...]] = get_args(AwsPart)

# One page of events, because all would be thousands.
_LATEST: Final = {"MaxItems": 20, "PageSize": 20}
# The maximum page size of ListClusterNodes (API reference); the default is ten.
_NODES: Final = 100
# From the API server's cache, at most a moment old, and in one response (Kubernetes documentation, "API concepts",
# semantics of resourceVersion). A list from etcd takes three times as long. Pods and Workloads can be too many for
# that: of Workloads, a response has about 3 MB per 1,000.
_FROM_CACHE: Final = ("resourceVersion", "0")
_MOST_AT_ONCE: Final = 5_000
# Instances whose log is read, and how many of its last lines.
_LOGS: Final = 3
_LINES: Final = 5
# Pods that have succeeded use nothing, and explain nothing.
_UNFINISHED: Final = ("fieldSelector", "status.phase!=Succeeded")
_WARNINGS: Final = ("fieldSelector", "type=Warning")

_QUOTAS: Final = ("clusterqueues", "workloadpriorityclasses", "resourceflavors")
# Kinds that a team's members can list only in their team's namespace.
_NAMESPACED: Final = ("pods", "events", "localqueues", "workloads")
_KUEUE_CONFIGURATION: Final = "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config"
# Kinds that a team's members can't read.
_NOT_OF_MEMBERS: Final = ("configmaps", "nodepools", "priorityclasses")
_KINDS: Final = ("nodes", *_NAMESPACED, *_QUOTAS, "nodepools", "priorityclasses")


def read(
    session: Session,
    *,
    cluster: str,
    eks: str = "",
    aws: Collection[AwsPart] = AWS_PARTS,
    settings: bool = False,
    namespaces: Sequence[str] = (),
    on_workload: OnWorkload | None = None,
) -> Observed:
    """Return the current state of a platform; cluster is the HyperPod cluster's name.

    - eks: the EKS cluster's name. With it, and nothing of `aws`, SageMaker isn't called: its client alone takes 0.2 s.
    - aws: what is read from SageMaker and EKS in addition to the two clusters; if empty, the result has no platform.
    - settings: whether Kueue's own configuration and Karpenter's NodePools are read, which a team's members can't.
    - namespaces: where pods and tasks are read if the caller can't list them everywhere.
    - on_workload: is called with each Workload, and the result has no tasks: 100,000 take a gigabyte.

    Raises ToolError if the cluster or its EKS cluster can't be described, because everything else depends on them.
    """
    clusters = find(session, cluster) if aws or not eks else Clusters({}, _describe_eks(session, eks))
    unknown: list[str] = []
    with ThreadPoolExecutor(max_workers=1) as pool:
        platform = pool.submit(_platform, session, clusters.hyperpod, clusters.eks, aws, unknown) if aws else None
        fields = _kubernetes(
            session, clusters.eks, unknown, settings=settings, namespaces=namespaces, on_workload=on_workload
        )
        return Observed(
            time=datetime.now(tz=UTC),
            platform=None if platform is None else platform.result(),
            **fields,
            # Members read only their namespaces; that they lack what no member has is no warning.
            unknown=tuple(each for each in unknown if not (fields.get("namespaces") and isinstance(each, _Denied))),
        )


class _Denied(str):
    """The message of a permission that a team's members don't have."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Clusters:
    """The two clusters of a platform, as DescribeCluster of SageMaker and of EKS show them."""

    hyperpod: Mapping[str, Any]
    eks: Mapping[str, Any]


def find(session: Session, cluster: str) -> Clusters:
    """Return the HyperPod cluster of a name and the EKS cluster that orchestrates it.

    Raises ToolError when either cannot be described.
    """
    described = ask(session, ApiCall("sagemaker", "DescribeCluster", {"ClusterName": cluster}))
    orchestrator = (described.get("Orchestrator") or {}).get("Eks")
    if orchestrator is None:
        raise ToolError(f"{cluster} isn't orchestrated by EKS, the only orchestrator that hpkit supports")
    name = str(orchestrator["ClusterArn"]).rpartition("/")[2]
    return Clusters(described, _describe_eks(session, name))


def instances(session: Session, cluster: str) -> Platform | None:
    """Return a cluster with only its instances and the logs of failed ones; None if the caller can't list them."""
    try:
        described = ask(session, ApiCall("sagemaker", "DescribeCluster", {"ClusterName": cluster}))
    except ToolError:
        return None
    parts: tuple[AwsPart, ...] = ("nodes",)
    platform = _platform(session, described, {"name": ""}, parts, [])
    return None if "nodes" in platform.unread else platform


def plan_ends(session: Session, arns: Collection[str]) -> dict[str, datetime]:
    """Return when training plans end, by ARN, without those that the caller can't read."""
    calls = {
        arn: ApiCall("sagemaker", "DescribeTrainingPlan", {"TrainingPlanName": arn.rpartition("/")[2]}) for arn in arns
    }
    answers = _Answers(session, [*calls.values()], [])
    return {arn: end for arn, call in calls.items() if (end := (answers.one(call) or {}).get("EndTime")) is not None}


def _describe_eks(session: Session, name: str) -> Any:
    return ask(session, ApiCall("eks", "DescribeCluster", {"name": name}))["cluster"]


def ask(session: Session, call: ApiCall) -> Any:
    """Return the result of a required call. Raises ToolError, with a fix, if it failed."""
    response = Responses(call_all(session, [call], on_progress=lambda *_: None)).of(call)
    if isinstance(response, FailedCall) and response.is_absence:
        name = next(iter(call.params.values()))
        raise MissingClusterError(
            f"these credentials see no cluster {name} in {session.region_name} ({response.action}: "
            f"{response.message}). `pulumi up` creates it"
        )
    if isinstance(response, FailedCall):
        raise ToolError(str(response))
    return response


def _platform(
    session: Session,
    cluster: Mapping[str, Any],
    eks_cluster: Mapping[str, Any],
    parts: Collection[AwsPart],
    unknown: list[str],
) -> Platform:
    eks = eks_cluster["name"]
    name, arn = {"ClusterName": cluster["ClusterName"]}, {"ClusterArn": cluster["ClusterArn"]}
    nodes = ApiCall("sagemaker", "ListClusterNodes", {**name, "MaxResults": _NODES})
    events = ApiCall(
        "sagemaker",
        "ListClusterEvents",
        {**name, "SortBy": "EventTime", "SortOrder": "Descending", "PaginationConfig": _LATEST},
    )
    policies = ApiCall("sagemaker", "ListClusterSchedulerConfigs", arn)
    listed = ApiCall("eks", "ListAddons", {"clusterName": eks})
    calls: dict[AwsPart, ApiCall] = {"nodes": nodes, "policy": policies, "addons": listed, "events": events}
    first = _Answers(session, [call for part, call in calls.items() if part in parts], unknown)
    configs = first.items(policies, "ClusterSchedulerConfigSummaries")
    policy = next(
        (
            ApiCall(
                "sagemaker", "DescribeClusterSchedulerConfig", {k: config[k] for k in ("ClusterSchedulerConfigId",)}
            )
            for config in configs
            if config["Status"] not in ("Deleting", "Deleted")
        ),
        None,
    )
    addons = [
        ApiCall("eks", "DescribeAddon", {"clusterName": eks, "addonName": addon_name})
        for addon_name in first.items(listed, "addons")
    ]
    logs = {
        stream: ApiCall("logs", "GetLogEvents", {"logGroupName": group, "logStreamName": stream, "limit": _LINES})
        for group in (log_group_of(cluster),)
        for stream in failed_streams(first.items(nodes, "ClusterNodeSummaries"))[:_LOGS]
    }
    plans = {
        group["InstanceGroupName"]: ApiCall(
            "sagemaker", "DescribeTrainingPlan", {"TrainingPlanName": group["TrainingPlanArn"].rpartition("/")[2]}
        )
        for group in cluster.get("InstanceGroups") or ()
        if group.get("TrainingPlanArn") and "training-plans" in parts
    }
    second = _Answers(
        session, [*addons, *([] if policy is None else [policy]), *logs.values(), *plans.values()], unknown
    )
    described = [second.one(each) for each in addons]
    unread = {
        "nodes": "nodes" in parts and first.one(nodes) is None,
        "policy": first.one(policies) is None or (policy is not None and second.one(policy) is None),
        "addons": first.one(listed) is None or None in described,
    }
    return platform_of(
        cluster,
        first.items(nodes, "ClusterNodeSummaries"),
        None if policy is None else second.one(policy),
        [each["addon"] for each in described if each is not None],
        first.items(events, "Events"),
        kubernetes=eks_cluster.get("version") or "",
        training_plans={group: second.one(call) or {} for group, call in plans.items()},
        logs={stream: [each["message"] for each in second.items(call, "events")] for stream, call in logs.items()},
        unread=frozenset(name for name, is_missing in unread.items() if is_missing),
    )


class _Answers:
    """The results of simultaneous calls; each failure is noted once."""

    def __init__(self, session: Session, calls: list[ApiCall], unknown: list[str]) -> None:
        self._made = {call.key for call in calls}
        self._responses = Responses(call_all(session, calls, on_progress=lambda *_: None)) if calls else Responses({})
        unknown += [
            (_Denied if call.is_denial else str)(call)
            for call in map(self._responses.of, calls)
            if isinstance(call, FailedCall) and not call.is_absence
        ]

    def one(self, call: ApiCall) -> Any:
        """Return the result of a call, None if it failed or wasn't made."""
        found = self._responses.of(call) if call.key in self._made else None
        return None if isinstance(found, FailedCall) else found

    def items(self, call: ApiCall, key: str) -> list[Any]:
        """Return the list of an answer."""
        return list((self.one(call) or {}).get(key) or ())


def _kubernetes(
    session: Session,
    eks: Mapping[str, Any],
    unknown: list[str],
    *,
    settings: bool,
    namespaces: Sequence[str],
    on_workload: OnWorkload | None,
) -> dict[str, Any]:
    try:
        with api_client(session, eks) as client:
            api = Kubernetes(client)
            return objects_of(api, unknown, settings=settings, namespaces=namespaces, on_workload=on_workload)
    except KUBERNETES_ERRORS as error:
        said = f"{error.status} {error.reason}" if isinstance(error, ApiException) else str(error)
        unknown.append(
            f"the Kubernetes API of {eks['name']} doesn't accept this identity ({said}). Run the command from a "
            "network that reaches the API, with a role that has an access entry with a view policy"
        )
        return {"unread": frozenset(_KINDS)}


def objects_of(
    api: Kubernetes,
    unknown: list[str],
    *,
    settings: bool = False,
    namespaces: Sequence[str] = (),
    on_workload: OnWorkload | None = None,
) -> dict[str, Any]:
    """Return the Observed fields from an API server; kinds that can't be listed are in unknown."""
    objects = _Objects(api, unknown, namespaces, on_workload)
    kueue = {"kueue_configuration": objects.kueue_configuration()} if settings else {}
    return {**kueue, **objects.read(pools=settings)}


class _Objects:
    """Lists objects of the Kubernetes API, side by side."""

    def __init__(
        self, api: Kubernetes, unknown: list[str], namespaces: Sequence[str], on_workload: OnWorkload | None
    ) -> None:
        self._api = api
        self._on_workload = on_workload
        self._unknown = unknown
        self._namespaces = namespaces
        self._unread: set[str] = set()
        # Of a kind that may not be listed everywhere, where it may be.
        self._read_in: dict[str, set[str]] = {}

    def read(self, *, pools: bool) -> dict[str, Any]:
        """Return the Observed fields from the Kubernetes API."""
        kueue = self._api.version_of("kueue.x-k8s.io")
        karpenter = self._api.version_of("karpenter.sh") if pools else None
        requests: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
            "nodes": ("/api/v1/nodes", (_FROM_CACHE,)),
            "pods": ("/api/v1/pods", (_UNFINISHED,)),
            "events": ("/api/v1/events", (_WARNINGS,)),
            "priorityclasses": ("/apis/scheduling.k8s.io/v1/priorityclasses", (_FROM_CACHE,)),
        }
        if kueue is not None:
            kinds = ("localqueues", "workloads", *_QUOTAS)
            requests |= {kind: (f"{kueue}/{kind}", () if kind == "workloads" else (_FROM_CACHE,)) for kind in kinds}
        if karpenter is not None:
            requests["nodepools"] = (f"{karpenter}/nodepools", ())
        if not pools:
            self._unread.add("nodepools")
        with ThreadPoolExecutor(max_workers=len(requests)) as pool:
            running = {kind: pool.submit(self._list, kind, path, query) for kind, (path, query) in requests.items()}
            lists = {kind: each.result() for kind, each in running.items()}
        namespaces = self._where()
        queues = {
            (local_queue["metadata"]["namespace"], local_queue["metadata"]["name"]): str(
                local_queue["spec"]["clusterQueue"]
            )
            for local_queue in lists.get("localqueues", ())
        }
        return {
            "stopped": {
                (each["metadata"]["namespace"], each["metadata"]["name"]): policy
                for each in lists.get("localqueues", ())
                if (policy := each["spec"].get("stopPolicy", "None")) != "None"
            },
            "nodes": tuple(map(node_of, lists.get("nodes", ()))),
            "pods": tuple(map(pod_of, lists.get("pods", ()))),
            "warnings": tuple(each for each in map(warned_of, lists.get("events", ())) if each is not None),
            "queues": tuple(map(queue_of, lists.get("clusterqueues", ()))),
            "tasks": tuple(task_of(each, queues) for each in lists.get("workloads", ())),
            "pools": tuple(map(node_pool_of, lists.get("nodepools", ()))),
            "priority_classes": {
                each["metadata"]["name"]: int(each["value"]) for each in lists.get("workloadpriorityclasses", ())
            },
            "pod_priorities": {
                name: int(each["value"])
                for each in lists.get("priorityclasses", ())
                for name in (each["metadata"]["name"], *[""] * bool(each.get("globalDefault")))
            },
            "flavors": {each.name: each for each in map(flavor_of, lists.get("resourceflavors", ()))},
            "unread": frozenset(self._unread),
            "namespaces": namespaces,
        }

    def kueue_configuration(self) -> str:
        """Return Kueue's own configuration; empty if it doesn't exist or may not be read."""
        try:
            config_map = self._api.find(_KUEUE_CONFIGURATION)
        except ApiException as error:
            self._rejected("configmaps", _KUEUE_CONFIGURATION, error)
            return ""
        return str(((config_map or {}).get("data") or {}).get("controller_manager_config.yaml") or "")

    def _list(self, resource: str, path: str, query: tuple[tuple[str, str], ...]) -> list[Any]:
        """Return all objects of a kind, in the namespaces where the caller may list them if nowhere else."""
        try:
            return self._kept(resource, path, query)
        except ApiException as error:
            if error.status == NOT_FOUND:
                return []
            if error.status == FORBIDDEN and resource in _NAMESPACED and self._namespaces:
                return self._list_in_namespaces(resource, path, query)
            self._rejected(resource, path, error)
            return []

    def _kept(self, resource: str, path: str, query: tuple[tuple[str, str], ...]) -> list[Any]:
        """Return the objects, except those that are passed on as they arrive."""
        if resource == "workloads" and self._on_workload is not None:
            for document in self._api.pages(path, query):
                self._on_workload(document)
            return []
        if resource == "workloads":
            number = self._api.count(path)
            query = (_FROM_CACHE,) if number is not None and number <= _MOST_AT_ONCE else query
        return list(self._api.pages(path, query))

    def _rejected(self, kind: str, path: str, error: ApiException) -> None:
        form = _Denied if error.status == FORBIDDEN and kind in _NOT_OF_MEMBERS else str
        self._unknown.append(form(f"{path} of the Kubernetes API: {error.status} {error.reason}"))
        self._unread.add(kind)

    def _list_in_namespaces(self, resource: str, path: str, query: tuple[tuple[str, str], ...]) -> list[Any]:
        items: list[Any] = []
        read: set[str] = set()
        group = path.removesuffix(f"/{resource}")
        for namespace in self._namespaces:
            try:
                items += self._kept(resource, f"{group}/namespaces/{namespace}/{resource}", query)
                read.add(namespace)
            except ApiException as error:
                rejected = error
        if not read:
            self._rejected(resource, path, rejected)
            return []
        self._read_in[resource] = read
        return items

    def _where(self) -> tuple[str, ...] | None:
        """Return in which namespaces all was read that could be; None is everywhere.

        A team's members read their own namespaces, which isn't worth a warning.
        """
        if not self._read_in:
            return None
        read = set.intersection(*self._read_in.values())
        where = tuple(each for each in self._namespaces if each in read)
        if not where:
            kinds = ", ".join(kind for kind in _NAMESPACED if kind in self._read_in)
            self._unknown.append(f"{kinds}: no namespace in which all of them can be listed")
        return where
