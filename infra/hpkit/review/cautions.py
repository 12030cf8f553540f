"""What to watch in a change: replacements, refusals, types that leave, borrowing that ends, access that opens.

Sources: UpdateCluster of the SageMaker API (a cluster's name, VpcConfig and orchestrator, a group's type, zone and
capacity type cannot change); aws.ec2.Vpc and aws.ec2.Subnet (ranges replace); EKS user guide, cluster versions
(one minor version at a time, never back); SageMaker developer guide, upgrading task governance.
"""

from collections.abc import Iterator, Mapping

from hpkit.checks.registry import amount, listing
from hpkit.plan.addresses import control_plane_subnets
from hpkit.plan.diff import PlanDiff
from hpkit.plan.kueue import TASK_GOVERNANCE
from hpkit.plan.model import Plan
from hpkit.review.model import Caution, Verdict
from hpkit.review.sharing import sharing_cautions
from hpkit.review.words import arrow, count, maximum, plural

__all__ = ["cautions_of"]

# Versions of the task-governance add-on by how they keep cohorts (developer guide, troubleshooting its upgrade).
_STORES_OLD_COHORTS = ("v1.0.", "v1.1.", "v1.2.", "v1.3.")
_READS_OLD_COHORTS = (*_STORES_OLD_COHORTS, "v1.4.")
_STATE = {"cluster": "its nodes and what runs on them", "eks": "everything in it", "vpc": "everything in it"}


def cautions_of(diff: PlanDiff) -> tuple[Caution, ...]:
    """Return what to watch, what blocks first."""
    found = list(_stack(diff))
    if diff.before is not None and diff.after is not None:
        before, after = diff.before, diff.after
        replacements = list(_replacements(before, after))
        replaced = {caution.subject for caution in replacements}
        found += replacements
        # What is made anew is not changed, so the service has nothing to refuse.
        found += [] if "cluster" in replaced else _refusals(before, after)
        found += [] if "eks" in replaced else _versions(before, after)
        found += [] if "eks" in replaced else _addons(before, after)
        found += _access(before, after)
        found += [*_capacity(diff), *sharing_cautions(diff)]
    return tuple(sorted(found, key=lambda caution: caution.verdict != "blocked"))


def _stack(diff: PlanDiff) -> Iterator[Caution]:
    if diff.before is not None and diff.after is None:
        yield Caution(
            "stack-leaves",
            "attention",
            diff.stack,
            f"{diff.stack} is no longer described, and nothing deletes what it created: run "
            f"`pulumi destroy --stack {diff.stack}` from the old commit first, if it is deployed",
        )


def _replacements(before: Plan, after: Plan) -> Iterator[Caution]:
    reasons: dict[str, list[str]] = {"vpc": [], "eks": [], "cluster": []}
    old, new = before.spec, after.spec
    everything = [f"region {old.region} → {new.region}"] if old.region != new.region else []
    existing = [spec.network.existing.vpc_id if spec.network.existing else None for spec in (old, new)]
    if existing[0] != existing[1]:
        reasons["vpc"].append(f"vpc {existing[0] or 'created'} → {existing[1] or 'created'}")
    elif existing[0] is None and old.network.vpc_cidr != new.network.vpc_cidr:
        reasons["vpc"].append(f"vpcCidr {old.network.vpc_cidr} → {new.network.vpc_cidr}")
    eks = [spec.eks.existing.name if spec.eks.existing else None for spec in (old, new)]
    if eks[0] != eks[1]:
        reasons["eks"].append(f"cluster {eks[0] or 'created'} → {eks[1] or 'created'}")
    reasons["eks"] += [f"its VPC: {reason}" for reason in reasons["vpc"]]
    if old.cluster.name != new.cluster.name:
        reasons["cluster"].append(f"name {old.cluster.name} → {new.cluster.name}")
    reasons["cluster"] += [*_subnets(before, after), *(f"its EKS cluster: {reason}" for reason in reasons["eks"])]
    for what, why in reasons.items():
        causes = [*everything, *why]
        if causes:
            yield _replacement(what, causes, allowed=what in new.allow_replace)


