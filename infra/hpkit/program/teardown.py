"""What the end of a whole stack takes away, and whether it may end: read from its state, before anything is touched."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpkit.errors import InputError
from hpkit.plan.pods import claims_of
from hpkit.text.plural import plural

__all__ = ["Holder", "Teardown", "counts_as_resource", "holders", "resources_in", "teardown_of"]

_CLUSTER = "hyperpod:index:Cluster"
_QUOTA = "hyperpod:index:ComputeQuota"
_CLAIM_KIND = "PersistentVolumeClaim"
_KUEUE = "kueue.x-k8s.io"
_KARPENTER = "Karpenter's count"
# Resources that are named in addition to the HyperPod cluster: type → what it is, and the property that names it.
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

    - entries: how much the state holds.
    - resources: how many of these are resources.
    - goes: what is deleted, in words, the costly first.
    - protected: URNs that the engine keeps.
    - refusal: why it can't be deleted yet, "" if it can.
    - objects: kind, namespace and name of each of its objects in the cluster.
    - eks: ARN of the EKS cluster, "" if it isn't known.
    """

    stack: str
    entries: int
    resources: int
    goes: Sequence[str]
    protected: Sequence[str]
    refusal: str
    objects: frozenset[tuple[str, str, str]]
    eks: str

    @property
    def claims(self) -> frozenset[tuple[str, str]]:
        """Return namespace and name of its claims for volumes."""
        return frozenset((namespace, name) for kind, namespace, name in self.objects if kind == _CLAIM_KIND)


@dataclass(frozen=True, slots=True)
class Holder:
    """What keeps a claim from being deleted: the owner of pods that use it or will, with its path in the API."""

    path: str
    kind: str
    namespace: str
    name: str
    claims: tuple[str, ...]

    @property
    def words(self) -> str:
        """Say what holds which claims."""
        return f"{self.kind} {self.namespace}/{self.name} uses the claim {', '.join(self.claims)}"

    @property
    def command(self) -> str:
        """Return the command that deletes it."""
        return f"kubectl delete {self.kind.lower()} {self.name} -n {self.namespace}"


