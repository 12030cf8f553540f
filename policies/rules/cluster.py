"""HyperPod clusters: provisioning, recovery, and what the organization allows: instance types, regions."""

from collections.abc import Mapping, Sequence
from typing import Any

from hpkit.checks.rule import listing
from policies.model import UNKNOWN, Parameter, Policy, Resource, Results, Settings, Undecided, Violation
from policies.stack_inputs import CLUSTER, QUOTA, quota_of, types_of

__all__ = ["POLICIES"]

_TYPES = Parameter(
    "allowed",
    "Instance types that may be used; empty allows all.",
    {"type": "array", "items": {"type": "string", "pattern": r"^ml\."}},
    [],
)
_REGIONS = Parameter(
    "allowed", "Regions that may be used; empty allows all.", {"type": "array", "items": {"type": "string"}}, []
)


def _continuous(cluster: Resource, _settings: Settings) -> Results:
    mode = cluster.get("nodeProvisioningMode")
    if mode != "Continuous":
        yield Violation(
            f"{cluster.name} has nodeProvisioningMode {mode or 'unset'}: one node that fails rolls back a whole "
            "group, and Karpenter does not work",
            "Write nodeProvisioningMode: Continuous; it can be chosen only when the cluster is made.",
        )


def _recovery(cluster: Resource, _settings: Settings) -> Results:
    recovery = cluster.get("nodeRecovery")
    if recovery != "Automatic":
        yield Violation(
            f"{cluster.name} has nodeRecovery {recovery or 'unset'}: a node with a broken accelerator keeps its jobs",
            "Write nodeRecovery: Automatic, or set the level of this policy to remediate.",
        )


def _recover(cluster: Resource, settings: Settings) -> Mapping[str, Any]:
    return {"nodeRecovery": "Automatic"} if any(_recovery(cluster, settings)) else {}


def _types_allowed(resource: Resource, settings: Settings) -> Results:
    allowed: Sequence[str] = settings[_TYPES.name]
    if not allowed:
        return
    if resource.type == QUOTA:
        quota = quota_of(resource)
        used = {"its quota resources": tuple(quota_resource.instance_type for quota_resource in quota.quota_resources)}
        unknown = None in quota.unknown_types
    else:
        groups = [*_groups(resource, "instanceGroups"), *_groups(resource, "restrictedInstanceGroups")]
        known = [group for group in groups if isinstance(group, Mapping)]
        used = {str(group.get("instanceGroupName")): types_of(group) or () for group in known}
        unknown = len(known) < len(groups) or None in map(types_of, known)
    if unknown:
        yield Undecided(f"{resource.name}: not all of its instance types are known before the update")
    for where, names in used.items():
        for name in sorted(set(names) - set(allowed)):
            yield Violation(
                f"{resource.name} uses {name} ({where}), which the organization does not allow",
                f"Use one of {listing(list(allowed))}, or allow the type.",
            )


def _groups(cluster: Resource, path: str) -> list[Any]:
    groups = cluster.get_or_unknown(path, [])
    return [UNKNOWN] if groups is UNKNOWN else list(groups)


def _region_allowed(resource: Resource, settings: Settings) -> Results:
    allowed: Sequence[str] = settings[_REGIONS.name]
    package = resource.type.partition(":")[0]
    if not allowed or package not in ("aws", "hyperpod"):
        return
    # A resource of pulumi_aws may name a region of its own; all others are where their provider works.
    region = resource.get("region") or resource.provider.get("region")
    if isinstance(region, str) and region not in allowed:
        yield Violation(f"{resource.name} is in {region}", f"The organization allows {listing(list(allowed))}.")


POLICIES = (
    Policy(
        name="cluster-continuous-provisioning",
        description="A HyperPod cluster provisions its nodes continuously.",
        types=(CLUSTER,),
        validate=_continuous,
    ),
    Policy(
        name="cluster-node-recovery",
        description="A HyperPod cluster replaces broken nodes by itself.",
        types=(CLUSTER,),
        validate=_recovery,
        remediate=_recover,
    ),
    Policy(
        name="instance-types-allowed",
        description="Clusters and quotas use only instance types that the organization allows.",
        types=(CLUSTER, QUOTA),
        validate=_types_allowed,
        parameters=(_TYPES,),
    ),
    Policy(
        name="regions-allowed",
        description="Resources stand only in regions that the organization allows.",
        validate=_region_allowed,
        parameters=(_REGIONS,),
    ),
)
