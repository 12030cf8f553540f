"""Decisions about resources with contents that can't be created again: blocked, or allowed by the file.

Sources: UpdateCluster of the SageMaker API, Amazon EKS user guide (VPC requirements, cluster versions).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from hpkit.catalog import version_order
from hpkit.catalog.differences import ranges_in_use
from hpkit.changes.compare import Recorded, RecordedResource
from hpkit.changes.decision import CLUSTER, GUARDED_TYPES, REPLACE, GuardDecision
from hpkit.changes.steps import Step, root_causes
from hpkit.plan.model import Plan
from hpkit.plan.protected import deletion_protected, network_of, ranges_of
from hpkit.text.formatting import listing

__all__ = [
    "GUARDED_NAMES",
    "policy_decisions",
    "range_decisions",
    "relocation_decision",
    "resource_decisions",
    "version_decisions",
]

GUARDED_NAMES: Final = {
    "vpc": "the VPC",
    "eks": "the EKS cluster",
    "cluster": "the HyperPod cluster",
    "bucket": "the bucket",
    "key": "the KMS key for Kubernetes secrets and control-plane logs",
    "fileSystem": "the FSx for Lustre file system",
    "prometheus": "the Managed Prometheus workspace",
    "grafana": "the Managed Grafana workspace",
}
# There may be two of them; each by its name in the program.
_BUCKETS: Final = {
    "lifecycle": "the bucket with lifecycle scripts",
    "certificates": "the bucket with the certificates of inference endpoints",
}
# Consequences that the two values don't show.
_WHY: Final = {"storageCapacity ": "; a file system can only grow"}
_LOST_WITH_IT: Final = {
    "vpc": "everything in it",
    "eks": "everything in it",
    "bucket": "every version of every object in it",
    "key": "access to the data that it encrypted",
    "fileSystem": "every file on it",
    "prometheus": "every metric in it",
    "grafana": "every dashboard created in it",
}


def resource_decisions(before: Recorded, after: Recorded, steps: Sequence[Step]) -> Iterator[GuardDecision]:
    """Yield the decisions about guarded resources that are replaced or deleted."""
    actions: dict[str, tuple[str, list[str]]] = {}
    names: dict[str, list[str]] = {}
    for step in steps:
        if step.lost and step.type in GUARDED_TYPES:
            key = GUARDED_TYPES[step.type]
            causes = root_causes(step, steps) or _replacement_named_by_file(key, after)
            action, known_causes = actions.get(key, (step.action, []))
            # There are two buckets. If one is deleted and the other replaced, the action is "delete".
            actions[key] = (
                "delete" if "delete" in (action, step.action) else action,
                [*dict.fromkeys([*known_causes, *causes])],
            )
            names.setdefault(key, []).append(
                _BUCKETS.get(step.name, GUARDED_NAMES[key]) if key == "bucket" else GUARDED_NAMES[key]
            )
    protected = {
        GUARDED_TYPES[each.type]: each.urn in after.resources for each in _protected_resources(before, after, steps)
    }
    for key in sorted(actions, key=list(GUARDED_TYPES.values()).index):
        action, causes = actions[key]
        name = " and ".join(names.get(key, [GUARDED_NAMES[key]]))
        yield _decide(key, name, action, causes, before, after, protected.get(key))


def _replacement_named_by_file(key: str, after: Recorded) -> list[str]:
    """Return the replacement of a deleted resource, if the file now refers to an existing one."""
    network, eks = after.plan.spec.network.existing, after.plan.spec.eks.existing
    names = {"vpc": network.vpc_id if network else "", "eks": eks.name if eks else ""}
    return [f"hpkit's own → {names[key]}"] if names.get(key) else []


def _protected_resources(before: Recorded, after: Recorded, steps: Sequence[Step]) -> Iterator[RecordedResource]:
    """Yield what the engine doesn't delete, because it's protected in the state and stays protected."""
    for step in steps:
        if step.lost and step.type in GUARDED_TYPES and before.resources[step.urn].protect:
            stays = after.resources.get(step.urn)
            if stays is None or stays.protect:
                yield before.resources[step.urn]


def _decide(
    key: str, name: str, action: str, causes: Sequence[str], before: Recorded, after: Recorded, protected: bool | None
) -> GuardDecision:
    """Return the decision.

    protected: True if the engine protects it and the file still does, False if the file no longer does; None if the
    engine doesn't protect it.
    """
    is_allowed = key in after.plan.spec.allow_replace
    name = f"{name} {before.plan.spec.cluster.name}" if key == "cluster" else name
    more = "".join(text for place, text in _WHY.items() if any(cause.startswith(place) for cause in causes))
    why = f" ({'; '.join(causes)}{more})" if causes else ""
    reason = f"{name} will be {action}d, together with {_lost_with_it(key, before)}{why}"
    # The service protects it, or the engine protects what leaves the program: only an `up` before this one lifts that.
    kept_by_service = key in ("eks", "bucket") and deletion_protected(before.plan, key)
    first = ((REPLACE, key),) if kept_by_service or protected is False else ()
    rejected = not is_allowed or protected is not None or kept_by_service
    fix = "" if rejected else "allowReplace allows it"
    return GuardDecision(
        f"{action}-{key}", key, key, reason, fix, rejected=rejected, needs=((REPLACE, key),), first=first
    )


def _lost_with_it(key: str, before: Recorded) -> str:
    if key != "cluster":
        return _LOST_WITH_IT[key]
    groups = [
        f"those of Karpenter in {group.spec.name}" if group.autoscaled else f"{group.spec.instance_count} × {kind}"
        for group in sorted(before.plan.own_groups, key=lambda group: group.autoscaled)
        if (kind := "/".join(group.spec.types)) and (group.autoscaled or group.spec.instance_count)
    ]
    teams = [team.name for team in before.plan.teams]
    queues = f" and the queues of {listing(teams)}" if teams else ""
    return f"its nodes ({listing(groups)}), the jobs on them{queues}"


def relocation_decision(before: Plan, after: Plan) -> GuardDecision | None:
    """Return the decision about a stack that moves to another account, region or VPC; None if it doesn't.

    If a side has no account, it isn't known to be another one; if it has no EKS cluster of its own, it has no VPC.
    """
    sides = (
        ("account", before.spec.account, after.spec.account),
        ("region", before.spec.region, after.spec.region),
        ("network", network_of(before), network_of(after)),
    )
    for setting, old, new in sides:
        if old and new and old != new:
            reason = f"{setting} {old} → {new}: a stack can't move to another {setting}, so the preview fails"
            fix = (
                f"keep {old} in environments.{before.environment}, and describe another environment for {new}. When "
                f"it's deployed, run `hpkit aws destroy --stack {before.stack}`, then remove "
                f"environments.{before.environment}"
            )
            return GuardDecision(f"{setting}-changed", "", setting, reason, fix, rejected=True)
    return None


def range_decisions(before: Plan, after: Plan) -> Iterator[GuardDecision]:
    """Yield the decisions about subnets of nodes that would have addresses of existing ones."""
    for reason in ranges_in_use(ranges_of(before), ranges_of(after)):
        fix = "choose a range that overlaps none of the deployed ones"
        until = f"{reason}, whose subnet exists until the new one does"
        yield GuardDecision("immutable", "", "network", until, fix, rejected=True)


def policy_decisions(before: Plan, after: Plan, steps: Sequence[Step]) -> Iterator[GuardDecision]:
    """Yield the decision about another name of a cluster's policy; the service deletes a policy after all quotas."""
    old, new = before.policy_name, after.policy_name
    stays = not any(step.lost and step.type == CLUSTER for step in steps)
    if before.policy and after.policy and old != new and stays:
        reason = f"policyName {old} → {new}: the service would have to delete the policy, but only after all quotas"
        yield GuardDecision("immutable", "", "policy", reason, f"set `policyName: {old}`", rejected=True)


def version_decisions(before: Plan, after: Plan) -> Iterator[GuardDecision]:
    """Yield the decision about a Kubernetes version that is lower, or higher by more than one."""
    old, new = before.spec.eks.version, after.spec.eks.version
    if before.spec.eks.existing is not None or after.spec.eks.existing is not None:
        return
    (major, was), now = version_order(old), version_order(new)
    fix, reason = f'write `version: "{old}"`', "EKS can't go back to an older version"
    if now > (major, was + 1):
        fix = f'write `version: "{major}.{was + 1}"` first, run `pulumi up`, then continue'
        reason = "EKS can only go up one minor version at a time"
    if not (major, was) <= now <= (major, was + 1):
        yield GuardDecision("version", "", "eks", f"Kubernetes {old} → {new}: {reason}", fix, rejected=True)
