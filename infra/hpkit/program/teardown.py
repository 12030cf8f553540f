"""Lists what is deleted with a whole stack, and what blocks that, from its state and before any change."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpkit.catalog import TASK_GOVERNANCE
from hpkit.errors import InputError
from hpkit.plan.model import NAMESPACE_PREFIX
from hpkit.plan.pods import claims_of, selects
from hpkit.text.formatting import plural

__all__ = ["Holder", "Teardown", "counts_as_resource", "holders", "resources_in", "teardown_of"]

_CLUSTER = "hyperpod:index:Cluster"
_QUOTA = "hyperpod:index:ComputeQuota"
_POLICY = "hyperpod:index:ClusterSchedulerConfig"
# The component, which also knows an existing EKS cluster.
_EKS = "hpkit:index:Eks"
_ADDON = "aws:eks/addon:Addon"
_CLAIM_KIND = "PersistentVolumeClaim"
_POOL_KIND, _POOL_LABEL = "NodePool", "karpenter.sh/nodepool"
_BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
_KUEUE = "kueue.x-k8s.io"
_KARPENTER = "Karpenter's count"
# Resources that are listed in addition to the HyperPod cluster: type → its description, and the property with its name.
_NAMED = {
    "aws:eks/cluster:Cluster": ("the EKS cluster", "name"),
    "aws:ec2/vpc:Vpc": ("the VPC", "id"),
    "aws:s3/bucket:Bucket": ("the bucket", "bucket"),
    "aws:fsx/lustreFileSystem:LustreFileSystem": ("the FSx for Lustre file system with all files on it", "id"),
    "aws:ecr/repository:Repository": ("the repository, which ECR keeps while it has images", "name"),
    "aws:kms/key:Key": ("the key, without which nothing that it encrypted can be read", "keyId"),
}


@dataclass(frozen=True, slots=True)
class Teardown:
    """One stack to be deleted.

    - entries: number of entries in the state.
    - resources: how many of these are resources.
    - goes: what is deleted, as text, the most expensive first.
    - protected: URNs that the engine keeps.
    - rejection: why it can't be deleted yet, "" if it can.
    - objects: kind, namespace and name of each of its objects in the cluster.
    - eks: ARN of the EKS cluster, "" if it isn't known.
    - namespaces: those whose tasks block the deletion; None for all, if the cluster or Kueue is deleted too.
    """

    stack: str
    entries: int
    resources: int
    goes: Sequence[str]
    protected: Sequence[str]
    rejection: str
    objects: frozenset[tuple[str, str, str]]
    eks: str
    namespaces: frozenset[str] | None

    @property
    def claims(self) -> frozenset[tuple[str, str]]:
        """Return namespace and name of its claims for volumes."""
        return frozenset((namespace, name) for kind, namespace, name in self.objects if kind == _CLAIM_KIND)


@dataclass(frozen=True, slots=True)
class Holder:
    """An object outside the stack that blocks the deletion of its parts: its path in the API, and the reason."""

    path: str
    kind: str
    namespace: str
    name: str
    reason: str

    @property
    def words(self) -> str:
        """Return what blocks what, as text."""
        return f"{self.kind} {self.namespace}/{self.name} {self.reason}"

    @property
    def command(self) -> str:
        """Return the command that deletes it."""
        return f"kubectl delete {self.kind.lower()} {self.name} -n {self.namespace}"


def teardown_of(stack: str, exported: Mapping[str, Any]) -> Teardown:
    """Return what is deleted with a stack, from `pulumi stack export`. Raises InputError for another document."""
    try:
        state = exported["deployment"] or {}
        resources = [each for each in state.get("resources") or [] if not each.get("delete")]
        created = resources_in(resources)
        teams = [_team(quota) for quota in _of(created, _QUOTA)]
        return Teardown(
            stack=stack,
            entries=len(resources),
            resources=len(created),
            goes=tuple(_deleted(created)),
            protected=tuple(each["urn"] for each in resources if each.get("protect")),
            rejection=_rejection(stack, created),
            objects=frozenset(_objects(created)),
            eks=next(filter(None, (*map(_eks, _of(created, _CLUSTER)), *map(_arn, _of(resources, _EKS)))), ""),
            namespaces=None if _deletes_kueue(created) else frozenset(f"{NAMESPACE_PREFIX}{each}" for each in teams),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the state of {stack} isn't valid output of `pulumi stack export` ({error})") from None


def holders(ending: Teardown, read: Callable[[str], Mapping[str, Any] | None]) -> list[Holder]:
    """Return objects outside the stack that block the deletion of its parts, by path.

    - Kubernetes keeps a claim while a pod that was placed on a node exists, even a completed one
      (kubernetes.io/pvc-protection).
    - Kueue keeps the Workload of a task that hasn't ended, and the queues and flavors that it uses, by finalizers
      (kueue.x-k8s.io/resource-in-use). After its add-on is deleted, nothing removes them.
    - Karpenter keeps a node while a budget blocks the eviction of its pods, and also its NodePool.

    read: returns the API server's object at a path, or None.
    """
    holders_by_path: dict[str, Holder] = {}
    for holder in (*_claim_users(ending, read), *_tasks(ending, read), *_budgets(ending, read)):
        holders_by_path.setdefault(holder.path, holder)
    return [holders_by_path[path] for path in sorted(holders_by_path)]


def _tasks(ending: Teardown, read: Callable[[str], Mapping[str, Any] | None]) -> Iterator[Holder]:
    served = read(f"/apis/{_KUEUE}")
    version = served["preferredVersion"]["groupVersion"] if served else None
    for workload in _items(read(f"/apis/{version}/workloads")) if version else ():
        is_kept = ending.namespaces is None or workload["metadata"]["namespace"] in ending.namespaces
        if is_kept and not _is_finished(workload):
            yield from _outside(ending, workload, read, "hasn't ended, and Kueue keeps its Workload")


def _claim_users(ending: Teardown, read: Callable[[str], Mapping[str, Any] | None]) -> Iterator[Holder]:
    for namespace in sorted({namespace for namespace, _ in ending.claims}):
        own = {name for place, name in ending.claims if place == namespace}
        for pod in filter(_is_placed, _items(read(f"/api/v1/namespaces/{namespace}/pods"))):
            used = sorted(own.intersection(claims_of(pod["spec"])))
            if used:
                kind = {"apiVersion": "v1", "kind": "Pod"}
                yield from _outside(ending, {**kind, **pod}, read, f"uses the claim {', '.join(used)}")


def _budgets(ending: Teardown, read: Callable[[str], Mapping[str, Any] | None]) -> Iterator[Holder]:
    pools = {name for kind, _, name in ending.objects if kind == _POOL_KIND}
    nodes = {
        str(node["metadata"]["name"])
        for node in (_items(read("/api/v1/nodes")) if pools else ())
        if node["metadata"].get("labels", {}).get(_POOL_LABEL) in pools
    }
    for budget in _items(read(_BUDGETS)) if nodes else ():
        namespace, name = budget["metadata"]["namespace"], budget["metadata"]["name"]
        status = budget.get("status") or {}
        if status.get("disruptionsAllowed") or not status.get("expectedPods"):
            continue
        pods = _items(read(f"/api/v1/namespaces/{namespace}/pods"))
        on_nodes = [pod for pod in pods if pod["spec"].get("nodeName") in nodes]
        selector = budget["spec"].get("selector") or {}
        if any(selects(selector, pod["metadata"].get("labels", {})) for pod in on_nodes):
            path = f"{_BUDGETS.rpartition('/')[0]}/namespaces/{namespace}/poddisruptionbudgets/{name}"
            reason = "lets no pod go from the nodes of a NodePool"
            yield Holder(path, "PodDisruptionBudget", namespace, name, reason)


def _outside(
    ending: Teardown, resource: Mapping[str, Any], read: Callable[[str], Mapping[str, Any] | None], reason: str
) -> Iterator[Holder]:
    """Yield the owner of a Workload or pod, unless the stack deletes it."""
    namespace = str(resource["metadata"]["namespace"])
    owner = _owner(resource, namespace, read)
    if owner is not None and (owner[1], namespace, owner[2]) not in ending.objects:
        yield Holder(*owner[:2], namespace, owner[2], reason)


def _items(answer: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    return (answer or {}).get("items") or ()


def _is_placed(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod keeps its claims: one that is being deleted releases them by itself."""
    return bool(pod["spec"].get("nodeName")) and not pod["metadata"].get("deletionTimestamp")


