"""Managed Karpenter: the groups that a HyperpodNodeClass names, and the NodePools."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hpkit.catalog import find_instance_type
from hpkit.catalog.group_constraints import karpenter_problems
from hpkit.text.formatting import listing
from hpkit_policies.model import UNKNOWN, Policy, Resource, Results, Settings, Undecided, Violation, of_type
from hpkit_policies.stack_inputs import (
    CLUSTER,
    NODE_CLASS,
    NODE_POOL,
    instance_groups,
    instance_types,
    node_class_owners,
)

__all__ = ["POLICIES"]


def _groups_exist(resources: Sequence[Resource], _settings: Settings) -> Results:
    clusters = of_type(resources, CLUSTER)
    listed = [instance_groups(cluster) for cluster in clusters]
    group_names = {str(group.get("instanceGroupName")) for groups in listed for group in groups or ()}
    for node_class in of_type(resources, NODE_CLASS):
        if not clusters or None in listed:
            yield Undecided(f"`{node_class.name}`: the groups of its cluster aren't known", node_class)
            continue
        names = node_class.get_or_unknown("spec.instanceGroups", [])
        for name in [] if names is UNKNOWN else names:
            if name is not UNKNOWN and name not in group_names:
                yield Violation(
                    f"`{node_class.name}` uses the group `{name}`, which doesn't exist in any cluster (groups: "
                    f"{listing(sorted(group_names))})",
                    "Use an instance group of the cluster.",
                    node_class,
                )


def _groups_fit(resources: Sequence[Resource], _settings: Settings) -> Results:
    owners = node_class_owners(resources)
    for cluster in of_type(resources, CLUSTER):
        groups = instance_groups(cluster)
        if groups is None and owners:
            yield Undecided(f"`{cluster.name}`: its instance groups aren't known before the update", cluster)
        for group in groups or ():
            name = str(group.get("instanceGroupName"))
            if name not in owners:
                continue
            where = f"the group `{name}` of `{cluster.name}`, which `{owners[name].name}` uses,"
            place = f"instanceGroups[{name}]"
            yield from (Violation(f"{where} {problem}", fix, cluster, place) for problem, fix in _problems(group))
            if UNKNOWN in (group.get("instanceCount"), group.get("minInstanceCount")):
                yield Undecided(f"{where} has a count that isn't known before the update", cluster)


def _problems(group: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((problem.message, problem.fix) for problem in karpenter_problems(group))
    for name in instance_types(group) or ():
        known = find_instance_type(name)
        if known is not None and known.architecture == "arm64":
            yield f"uses {name}, an Arm type", "Use an x86 type: managed Karpenter supports only amd64."


def _pool_limits(pool: Resource, _settings: Settings) -> Results:
    if not pool.get("spec.limits"):
        yield Violation(
            f"`{pool.name}` has no limits, so neither the nodes that Karpenter adds nor their cost are bounded",
            "Add `spec.limits`, such as `{cpu: 256}`.",
            property_path="spec.limits",
        )


POLICIES = (
    Policy(
        name="karpenter-groups-exist",
        description="A HyperpodNodeClass uses existing instance groups of the cluster.",
        validate_stack=_groups_exist,
    ),
    Policy(
        name="karpenter-groups-fit",
        description="Groups of a HyperpodNodeClass start at 0 in one subnet, have no deep health checks or training "
        "plan, and are x86.",
        validate_stack=_groups_fit,
    ),
    Policy(name="nodepool-limits", description="NodePools have limits.", types=(NODE_POOL,), validate=_pool_limits),
)
