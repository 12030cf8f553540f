"""Check: the API model's constraints on properties, with all failures and their paths."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

from hpkit.catalog.group_constraints import group_problems, patch_problems, type_problems
from hpkit_provider.engine.results import CheckFailure
from hpkit_provider.engine.values import Props, is_unknown
from hpkit_provider.schema.field_table import Field, table

__all__ = ["check"]

# Sources: API reference of CreateCluster, UpdateCluster and CreateComputeQuota; SageMaker developer guide, "Continuous
# provisioning", "Custom labels and taints", "Task governance: compute allocation".
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
        if "spot" in _map(group, "capacityRequirements"):
            yield f"{path}.capacityRequirements", "Spot requires nodeProvisioningMode Continuous"
    if len(_map(group, "capacityRequirements")) > 1:
        yield f"{path}.capacityRequirements", "must be either spot or onDemand"
    for problem in (*type_problems(group), *group_problems(group)):
        yield f"{path}{_joined(problem.path)}", problem.message
    script = _map(group, "lifeCycleConfig")
    if "onCreate" in script and "onInitComplete" in script:
        yield f"{path}.lifeCycleConfig", "accepts either onCreate or onInitComplete"
    yield from _storage(group, path)
    for problem in patch_problems(_map(group, "autoPatchConfig")):
        yield f"{path}.autoPatchConfig{_joined(problem.path)}", problem.message


def _joined(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _map(group: Props, name: str) -> Props:
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
    config = _map(inputs, "computeQuotaConfig")
    yield from _quota_resources(config.get("computeQuotaResources"), "computeQuotaConfig.computeQuotaResources")
    sharing = _map(config, "resourceSharingConfig")
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
    classes = _map(inputs, "schedulerConfig").get("priorityClasses", [])
    yield from _unique("schedulerConfig.priorityClasses", classes, "name")
    weights = [entry.get("weight") for entry in _known_entries(classes)]
    for weight, times in Counter(weight for weight in weights if isinstance(weight, int)).items():
        if times > 1:
            yield "schedulerConfig.priorityClasses", f"weight {weight} is given {times} times; it must be unique"


_RULES: Final[dict[str, Callable[[Props], Rule]]] = {
    "Cluster": _cluster,
    "ComputeQuota": _quota,
    "ClusterSchedulerConfig": _policy,
}


_SHOWN = 8
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "timestamp": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
    "object": (dict,),
}


def check(resource: str, inputs: Props) -> list[CheckFailure]:
    """Return everything that is wrong: form first, then the rules that concern several fields."""
    failures = list(_value(table(resource), inputs, ""))
    if failures:
        return failures
    rule = _RULES.get(resource)
    return [CheckFailure(path, reason) for path, reason in rule(inputs)] if rule else []


def _value(spec: Field, value: Any, path: str) -> Iterator[CheckFailure]:
    if is_unknown(value):
        return
    wanted = _TYPES[spec.kind]
    fits = isinstance(value, wanted)
    if not fits or (isinstance(value, bool) and bool not in wanted):
        article = "an" if spec.kind[0] in "aeio" else "a"
        yield CheckFailure(path, f"{value!r} isn't {article} {spec.kind}")
        return
    if spec.kind == "object":
        yield from _object(spec, value, path)
    elif spec.kind == "list":
        yield from _size(spec, value, path)
        for index, item in enumerate(value):
            yield from _value(spec.item or spec, item, f"{path}[{index}]")
    elif spec.kind == "map":
        yield from _size(spec, value, path)
        for key, item in value.items():
            yield from _value(spec.key or spec, key, f'{path}["{key}"]')
            yield from _value(spec.item or spec, item, f'{path}["{key}"]')
    else:
        yield from _scalar(spec, value, path)


def _object(spec: Field, value: Props, path: str) -> Iterator[CheckFailure]:
    for name, item in value.items():
        inner = f"{path}.{name}" if path else name
        member = spec.by_name.get(name)
        if member is None:
            near = difflib.get_close_matches(name, spec.by_name, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(spec.by_name))}"
            yield CheckFailure(inner, f"no property {name!r} exists here; {hint}")
        else:
            yield from _value(member, item, inner)
    if spec.union and len(value) != 1:
        given = f"not {' and '.join(value)}" if value else "none is given"
        yield CheckFailure(path, f"exactly one of {', '.join(spec.by_name)} is required; {given}")
    for member in spec.members:
        if member.required and member.name not in value:
            inner = f"{path}.{member.name}" if path else member.name
            yield CheckFailure(inner, "is required")


def _size(spec: Field, value: Any, path: str) -> Iterator[CheckFailure]:
    unit = "entries" if spec.kind in ("list", "map") else "characters"
    if spec.minimum is not None and len(value) < spec.minimum:
        yield CheckFailure(path, f"has {len(value)} {unit}; the minimum is {spec.minimum}")
    if spec.maximum is not None and len(value) > spec.maximum:
        yield CheckFailure(path, f"has {len(value)} {unit}; the maximum is {spec.maximum}")


def _scalar(spec: Field, value: Any, path: str) -> Iterator[CheckFailure]:
    if spec.kind == "string":
        yield from _string(spec, value, path)
        return
    if spec.kind == "timestamp":
        yield from _timestamp(value, path)
        return
    if spec.minimum is not None and value < spec.minimum:
        yield CheckFailure(path, f"{value} is less than the minimum of {spec.minimum}")
    if spec.maximum is not None and value > spec.maximum:
        yield CheckFailure(path, f"{value} is more than the maximum of {spec.maximum}")


def _timestamp(value: str, path: str) -> Iterator[CheckFailure]:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        yield CheckFailure(path, f"{value!r} isn't a valid time, such as 2027-01-31T00:00:00Z")


def _linear(pattern: str) -> str:
    # The same language: with the model's nesting, Python needs exponential time to reject a long name.
    return pattern.replace("([-a-z0-9]*[a-z0-9]){0,39}?", "([-a-z0-9]*[a-z0-9])?")


def _string(spec: Field, value: str, path: str) -> Iterator[CheckFailure]:
    if spec.enum and value not in spec.enum:
        near = difflib.get_close_matches(value, spec.enum, n=3, cutoff=0.5)
        shown = near if near or len(spec.enum) > _SHOWN else spec.enum
        hint = f"; one of {', '.join(shown)}" if shown else ""
        yield CheckFailure(path, f"{value!r} isn't a value that the service accepts{hint}")
        return
    yield from _size(spec, value, path)
    # Python has no \p{…} classes; the service model uses them only where nearly everything is allowed.
    if spec.pattern and "\\p{" not in spec.pattern and not re.fullmatch(_linear(spec.pattern), value):
        yield CheckFailure(path, f"{value!r} doesn't match {spec.pattern}")
