"""What HyperPod and managed Karpenter require of one instance group's settings together.

The file's rules, the plugin, the policies and the local cloud import this table, so each constraint is worded once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hpkit.text.formatting import plural

__all__ = ["GroupProblem", "group_problems", "karpenter_problems", "patch_problems", "type_problems"]

_Group = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GroupProblem:
    """A violated constraint.

    path: the setting in the group. message: begins with a verb, to follow the group's name.
    """

    path: tuple[str | int, ...]
    message: str
    fix: str


def group_problems(group: _Group) -> Iterator[GroupProblem]:
    """Yield what HyperPod rejects in a group, which is in the API's format with names in lower camel case.

    Values that aren't known yet violate nothing. Sources: API reference, ClusterInstanceGroupSpecification and
    ClusterEbsVolumeConfig.
    """
    least, count = group.get("minInstanceCount"), group.get("instanceCount")
    if isinstance(least, int) and isinstance(count, int) and least > count:
        yield GroupProblem(
            ("minInstanceCount",),
            f"has minInstanceCount {least}, but instanceCount is only {count}",
            "Lower minInstanceCount, or raise instanceCount.",
        )
    taints = _map_at(group, "kubernetesConfig").get("taints")
    if isinstance(taints, list | tuple) and taints and group.get("onStartDeepHealthChecks"):
        yield GroupProblem(
            ("kubernetesConfig", "taints"),
            f"has {plural(len(taints), 'custom taint')} and deep health checks; the service rejects the combination",
            "Remove the taints, or remove deepHealthChecks.",
        )
    stored = group.get("instanceStorageConfigs")
    volumes = {
        index: entry["ebsVolumeConfig"]
        for index, entry in enumerate(stored if isinstance(stored, list | tuple) else ())
        if isinstance(entry, Mapping) and isinstance(entry.get("ebsVolumeConfig"), Mapping)
    }
    for index, volume in volumes.items():
        yield from _volume_problems(volume, ("instanceStorageConfigs", index, "ebsVolumeConfig"))
    roots = Counter(volume.get("rootVolume") is True for volume in volumes.values())
    if any(times > 1 for times in roots.values()):
        yield GroupProblem(
            ("instanceStorageConfigs",),
            f"has {len(volumes)} EBS volumes; HyperPod accepts one root volume and one additional volume",
            "Keep one entry with `rootVolume: true`, and one without.",
        )


def type_problems(group: _Group, several: str = "instanceRequirements") -> Iterator[GroupProblem]:
    """Yield that a group doesn't declare its types in one way; several: the key of more than one type."""
    if ("instanceType" in group) == (several in group):
        either = "both instanceType and" if several in group else "neither instanceType nor"
        yield GroupProblem((), f"has {either} {several}", "Set one of the two.")


def patch_problems(patch: _Group) -> Iterator[GroupProblem]:
    """Yield what HyperPod rejects in a group's automatic updates. Source: API reference, ClusterAutoPatchConfig."""
    strategy = patch.get("patchingStrategy")
    if not isinstance(strategy, str):
        return
    if "drainPolicy" in patch and strategy != "DrainFirst":
        yield GroupProblem(
            ("drainPolicy",),
            f"has a drainPolicy with {strategy}; drainPolicy requires DrainFirst",
            "Remove drainPolicy, or set patchingStrategy: DrainFirst with deploymentConfig.maximumBatchSize.",
        )
    policy = _map_at(_map_at(patch, "deploymentConfig"), "rollingUpdatePolicy")
    if strategy == "DrainFirst" and "maximumBatchSize" not in policy:
        yield GroupProblem((), "uses DrainFirst without a maximumBatchSize", "Add deploymentConfig.maximumBatchSize.")


def _map_at(group: _Group, name: str) -> _Group:
    found = group.get(name)
    return found if isinstance(found, Mapping) else {}


def _volume_problems(volume: _Group, path: tuple[str | int, ...]) -> Iterator[GroupProblem]:
    has_size = volume.get("volumeSizeInGB") is not None
    if volume.get("rootVolume") is not True:
        if not has_size:
            yield GroupProblem(path, "has an additional volume without a size", "Set volumeSizeInGB, such as 500.")
        return
    if has_size:
        yield GroupProblem(
            (*path, "volumeSizeInGB"),
            "has a size for the root volume, which AWS sets",
            "Remove volumeSizeInGB from this entry.",
        )
    if volume.get("volumeKmsKeyId") is None:
        yield GroupProblem(
            path,
            "has a root volume without volumeKmsKeyId; without it, AWS's key is used anyway",
            "Set volumeKmsKeyId to your key, or remove this entry.",
        )


def karpenter_problems(group: _Group) -> Iterator[GroupProblem]:
    """Yield why a NodeClass can't use a group. Source: SageMaker developer guide, autoscaling with Karpenter."""
    count, least = group.get("instanceCount"), group.get("minInstanceCount")
    if isinstance(count, int) and count > 0:
        yield GroupProblem(
            ("instanceCount",),
            f"has instanceCount {count}, but Karpenter manages its count",
            "Set `instanceCount: 0`; Karpenter adds the nodes.",
        )
    if isinstance(least, int) and least > 0:
        yield GroupProblem(
            ("minInstanceCount",),
            f"has minInstanceCount {least}, but with Karpenter it starts at 0",
            "Remove minInstanceCount.",
        )
    if isinstance(group.get("onStartDeepHealthChecks"), list | tuple) and group["onStartDeepHealthChecks"]:
        yield GroupProblem(
            ("onStartDeepHealthChecks",),
            "has deep health checks (60–90 minutes per node), which Karpenter's groups don't support",
            "Remove the deep health checks, or remove the group from the NodeClass.",
        )
    if group.get("trainingPlanArn"):
        yield GroupProblem(
            ("trainingPlanArn",),
            "has a training plan, which Karpenter's groups don't support",
            "Remove trainingPlanArn, or remove the group from the NodeClass.",
        )
    place = group.get("overrideVpcConfig")
    subnets = place.get("subnets") if isinstance(place, Mapping) else None
    if isinstance(subnets, list | tuple) and len(set(map(str, subnets))) > 1:
        yield GroupProblem(
            ("overrideVpcConfig", "subnets"),
            f"has {len(set(map(str, subnets)))} subnets, but Karpenter must know the zone of its nodes",
            "Keep one subnet, and create one group for each of the others.",
        )
