"""HyperPod clusters: provisioning, recovery, and the organization's allowed instance types and regions."""

from collections.abc import Mapping, Sequence
from typing import Any

from hpkit.text.formatting import listing
from hpkit_policies.model import UNKNOWN, Parameter, Policy, Resource, Results, Settings, Undecided, Violation
from hpkit_policies.stack_inputs import CLUSTER, QUOTA, instance_types, parse_quota

__all__ = ["POLICIES"]

_TYPES = Parameter(
    "allowed",
    "Allowed instance types. Empty: all.",
    {"type": "array", "items": {"type": "string", "pattern": r"^ml\."}},
    [],
)
_REGIONS = Parameter("allowed", "Allowed regions. Empty: all.")


def _continuous(cluster: Resource, _settings: Settings) -> Results:
    mode = cluster.get("nodeProvisioningMode")
    if mode != "Continuous":
        yield Violation(
            f"`nodeProvisioningMode` of `{cluster.name}` is {mode or 'unset'}: one failed node rolls back a whole "
            "group, and Karpenter doesn't work",
            "Set `nodeProvisioningMode` to Continuous, which is only possible when the cluster is created.",
        )


def _recovery(cluster: Resource, _settings: Settings) -> Results:
    recovery = cluster.get("nodeRecovery")
    if recovery != "Automatic":
        yield Violation(
            f"`nodeRecovery` of `{cluster.name}` is {recovery or 'unset'}, so a node with a broken accelerator isn't "
            "replaced",
            "Set `nodeRecovery: Automatic`, or set the level of this policy to remediate.",
            property_path="nodeRecovery",
        )


def _recover(cluster: Resource, settings: Settings) -> Mapping[str, Any]:
    return {"nodeRecovery": "Automatic"} if any(_recovery(cluster, settings)) else {}


def _types_allowed(resource: Resource, settings: Settings) -> Results:
    allowed: Sequence[str] = settings[_TYPES.name]
    if not allowed:
        return
    # Input → the instance types that it names.
    used: dict[str, tuple[str, ...]] = {}
    if resource.type == QUOTA:
        quota = parse_quota(resource)
        for quota_resource in quota.quota_resources:
            name = quota_resource.instance_type
            used[f"computeQuotaConfig.computeQuotaResources[{name}]"] = (name,)
        unknown = None in quota.unknown_types
    else:
        groups = [
            (key, group) for key in ("instanceGroups", "restrictedInstanceGroups") for group in _groups(resource, key)
        ]
        known = [(key, group) for key, group in groups if isinstance(group, Mapping)]
        used = {f"{key}[{group.get('instanceGroupName')}]": instance_types(group) or () for key, group in known}
        unknown = len(known) < len(groups) or None in [instance_types(group) for _, group in known]
    if unknown:
        yield Undecided(f"`{resource.name}`: its instance types aren't fully known before the update")
    for place, names in used.items():
        for name in sorted(set(names) - set(allowed)):
            yield Violation(
                f"`{resource.name}` uses {name} in {place.removeprefix('computeQuotaConfig.')}, which the organization "
                "doesn't allow",
                f"Use one of {listing(list(allowed))}, or list the type in `{_TYPES.name}`.",
                property_path=place,
            )


def _groups(cluster: Resource, path: str) -> list[Any]:
    groups = cluster.get_or_unknown(path, [])
    return [UNKNOWN] if groups is UNKNOWN else list(groups)


def _region_allowed(resource: Resource, settings: Settings) -> Results:
    allowed: Sequence[str] = settings[_REGIONS.name]
    package = resource.type.partition(":")[0]
    if not allowed or package not in ("aws", "hyperpod"):
        return
    # A resource of pulumi_aws may name a region; all others are in the region of their provider.
    region = resource.get("region") or resource.provider.get("region")
    if isinstance(region, str) and region not in allowed:
        fix = f"Move it to {listing(list(allowed))}, or list the region in `{_REGIONS.name}`."
        yield Violation(f"`{resource.name}` is in {region}", fix, property_path="region")


POLICIES = (
    Policy(
        name="cluster-continuous-provisioning",
        description="HyperPod clusters provision nodes continuously.",
        types=(CLUSTER,),
        validate=_continuous,
    ),
    Policy(
        name="cluster-node-recovery",
        description="HyperPod clusters replace broken nodes automatically.",
        # Advisory by default: a file can set `nodeRecovery: None`, and the validator accepts it.
        level="advisory",
        types=(CLUSTER,),
        validate=_recovery,
        remediate=_recover,
    ),
    Policy(
        name="instance-types-allowed",
        description="Clusters and quotas use only allowed instance types.",
        types=(CLUSTER, QUOTA),
        validate=_types_allowed,
        parameters=(_TYPES,),
    ),
    Policy(
        name="regions-allowed",
        description="Resources are only in allowed regions.",
        validate=_region_allowed,
        parameters=(_REGIONS,),
    ),
)