def _subnets(before: Plan, after: Plan) -> list[str]:
    """Return what differs in the VpcConfig that the cluster was created with, beyond the VPC itself.

    In a network that the kit makes it is the control plane's subnets, which do not follow the zones of nodes.
    """
    existing = [plan.spec.network.existing for plan in (before, after)]
    if existing[0] is None or existing[1] is None:
        return []
    subnets = [", ".join(control_plane_subnets(network)) for network in existing if network is not None]
    found = [f"controlPlaneSubnets {subnets[0]} → {subnets[1]}"] if subnets[0] != subnets[1] else []
    groups = [", ".join(sorted(network.security_group_ids)) for network in existing if network is not None]
    if groups[0] != groups[1]:
        found.append(f"security groups {groups[0]} → {groups[1]}")
    return found


def _replacement(what: str, causes: list[str], *, allowed: bool) -> Caution:
    name = {"vpc": "the VPC", "eks": "the EKS cluster", "cluster": "the HyperPod cluster"}[what]
    end = (
        f"allowReplace names {what}, so it will be done"
        if allowed
        else f"the preview fails unless allowReplace names {what}"
    )
    verdict: Verdict = "attention" if allowed else "blocked"
    return Caution(
        f"replace-{what}",
        verdict,
        what,
        f"{name} will be replaced, and {_STATE[what]} with it ({'; '.join(causes)}); {end}",
    )


def _refusals(before: Plan, after: Plan) -> Iterator[Caution]:
    old = {group.spec.name: group for group in before.groups}
    yield from _moved_subnets(before, after)
    for group in after.groups:
        was = old.get(group.spec.name)
        if was is None:
            continue
        pairs = (
            ("instanceType", was.spec.instance_type, group.spec.instance_type),
            ("availabilityZone", was.spec.availability_zone, group.spec.availability_zone),
            ("capacityType", was.spec.capacity_type, group.spec.capacity_type),
            ("threadsPerCore", was.spec.threads_per_core, group.spec.threads_per_core),
        )
        for key, then, now in pairs:
            if then != now:
                yield Caution(
                    "refused",
                    "blocked",
                    group.spec.name,
                    f"{key} of instance group {group.spec.name} {then or 'unset'} → {now or 'unset'}: the service "
                    "refuses this on a group that exists; give the group a new name and remove the old one",
                )


def _moved_subnets(before: Plan, after: Plan) -> Iterator[Caution]:
    """Yield groups that stand in a subnet which the change replaces: their OverrideVpcConfig cannot follow."""
    old, new = _node_subnets(before), _node_subnets(after)
    moved = {zone for zone, subnet in old.items() if subnet != new.get(zone)}
    staying = {group.spec.name for group in after.groups}
    for group in before.groups:
        lost = sorted(moved & set(group.zones))
        if lost and group.spec.name in staying:
            change = ", ".join(f"{zone} {old[zone]} → {new.get(zone) or 'none'}" for zone in lost)
            yield Caution(
                "refused",
                "blocked",
                group.spec.name,
                f"the subnet of instance group {group.spec.name} is replaced ({change}): a group that exists cannot "
                "change its subnets; move its nodes to a group with a new name first",
            )


def _node_subnets(plan: Plan) -> Mapping[str, str]:
    """Return what the nodes' subnet of each zone is: its id in an existing network, else its range."""
    existing = plan.spec.network.existing
    if existing is not None:
        return existing.subnets
    return {zone.availability_zone: zone.node_cidr for zone in plan.network.zones if zone.node_cidr is not None}


