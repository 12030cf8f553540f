"""What of an environment cannot change in place: VPC, EKS cluster, HyperPod cluster, and the subnets of its groups.

Sources: UpdateCluster of the SageMaker API (name, VpcConfig and Orchestrator are not among its members; it refuses
another OverrideVpcConfig on a group that lives), Amazon EKS user guide (name, VPC), Amazon VPC user guide (the ranges).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hpkit.plan.addresses import control_plane_subnets
from hpkit.plan.model import Plan

__all__ = ["Guard", "guards_of"]

# What is replaced with each: all that stands after it.
_NESTED = ("vpc", "eks", "cluster")


@dataclass(frozen=True, slots=True)
class Guard:
    """One thing that must not be replaced by accident; key is its name in `allowReplace`, where it may stand there."""

    key: str
    subject: str
    identity: Mapping[str, str]
    version: str | None
    allowed: bool
    remedy: str


def guards_of(plan: Plan) -> tuple[Guard, ...]:
    """Return the guards, the first to ask first; what replaces the VPC replaces EKS with it, and that the cluster."""
    vpc = _vpc(plan)
    existing = plan.spec.eks.existing
    eks = {**vpc, "eks": existing.name if existing else plan.stack}
    cluster = {**eks, **_vpc_config(plan), "cluster.name": plan.spec.cluster.name}
    return (
        _guard(plan, "vpc", f"the VPC of {plan.stack}", vpc, None),
        _guard(plan, "eks", f"the EKS cluster of {plan.stack}", eks, None if existing else plan.spec.eks.version),
        _guard(plan, "cluster", f"the HyperPod cluster {plan.spec.cluster.name}", cluster, None),
        Guard(
            key="groups",
            subject=f"the instance groups of {plan.spec.cluster.name}",
            identity=_places(plan),
            version=None,
            allowed=False,
            remedy="give these groups new names: the new ones start in the new subnets, and the old ones are deleted.",
        ),
    )


def _places(plan: Plan) -> dict[str, str]:
    """Return where each group is, so that a group that comes, goes or gets a zone more has no name in common.

    Subnets that are there already have ids, which the plugin compares itself; only new ones are unknown at preview.
    """
    if plan.spec.network.existing is not None:
        return {}
    ranges = {zone.availability_zone: zone.node_cidr for zone in plan.network.zones}
    alone = {group.spec.name: group.zones[0] for group in plan.groups if len(group.zones) == 1}
    return alone | {
        f"{group.spec.name} in {zone}": f"nodeCidr {ranges.get(zone)}" for group in plan.groups for zone in group.zones
    }


def _vpc(plan: Plan) -> dict[str, str]:
    existing = plan.spec.network.existing
    if existing is None:
        return {"network": f"vpcCidr {plan.spec.network.vpc_cidr}"}
    return {"network": f"existing {existing.vpc_id}"}


def _vpc_config(plan: Plan) -> dict[str, str]:
    """Return what of an existing network the HyperPod cluster keeps for good; EKS takes another in place."""
    existing = plan.spec.network.existing
    if existing is None:
        return {}
    return {
        "controlPlaneSubnets": ", ".join(control_plane_subnets(existing)),
        "securityGroupIds": ", ".join(sorted(existing.security_group_ids)),
    }


def _guard(plan: Plan, key: str, subject: str, identity: Mapping[str, str], version: str | None) -> Guard:
    file = f"stacks/{plan.organization}.yaml"
    with_it = (*_NESTED[_NESTED.index(key) :], *plan.spec.allow_replace)
    keys = ", ".join(each for each in _NESTED if each in with_it)
    return Guard(
        key=key,
        subject=subject,
        identity=identity,
        version=version,
        allowed=key in plan.spec.allow_replace,
        remedy=f"allow it: `allowReplace: [{keys}]` in environments.{plan.environment} of {file}.",
    )
