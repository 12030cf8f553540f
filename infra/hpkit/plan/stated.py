"""Compares the instance groups that a file declares for a cluster that it doesn't manage with the cluster's groups."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hpkit.plan.model import Plan

__all__ = ["LiveGroup", "stated_differences"]


@dataclass(frozen=True, slots=True)
class LiveGroup:
    """An instance group of a live cluster: its instance types, and the count that it should have."""

    types: Collection[str]
    count: int


def stated_differences(plan: Plan, live: Mapping[str, LiveGroup], *, autoscales: bool) -> tuple[list[str], list[str]]:
    """Return which of the stated groups the cluster lacks, and which groups it has in addition.

    live: the cluster's groups by name. Karpenter manages the count of its groups, so that isn't compared. autoscales:
    whether managed Karpenter is on, which only the cluster's own stack or tool can change.
    """
    lacks, additional = [], []
    if not autoscales and any(group.autoscaled for group in plan.groups):
        lacks.append(
            "managed Karpenter is off, although `autoscaling` is set (turn it on in the stack or tool that manages the "
            f"cluster, or with `aws sagemaker update-cluster --region {plan.spec.region} --cluster-name "
            f"{plan.spec.cluster.name} --cluster-role ROLE --auto-scaling Mode=Enable,AutoScalerType=Karpenter`)"
        )
    for group in plan.groups:
        name, count = group.spec.name, group.spec.instance_count
        live_group = live.get(name)
        if live_group is None:
            lacks.append(f"it has no instance group {name}")
        elif set(live_group.types) != set(group.spec.types):
            types, stated = (" or ".join(sorted(each)) for each in (live_group.types, group.spec.types))
            lacks.append(f"{name} has {types} instead of {stated}")
        elif not group.autoscaled and live_group.count < count:
            lacks.append(f"{name} has {live_group.count} instances instead of {count}")
        elif not group.autoscaled and live_group.count > count:
            additional.append(f"{name} has {live_group.count} instances instead of {count}")
    names = {group.spec.name for group in plan.all_groups}
    additional += [f"it also has {name}" for name in sorted(live.keys() - names)]
    return lacks, additional