def _addons(before: Plan, after: Plan) -> Iterator[Caution]:
    old, new = ({addon.name: addon.version for addon in plan.addons}.get(TASK_GOVERNANCE) for plan in (before, after))
    if old and new and old.startswith(_STORES_OLD_COHORTS) and not new.startswith(_READS_OLD_COHORTS):
        yield Caution(
            "addon-migration",
            "blocked",
            TASK_GOVERNANCE,
            f"task governance {old} → {new}: the update fails while cohorts are stored as v1alpha1; migrate them first "
            "(developer guide, upgrading task governance), then write the new version",
        )


def _versions(before: Plan, after: Plan) -> Iterator[Caution]:
    old, new = before.spec.eks.version, after.spec.eks.version
    if old == new or before.spec.eks.existing or after.spec.eks.existing:
        return
    minors = [_minor(old), _minor(new)]
    if minors[0] is None or minors[1] is None:
        return
    steps = minors[1] - minors[0]
    change = f"Kubernetes {old} → {new}"
    if steps == 1:
        yield Caution("version", "attention", "eks", f"{change}: cannot be undone; nodes follow by an AMI update")
    else:
        why = "EKS never goes back a version" if steps < 0 else "EKS goes up one minor version at a time"
        yield Caution("version", "blocked", "eks", f"{change}: {why}")


def _minor(version: str) -> int | None:
    major, _, minor = version.partition(".")
    return int(minor) if major == "1" and minor.isdecimal() else None


def _access(before: Plan, after: Plan) -> Iterator[Caution]:
    old, new = before.spec, after.spec
    if old.protect and not new.protect:
        yield Caution(
            "unprotected", "attention", "protect", "deletion protection of cluster, EKS, VPC and buckets is turned off"
        )
    gained = [role for role in new.eks.administrators if role not in old.eks.administrators]
    if gained:
        yield Caution(
            "administrators", "attention", "eks", f"{plural(len(gained), 'new administrator')}: {listing(gained)}"
        )
    opened = [cidr for cidr in new.eks.endpoint.public_cidrs if cidr not in old.eks.endpoint.public_cidrs]
    if new.eks.endpoint.public and (opened or not old.eks.endpoint.public):
        ranges = listing(opened or list(new.eks.endpoint.public_cidrs)) or "any address"
        yield Caution("endpoint", "attention", "eks", f"the Kubernetes API opens to {ranges}")


def _capacity(diff: PlanDiff) -> Iterator[Caution]:
    for change in diff.capacity:
        name = change.instance_type
        if change.present.before and not change.present.after:
            quota = f"; teams still have quota for {amount(count(change.quota.after))}" if change.quota.after else ""
            yield Caution(
                "type-leaves",
                "attention",
                name,
                f"{name} leaves: {change.guaranteed.before} guaranteed and {maximum(change, after=False)} at most "
                f"go, with what runs on them{quota}",
            )
        elif count(change.guaranteed.after) < count(change.guaranteed.before):
            yield Caution(
                "fewer-nodes",
                "attention",
                name,
                f"guaranteed {name} {arrow(str(change.guaranteed.before), str(change.guaranteed.after))}: "
                "the service chooses which nodes go, and what runs on them is evicted",
            )
        yield from _limit(diff, name)


def _limit(diff: PlanDiff, name: str) -> Iterator[Caution]:
    """Say where what Karpenter may add no longer covers what elastic quota counts on."""
    change = next(each for each in diff.capacity if each.instance_type == name)
    most, quota = change.maximum.after, change.quota.after
    fell = most is not None and (change.maximum.before is None or most < change.maximum.before)
    if not fell or not change.present.before or most is None or quota is None or quota <= most:
        return
    who = [
        team.name for team in diff.teams for share in team.shares if share.instance_type == name and share.elastic.after
    ]
    if who:
        yield Caution(
            "limit-below-elastic",
            "attention",
            name,
            f"{name} may grow to {most} instead of {maximum(change, after=False)}, and teams count on {amount(quota)} "
            f"(elastic: {listing(who)})",
        )