def teardown_of(stack: str, exported: str) -> Teardown:
    """Return what ending a stack takes away, by what `pulumi stack export` says; raises InputError for other text."""
    try:
        state = json.loads(exported)["deployment"] or {}
        resources = [each for each in state.get("resources") or [] if not each.get("delete")]
        made = resources_in(resources)
        return Teardown(
            stack=stack,
            entries=len(resources),
            resources=len(made),
            goes=tuple(_goes(made)),
            protected=tuple(each["urn"] for each in resources if each.get("protect")),
            refusal=_refusal(stack, made),
            objects=frozenset(_objects(made)),
            eks=next(map(_eks, _of(made, _CLUSTER)), ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the state of {stack} is not what `pulumi stack export` writes ({error})") from None


def holders(ending: Teardown, read: Callable[[str], Mapping[str, Any] | None]) -> list[Holder]:
    """Return what isn't of the stack and keeps its claims from being deleted, by namespace and name.

    Kubernetes keeps a claim while a pod that was placed on a node exists, a completed one too
    (kubernetes.io/pvc-protection). A job that Kueue has yet to admit would start its pods as soon as others are gone.
    read: returns what the API server has at a path, None where it has nothing.
    """
    found: dict[str, Holder] = {}
    served = read(f"/apis/{_KUEUE}")
    version = served["preferredVersion"]["groupVersion"] if served else None
    for namespace in sorted({namespace for namespace, _ in ending.claims}):
        own = {name for place, name in ending.claims if place == namespace}
        pods = _items(read(f"/api/v1/namespaces/{namespace}/pods"))
        placed = [({"apiVersion": "v1", "kind": "Pod", **pod}, [pod["spec"]]) for pod in pods if _is_placed(pod)]
        workloads = _items(read(f"/apis/{version}/namespaces/{namespace}/workloads")) if version else []
        asked = [
            (workload, [each["template"]["spec"] for each in workload["spec"].get("podSets", ())])
            for workload in workloads
            if not _is_finished(workload)
        ]
        for each, specs in [*placed, *asked]:
            used = sorted(own & {claim for spec in specs for claim in claims_of(spec)})
            owner = _owner(each, namespace, read) if used else None
            if owner is None or (owner[1], namespace, owner[2]) in ending.objects:
                continue
            before = found[owner[0]].claims if owner[0] in found else ()
            found[owner[0]] = Holder(*owner[:2], namespace, owner[2], tuple(sorted({*before, *used})))
    return [found[path] for path in sorted(found)]


def _items(answer: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    return (answer or {}).get("items") or ()


def _is_placed(pod: Mapping[str, Any]) -> bool:
    """Say whether a pod keeps its claims: one that is being deleted lets go by itself."""
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
    found = top if resource.get("kind") == "Pod" else None
    while above := next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None):
        group = f"/apis/{above['apiVersion']}" if "/" in above["apiVersion"] else f"/api/{above['apiVersion']}"
        kinds = (read(group) or {}).get("resources") or ()
        plural_name = next(
            (each["name"] for each in kinds if each["kind"] == above["kind"] and "/" not in each["name"]), ""
        )
        path = f"{group}/namespaces/{namespace}/{plural_name}/{above['name']}"
        live = read(path) if plural_name else None
        if live is None:
            return found
        found, metadata = (path, str(above["kind"]), str(above["name"])), live["metadata"]
    return found


def _objects(made: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yield kind, namespace and name of what the stack has in the cluster."""
    for each in made:
        inputs = {**each.get("inputs", {}), **each.get("outputs", {})}
        metadata = inputs.get("metadata")
        if str(each["type"]).startswith("kubernetes:") and isinstance(metadata, Mapping):
            kind = str(inputs.get("kind") or each["type"].rpartition(":")[2])
            yield kind, str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _eks(cluster: Mapping[str, Any]) -> str:
    orchestrator = (cluster.get("outputs", {}).get("orchestrator") or {}).get("eks") or {}
    return str(orchestrator.get("clusterArn", ""))


def counts_as_resource(token: str) -> bool:
    """Return whether every count of resources includes a type: no component, no provider, and not the stack itself."""
    return not token.startswith(("hpkit:", "pulumi:"))


def resources_in(state: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return what the kit calls a resource in every count: what the program creates, without components and providers.

    What the program only reads isn't one, nor an old resource that a replacement has yet to delete.
    """
    return [
        each
        for each in state
        if each.get("custom")
        and not each.get("external")
        and not each.get("delete")
        and counts_as_resource(str(each["type"]))
    ]


def _goes(made: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for cluster in _of(made, _CLUSTER):
        outputs = cluster.get("outputs", {})
        yield f"the HyperPod cluster {outputs.get('clusterName', cluster['id'])}"
        yield from (f"  {line}" for line in _nodes(outputs))
    teams = sorted(str(_team(quota)) for quota in _of(made, _QUOTA))
    if teams:
        yield f"the quotas of {plural(len(teams), 'team')}: {', '.join(teams)}"
    for kind, (words, name) in _NAMED.items():
        for each in _of(made, kind):
            yield f"{words}: {each.get('outputs', {}).get(name, each['id'])}"


def _nodes(outputs: Mapping[str, Any]) -> Iterator[str]:
    counts: Counter[tuple[str, str]] = Counter()
    for group in [*outputs.get("instanceGroups", []), *outputs.get("restrictedInstanceGroups", [])]:
        types = group.get("instanceRequirements", {}).get("instanceTypes", [])
        kind = group.get("instanceType") or " or ".join(types)
        counts[group["instanceGroupName"], kind] += int(group.get("instanceCount", 0))
    scaled = outputs.get("autoscaledInstanceGroups", [])
    for (name, kind), count in counts.items():
        yield f"{name}: {_KARPENTER if name in scaled else count} × {kind}"


def _team(quota: Mapping[str, Any]) -> Any:
    return quota.get("outputs", {}).get("computeQuotaTarget", {}).get("teamName", quota["id"])


def _of(made: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    return (each for each in made if each["type"] == kind)


def _refusal(stack: str, made: Sequence[Mapping[str, Any]]) -> str:
    """Only `protect: true` protects the cluster itself."""
    kept = [each for each in _of(made, _CLUSTER) if each.get("protect")]
    if not kept:
        return ""
    return (
        f"the HyperPod cluster of {stack} is protected: set `protect: false` in its environment, run `pulumi up`, "
        "then end it again"
    )
