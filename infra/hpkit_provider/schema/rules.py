"""The service's rules about several fields.

Sources: API reference of CreateCluster, UpdateCluster and CreateComputeQuota; SageMaker developer guide, "Continuous
provisioning", "Custom labels and taints", "Task governance: compute allocation".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from hpkit.catalog.group_constraints import group_problems, patch_problems, type_problems
from hpkit_provider.engine.values import Props, is_unknown

__all__ = ["RULES"]

Rule = Iterator[tuple[str, str]]
_MEASURES: Final = ("accelerators", "vCpu", "memoryInGiB", "acceleratorPartition")


def _both(*lists: object) -> list[Any]:
    """Return the known entries of lists whose names share a cluster."""
    return [item for entries in lists for item in _known_entries(entries)]


def _known_entries(value: object) -> list[Any]:
    """Return the known entries of a list that might not be known itself."""
    return [item for item in value if not is_unknown(item)] if isinstance(value, list) else []


def _cluster(inputs: Props) -> Rule:
    if "instanceGroups" not in inputs and "restrictedInstanceGroups" not in inputs:
        yield "instanceGroups", "a cluster requires at least one instance group"
    groups = inputs.get("instanceGroups", [])
    yield from _unique("instanceGroups", _both(groups, inputs.get("restrictedInstanceGroups")), "instanceGroupName")
    continuous = inputs.get("nodeProvisioningMode") == "Continuous" or is_unknown(inputs.get("nodeProvisioningMode"))
    for index, group in enumerate(groups if isinstance(groups, list) else []):
        if not is_unknown(group):
            yield from _group(group, f"instanceGroups[{index}]", continuous=continuous)
    names = [group.get("instanceGroupName") for group in _known_entries(groups)]
    for index, name in enumerate(_known_entries(inputs.get("autoscaledInstanceGroups", []))):
        if name not in names and not any(is_unknown(known) for known in names):
            yield f"autoscaledInstanceGroups[{index}]", f"no instance group {name!r} exists"
    yield from _autoscaling(inputs, continuous=continuous)


def _autoscaling(inputs: Props, *, continuous: bool) -> Rule:
    wanted = inputs.get("autoScaling")
    if not isinstance(wanted, dict) or wanted.get("mode") != "Enable":
        return
    if not continuous:
        yield "nodeProvisioningMode", "must be Continuous for autoScaling"
    if "clusterRole" not in inputs:
        yield "clusterRole", "is required for autoScaling: managed Karpenter uses this role"
    if inputs.get("nodeRecovery", "Automatic") == "None":
        yield "nodeRecovery", "must be Automatic for autoScaling, not None"


def _group(group: Props, path: str, *, continuous: bool) -> Rule:
    if not continuous:
        for name in ("minInstanceCount", "instanceRequirements"):
            if name in group:
                yield f"{path}.{name}", "requires nodeProvisioningMode Continuous"
        if "spot" in _object(group, "capacityRequirements"):
            yield f"{path}.capacityRequirements", "Spot requires nodeProvisioningMode Continuous"
    if len(_object(group, "capacityRequirements")) > 1:
        yield f"{path}.capacityRequirements", "must be either spot or onDemand"
    for problem in (*type_problems(group), *group_problems(group)):
        yield f"{path}{_joined(problem.path)}", problem.message
    script = _object(group, "lifeCycleConfig")
    if "onCreate" in script and "onInitComplete" in script:
        yield f"{path}.lifeCycleConfig", "accepts either onCreate or onInitComplete"
    yield from _storage(group, path)
    for problem in patch_problems(_object(group, "autoPatchConfig")):
        yield f"{path}.autoPatchConfig{_joined(problem.path)}", problem.message


def _joined(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _object(group: Props, name: str) -> Props:
    found = group.get(name)
    return found if isinstance(found, dict) else {}


def _storage(group: Props, path: str) -> Rule:
    for index, entry in enumerate(_known_entries(group.get("instanceStorageConfigs", []))):
        if len(entry) != 1:
            yield f"{path}.instanceStorageConfigs[{index}]", "must be exactly one of the kinds of storage"


def _unique(path: str, entries: object, key: str) -> Rule:
    names = [entry.get(key) for entry in _known_entries(entries) if isinstance(entry, dict)]
    for name, times in Counter(name for name in names if isinstance(name, str)).items():
        if times > 1:
            yield path, f"{key} {name!r} is given {times} times; it must be unique"


def _quota(inputs: Props) -> Rule:
    config = _object(inputs, "computeQuotaConfig")
    yield from _quota_resources(config.get("computeQuotaResources"), "computeQuotaConfig.computeQuotaResources")
    sharing = _object(config, "resourceSharingConfig")
    where = "computeQuotaConfig.resourceSharingConfig"
    yield from _quota_resources(sharing.get("absoluteBorrowLimits"), f"{where}.absoluteBorrowLimits")
    strategy = sharing.get("strategy")
    for name in ("borrowLimit", "absoluteBorrowLimits"):
        if name in sharing and strategy in ("Lend", "DontLend"):
            yield f"{where}.{name}", f"has no effect with strategy {strategy}: only LendAndBorrow borrows"


def _quota_resources(resources: object, path: str) -> Rule:
    for index, resource in enumerate(resources if isinstance(resources, list) else []):
        if is_unknown(resource):
            continue
        measures = [name for name in _MEASURES if name in resource]
        where = f"{path}[{index}]"
        if "count" in resource and measures:
            yield where, f"count (whole instances) can't be combined with {', '.join(measures)}"
        if "count" not in resource and not measures:
            yield where, f"requires count, or one of {', '.join(_MEASURES)}"
        if "accelerators" in resource and "acceleratorPartition" in resource:
            yield where, "accelerators and acceleratorPartition can't be combined"


def _policy(inputs: Props) -> Rule:
    classes = _object(inputs, "schedulerConfig").get("priorityClasses", [])
    yield from _unique("schedulerConfig.priorityClasses", classes, "name")
    weights = [entry.get("weight") for entry in _known_entries(classes)]
    for weight, times in Counter(weight for weight in weights if isinstance(weight, int)).items():
        if times > 1:
            yield "schedulerConfig.priorityClasses", f"weight {weight} is given {times} times; it must be unique"


RULES: Final[dict[str, Callable[[Props], Rule]]] = {
    "Cluster": _cluster,
    "ComputeQuota": _quota,
    "ClusterSchedulerConfig": _policy,
}
