"""What the end of a whole stack takes away, and whether it may end: read from its state, before anything is touched."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpkit.errors import InputError
from hpkit.text.plural import plural

__all__ = ["Teardown", "resources_in", "teardown_of"]

_CLUSTER = "hyperpod:index:Cluster"
_QUOTA = "hyperpod:index:ComputeQuota"
_KARPENTER = "Karpenter's count"
# What is named beside the cluster: type → what it is, and the property that names it.
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
    """One stack that is to end.

    resources: how many it has; goes: what goes, in words, the costly first; protected: URNs that the engine keeps;
    refusal: why it must not end yet, "" if it may.
    """

    stack: str
    resources: int
    goes: Sequence[str]
    protected: Sequence[str]
    refusal: str


def teardown_of(stack: str, exported: str) -> Teardown:
    """Return what ending a stack takes away, by what `pulumi stack export` says; raises InputError for other text."""
    try:
        state = json.loads(exported)["deployment"] or {}
        resources = [each for each in state.get("resources") or [] if not each.get("delete")]
        made = resources_in(resources)
        return Teardown(
            stack=stack,
            resources=len(made),
            goes=tuple(_goes(made)),
            protected=tuple(each["urn"] for each in resources if each.get("protect")),
            refusal=_refusal(stack, made),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the state of {stack} is not what `pulumi stack export` writes ({error})") from None


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
        and not str(each["type"]).startswith("pulumi:providers:")
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