def _is_finished(workload: Mapping[str, Any]) -> bool:
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Finished" and each["status"] == "True" for each in conditions)


def _owner(
    resource: Mapping[str, Any], namespace: str, read: Callable[[str], Mapping[str, Any] | None]
) -> tuple[str, str, str] | None:
    """Return path, kind and name of the topmost controller of an object, or of the object itself if it is a pod."""
    metadata = resource["metadata"]
    top = (f"/api/v1/namespaces/{namespace}/pods/{metadata['name']}", "Pod", str(metadata["name"]))
    owner = top if resource.get("kind") == "Pod" else None
    while above := next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None):
        group = f"/apis/{above['apiVersion']}" if "/" in above["apiVersion"] else f"/api/{above['apiVersion']}"
        kinds = (read(group) or {}).get("resources") or ()
        plural_name = next(
            (each["name"] for each in kinds if each["kind"] == above["kind"] and "/" not in each["name"]), ""
        )
        path = f"{group}/namespaces/{namespace}/{plural_name}/{above['name']}"
        live = read(path) if plural_name else None
        if live is None:
            return owner
        owner, metadata = (path, str(above["kind"]), str(above["name"])), live["metadata"]
    return owner


def _objects(made: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yield kind, namespace and name of the stack's objects in the cluster."""
    for resource in made:
        inputs = {**resource.get("inputs", {}), **resource.get("outputs", {})}
        metadata = inputs.get("metadata")
        if str(resource["type"]).startswith("kubernetes:") and isinstance(metadata, Mapping):
            kind = str(inputs.get("kind") or resource["type"].rpartition(":")[2])
            yield kind, str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _eks(cluster: Mapping[str, Any]) -> str:
    orchestrator = (cluster.get("outputs", {}).get("orchestrator") or {}).get("eks") or {}
    return str(orchestrator.get("clusterArn", ""))


def _arn(component: Mapping[str, Any]) -> str:
    return str(component.get("outputs", {}).get("arn") or "")


def _deletes_kueue(made: Sequence[Mapping[str, Any]]) -> bool:
    addons = {each.get("inputs", {}).get("addonName") for each in _of(made, _ADDON)}
    return any(_of(made, _CLUSTER)) or TASK_GOVERNANCE in addons


def counts_as_resource(token: str) -> bool:
    """Return whether counts of resources include a type: not components, providers, or the stack itself."""
    return not token.startswith(("hpkit:", "pulumi:"))


def resources_in(state: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return a resource's type for counts: what the program creates, without components and providers.

    What the program only reads isn't counted, and neither is an old resource that a replacement must still delete.
    """
    return [
        resource
        for resource in state
        if resource.get("custom")
        and not resource.get("external")
        and not resource.get("delete")
        and counts_as_resource(str(resource["type"]))
    ]


def _deleted(created: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for cluster in _of(created, _CLUSTER):
        outputs = cluster.get("outputs", {})
        yield f"the HyperPod cluster {outputs.get('clusterName', cluster['id'])}"
        yield from (f"  {line}" for line in _nodes(outputs))
    teams = sorted(str(_team(quota)) for quota in _of(created, _QUOTA))
    if teams:
        yield f"the quotas of {plural(len(teams), 'team')}: {', '.join(teams)}"
    for kind, (words, name) in _NAMED.items():
        for each in _of(created, kind):
            yield f"{words}: {each.get('outputs', {}).get(name, each['id'])}"


def _nodes(outputs: Mapping[str, Any]) -> Iterator[str]:
    counts: Counter[tuple[str, str]] = Counter()
    for group in [*outputs.get("instanceGroups", []), *outputs.get("restrictedInstanceGroups", [])]:
        types = group.get("instanceRequirements", {}).get("instanceTypes", [])
        instance_type = group.get("instanceType") or " or ".join(types)
        counts[group["instanceGroupName"], instance_type] += int(group.get("instanceCount", 0))
    scaled = outputs.get("autoscaledInstanceGroups", [])
    for (name, instance_type), count in counts.items():
        yield f"{name}: {_KARPENTER if name in scaled else count} × {instance_type}"


def _team(quota: Mapping[str, Any]) -> Any:
    return quota.get("outputs", {}).get("computeQuotaTarget", {}).get("teamName", quota["id"])


def _of(made: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    return (each for each in made if each["type"] == kind)


def _rejection(stack: str, created: Sequence[Mapping[str, Any]]) -> str:
    """Only `protect: true` protects the cluster itself; of an existing cluster, the cluster policy."""
    words = {_CLUSTER: "HyperPod cluster", _POLICY: "cluster policy"}
    protected = [words[kind] for kind in words for each in _of(created, kind) if each.get("protect")]
    if not protected:
        return ""
    return (
        f"the {protected[0]} of {stack} is protected: set `protect: false` in its environment, run `pulumi up`, "
        "then end it again"
    )
