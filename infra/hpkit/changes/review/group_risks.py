"""Risks in instance groups: deleted empty groups, fewer or more nodes, settings, and Karpenter turned off.

hpkit.changes reports what the service rejects, and deleted groups with nodes. Sources: SageMaker API, UpdateCluster and
ClusterKubernetesConfigDetails; developer guide, scaling and lifecycle scripts of EKS clusters.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from hpkit.catalog import MIG_LABEL, sticky_of_groups
from hpkit.changes import renamed_group, value_text
from hpkit.changes.review.model import Risk
from hpkit.plan.model import GroupPlan, Plan, RestrictedGroupPlan
from hpkit.text.plural import plural

__all__ = ["group_risks"]

_Group = GroupPlan | RestrictedGroupPlan
# The effect of another value on people who run jobs.
_MEANS: Final = {
    "imageId": "new nodes use it, and existing nodes get it when their software is updated",
    "lifecycleScript": "only new nodes run it",
    "instanceStorageConfigs": "only new nodes have it",
    "lifecycleEvent": "only new nodes run the script at this event",
    "networkInterface": "only new nodes have it",
    "imageReleaseVersion": "existing nodes keep their image until their software is updated",
    "labels": "pods that select a removed label find no node",
    "trainingPlanArn": "its nodes come from other reserved capacity, and none are added after its training plan ends",
    "deepHealthChecks": "nodes are only tested by these before they accept work",
    "lifecycleScriptSha256": "only new nodes verify the script's digest",
    "threadsPerCore": "its nodes keep what they have, and hpkit counts their vCPUs by the new number",
    "minInstanceCount": "updates wait for a different number of nodes",
    "autoPatch": "the time changes at which its nodes are patched and restarted",
    "scheduledUpdate": "the time at which its nodes are updated, and restarted, changes",
}
# The service refuses to change some of these, which a guard reports; the count is reported separately.
_SAID_ELSEWHERE: Final = {
    "name", "instanceCount", "instanceType", "instanceTypes", "capacityType", "overrideVpcConfig", "availabilityZone",
    "executionRole",
}  # fmt: skip


def group_risks(before: Plan, after: Plan, refused: Collection[str] = ()) -> Iterator[Risk]:
    """Yield what to watch in the groups of a cluster that exists before and after.

    refused: names of groups of which a guard already reports what HyperPod can't change.
    """
    new = {group.spec.name: group for group in after.own_groups}
    for group in before.own_groups:
        name = group.spec.name
        if name in new:
            yield from _staying(group, new[name], is_refused=name in refused)
        elif not group.autoscaled and not group.spec.instance_count:
            kind = "/".join(group.spec.types)
            yield Risk("group-leaves", "attention", name, f"{name} is deleted (0 × {kind}); nothing runs there")
    yield from _more_nodes(before, after)


def _more_nodes(before: Plan, after: Plan) -> Iterator[Risk]:
    """Yield added permanent nodes: not a loss, but a cost."""
    counts = {group.spec.name: 0 if group.autoscaled else group.spec.instance_count for group in before.own_groups}
    staying = {group.spec.name for group in after.own_groups}
    leaving = [group for group in before.own_groups if group.spec.name not in staying]
    renamed = {found.spec.name for group in leaving if (found := renamed_group(group, before, after)) is not None}
    for group in after.own_groups:
        name, count, instance_types = group.spec.name, group.spec.instance_count, "/".join(group.spec.types)
        if group.autoscaled or name in renamed or count <= counts.get(name, 0):
            continue
        how = (
            f"{name} {counts[name]} → {count} × {instance_types}"
            if name in counts
            else f"{name} is new: {count} × {instance_types}"
        )
        yield Risk("more-nodes", "ok", name, f"{how}, running at all times")


def _staying(old: _Group, new: _Group, *, is_refused: bool) -> Iterator[Risk]:
    name, count = new.spec.name, new.spec.instance_count
    if old.autoscaled and not new.autoscaled:
        yield Risk(
            "karpenter-lets-go",
            "attention",
            name,
            f"no NodeClass contains {name} anymore: its instanceCount becomes {count}, and the nodes that "
            "Karpenter started there are deleted, together with the jobs on them",
        )
    elif new.autoscaled and not old.autoscaled and old.spec.instance_count:
        yield Risk(
            "karpenter-takes",
            "attention",
            name,
            f"Karpenter owns {name} from now on: its {old.spec.instance_count} × {'/'.join(old.spec.types)} are "
            "no longer guaranteed to any team. The update leaves them running; AWS doesn't document what Karpenter "
            "does with nodes that it didn't start",
        )
    elif count < old.spec.instance_count and not new.autoscaled:
        restricted = "restricted " if isinstance(new, RestrictedGroupPlan) else ""
        yield Risk(
            "fewer-nodes",
            "attention",
            name,
            f"{restricted}{name} {old.spec.instance_count} → {count} × {'/'.join(new.spec.types)}: the service chooses "
            "which nodes are deleted, and the jobs on them are evicted",
        )
    sides = [side.spec.model_dump(by_alias=True, mode="json", exclude_none=True) for side in (old, new)]
    for key in (key for key in {**sides[0], **sides[1]} if key not in _SAID_ELSEWHERE):
        was, now = (side.get(key) for side in sides)
        # A guard reports changed numbers. If one side has none, the service isn't asked to change anything.
        if key == "threadsPerCore" and None not in (was, now):
            continue
        if was != now and not _only_adds(key, was, now) and not (is_refused and not now and _is_sticky(key)):
            yield Risk("group-settings", "attention", name, _sentence(new, key, was, now))


def _only_adds(key: str, was: Any, now: Any) -> bool:
    """Return whether nodes get additional labels or checks, and lose none."""
    if key == "labels":
        return was.get(MIG_LABEL) == now.get(MIG_LABEL) and all(now.get(label) == value for label, value in was.items())
    return key == "deepHealthChecks" and set(was) <= set(now)


def _sentence(group: _Group, key: str, was: Any, now: Any) -> str:
    if key == "taints":
        means = _of_taints(was, now, plural(group.spec.instance_count, "node"), autoscaled=group.autoscaled)
    elif key == "labels" and was.get(MIG_LABEL) != now.get(MIG_LABEL):
        # NVIDIA MIG user guide: an instance that a client uses can't be destroyed.
        means = "the GPUs of its nodes are partitioned again, which fails while pods use them; drain these nodes first"
    elif not now and _is_sticky(key):
        means = "HyperPod can't remove it from an existing group"
    else:
        means = _MEANS.get(key, "its nodes run differently")
    was, now = _differing(was, now)
    return f"{key} of instance group {group.spec.name} {value_text(was)} → {value_text(now)}: {means}"


def _differing(was: Any, now: Any) -> tuple[Any, Any]:
    """Return two lists without their common entries if both have others; any other values are unchanged."""
    if not (isinstance(was, list) and isinstance(now, list)):
        return was, now
    changed = [each for each in was if each not in now], [each for each in now if each not in was]
    return changed if all(changed) else (was, now)


def _is_sticky(key: str) -> bool:
    """Return whether the API has no empty value for a setting, such as some onStart… or …Config."""
    return key.lower() in {name.removeprefix("onStart").removesuffix("Config").lower() for name in sticky_of_groups()}


def _of_taints(was: list[Mapping[str, Any]], now: list[Mapping[str, Any]], nodes: str, *, autoscaled: bool) -> str:
    where = "the nodes that Karpenter starts there" if autoscaled else f"its {nodes}"
    added = [taint for taint in now if taint not in was]
    if any(taint["effect"] == "NoExecute" for taint in added):
        return f"pods on {where} that don't tolerate it are evicted"
    if added:
        return f"pods that don't tolerate it can't run on {where}"
    return f"pods that were kept away can now run on {where}"
