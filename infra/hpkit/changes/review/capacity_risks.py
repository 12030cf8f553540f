"""Risks in instance groups and NodePools: nodes, settings, limits, types, cost, and Karpenter turned on or off.

hpkit.changes reports what the service rejects, deleted groups with nodes, and deleted NodePools. Sources: SageMaker
API, UpdateCluster and ClusterKubernetesConfigDetails; developer guide, scaling and lifecycle scripts of EKS clusters;
Karpenter's documentation of NodePools.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Literal

from hpkit.catalog import MIG_LABEL, find_instance_type, sticky_of_groups
from hpkit.catalog.differences import adds_subnets
from hpkit.catalog.prices import near_price
from hpkit.changes import renamed_group, renamed_parts, value_text
from hpkit.changes.review.cost import pool_cost, ready_cost, ready_nodes, total
from hpkit.changes.review.formatting import cost, money
from hpkit.changes.review.model import Cost, MoneyChange, Risk
from hpkit.plan.capacity import pool_instances
from hpkit.plan.derive import instances_of
from hpkit.plan.model import GroupPlan, NodePoolPlan, Plan, RestrictedGroupPlan
from hpkit.text.formatting import listing, plural

__all__ = ["group_risks", "node_pool_risks"]

_Group = GroupPlan | RestrictedGroupPlan
# The effect of another value on people who run jobs.
_GROUP_MEANS: Final = {
    "imageId": "new nodes use it, and existing nodes get it when their software is updated",
    "lifecycleScript": "only new nodes run it",
    "instanceStorageConfigs": "only new nodes have it",
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
# The service won't change some of these, which a guard reports; the count is reported separately.
_SAID_ELSEWHERE: Final = {
    "name", "instanceCount", "instanceType", "instanceTypes", "capacityType", "overrideVpcConfig", "availabilityZone",
    "executionRole",
}  # fmt: skip


def group_risks(before: Plan, after: Plan, rejected: Collection[str] = ()) -> Iterator[Risk]:
    """Yield what to watch in the groups of a cluster that exists before and after.

    rejected: names of groups of which a guard already reports what HyperPod can't change.
    """
    new = {group.spec.name: group for group in after.own_groups}
    counted = instances_of(before), instances_of(after)
    for group in before.own_groups:
        name = group.spec.name
        if name in new:
            is_recounted = any(counted[0].get(kind) != counted[1].get(kind) for kind in group.spec.types)
            yield from _staying(group, new[name], is_rejected=name in rejected, is_recounted=is_recounted)
        elif not group.autoscaled and not group.spec.instance_count:
            kind = "/".join(group.spec.types)
            yield Risk("group-removed", "attention", name, f"{name} is deleted (0 × {kind}); nothing runs there")
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
        yield Risk("nodes-added", "ok", name, f"{how}, running at all times")


def _staying(old: _Group, new: _Group, *, is_rejected: bool, is_recounted: bool) -> Iterator[Risk]:
    name, count = new.spec.name, new.spec.instance_count
    if old.autoscaled and not new.autoscaled:
        yield Risk(
            "karpenter-group-removed",
            "attention",
            name,
            f"no NodeClass contains {name} anymore: its instanceCount becomes {count}, and the nodes that "
            "Karpenter started there are deleted, together with the jobs on them",
        )
    elif new.autoscaled and not old.autoscaled and old.spec.instance_count:
        yield Risk(
            "karpenter-group-added",
            "attention",
            name,
            f"Karpenter owns {name} from now on: its {old.spec.instance_count} × {'/'.join(old.spec.types)} are "
            "no longer guaranteed to any team. The update leaves them running; AWS doesn't document what Karpenter "
            "does with nodes that it didn't start",
        )
    elif count < old.spec.instance_count and not new.autoscaled:
        restricted = "restricted " if isinstance(new, RestrictedGroupPlan) else ""
        yield Risk(
            "nodes-removed",
            "attention",
            name,
            f"{restricted}{name} {old.spec.instance_count} → {count} × {'/'.join(new.spec.types)}: the service chooses "
            "which nodes are deleted, and the jobs on them are evicted",
        )
    places = [
        each.spec.override_vpc_config.subnets if each.spec.override_vpc_config else each.zones for each in (old, new)
    ]
    if places[0] and adds_subnets(*places):
        added = listing([each for each in places[1] if each not in places[0]])
        message = f"{name} stays in {listing(places[0])}: HyperPod can't add {added} to an existing group"
        yield Risk("group-settings", "attention", name, f"{message}; a new group uses it")
    sides = [side.spec.model_dump(by_alias=True, mode="json", exclude_none=True) for side in (old, new)]
    for key in (key for key in {**sides[0], **sides[1]} if key not in _SAID_ELSEWHERE):
        was, now = (side.get(key) for side in sides)
        # A guard reports changed numbers. If one side has none, the service isn't asked to change anything.
        if key == "threadsPerCore" and (None not in (was, now) or not is_recounted):
            continue
        if was != now and not _only_adds(key, was, now) and not (is_rejected and not now and _is_sticky(key)):
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
        means = _GROUP_MEANS.get(key, "its nodes run differently")
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


# The effect of another value on people who run jobs.
_POOL_MEANS: Final = {
    "disruption": "the time changes at which Karpenter deletes nodes and their pods",
    "expireAfter": "the maximum lifetime of a node and its pods changes",
    "taints": "different pods can run on its nodes",
    "labels": "pods that select a removed label find no node",
    "weight": "the order in which NodePools are tried changes",
    "nodeClass": "its nodes come from different instance groups",
    "requirements": "it adds different nodes",
}


def node_pool_risks(before: Plan, after: Plan) -> Iterator[Risk]:
    """Yield what to watch in the NodePools of an environment that exists before and after."""
    if before.spec.karpenter is not None and after.spec.karpenter is None:
        means = "no nodes are added for waiting jobs, and idle nodes aren't removed"
        yield Risk("karpenter-off", "attention", "autoscaling", f"managed Karpenter is switched off: {means}")
    old = {pool.spec.name: pool for pool in before.node_pools}
    renamed = renamed_parts("nodePools", before, after)
    for pool in after.node_pools:
        name = pool.spec.name
        # A renamed NodePool is compared with the NodePool that it replaces.
        was = old.get(renamed.get(name, name))
        if name not in old:
            yield _limit_risk("limit-raised", f"NodePool {name} is new: it", was, pool, before, after)
        elif was is not None:
            yield from _limits(was, pool, before, after)
            yield from _new_types(was, pool, before, after)
            yield from _settings(was, pool, before, after)
        yield from _warm_pool(was, pool, before, after)


def _limits(old: NodePoolPlan, new: NodePoolPlan, before: Plan, after: Plan) -> Iterator[Risk]:
    if old.spec.limits == new.spec.limits:
        return
    sides = [_most(pool) for pool in (old, new)]
    raised = any(_above(sides[1].get(kind), most) for kind, most in sides[0].items())
    keys = [key for key in (*old.spec.limits, *new.spec.limits) if old.spec.limits.get(key) != new.spec.limits.get(key)]
    texts = [
        f"{key} {old.spec.limits.get(key, 'unset')} → {new.spec.limits.get(key, 'unset')}"
        for key in dict.fromkeys(keys)
    ]
    code = "limit-raised" if raised else "limit-lowered"
    yield _limit_risk(code, f"limits of NodePool {new.spec.name} {listing(texts)}: it", old, new, before, after)


def _new_types(old: NodePoolPlan, new: NodePoolPlan, before: Plan, after: Plan) -> Iterator[Risk]:
    """Report which types a NodePool with the same limits now adds, their prices, and the maximum cost."""
    added = [kind for kind in new.instance_types if kind not in old.instance_types]
    # If the limits change too, _limit_risk already names every type with its price.
    if not added or old.spec.limits != new.spec.limits:
        return
    most, region = _most(new), after.spec.region
    texts = [f"{_instances(kind, most.get(kind))} ({_price(kind, region)})" for kind in added]
    sides = (pool_cost(old, before), pool_cost(new, after))
    was, now = (cost(each) for each in sides)
    bound = f"still {now}" if was == now else f"{now} instead of {was}"
    yield Risk(
        "node-pool-settings",
        "attention",
        new.spec.name,
        f"NodePool {new.spec.name} may add {listing(texts, 20)} too; its maximum cost a month is {bound}",
        monthly_cost=_change(*sides, "maximum"),
    )


def _instances(kind: str, most: int | None) -> str:
    return f"{'any number of' if most is None else f'{most} ×'} {kind}"


def _price(kind: str, region: str) -> str:
    price = near_price(kind, region)
    if price is None:
        return "price unknown"
    return f"{'about ' if price.region != region else ''}{money(price.monthly)} a month each"


def _above(now: int | None, was: int | None) -> bool:
    """Return whether one bound is above another; None is unbounded."""
    return was is not None and (now is None or now > was)


def _most(pool: NodePoolPlan) -> dict[str, int | None]:
    """Return how many instances of each type a NodePool can add; None if it's unbounded."""
    known = ((kind, find_instance_type(kind)) for kind in pool.instance_types)
    return {kind: pool_instances(pool.spec.limits, instance) if instance else None for kind, instance in known}


def _limit_risk(
    code: str, opening: str, old: NodePoolPlan | None, new: NodePoolPlan, before: Plan, after: Plan
) -> Risk:
    was, now = _most(old) if old is not None else {}, _most(new)
    texts = [
        _instances(instance_type, most)
        + (
            f" instead of {'any number' if was[instance_type] is None else was[instance_type]}"
            if instance_type in was and was[instance_type] != most
            else f" ({_price(instance_type, after.spec.region)})"
            if was and instance_type not in was
            else ""
        )
        for instance_type, most in now.items()
    ]
    costs = (pool_cost(old, before) if old is not None else None, pool_cost(new, after))
    unlimited = bool(costs[1].unbounded)
    price = "unlimited" if unlimited else f"{cost(costs[1])} a month" if costs[1].complete else "unknown"
    return Risk(
        code,
        "attention",
        new.spec.name,
        f"{opening} may add {listing(texts, 20) or 'nothing'}; its maximum cost is {price}",
        monthly_cost=_change(*costs, "maximum"),
    )


def _change(was: Cost | None, now: Cost | None, capacity: Literal["minimum", "maximum"]) -> MoneyChange | None:
    """Return the change of a cost; None if it doesn't change, or a side isn't known. A missing side costs nothing."""
    before, after = (total([each]) for each in (was, now))
    change = after.known - before.known
    known = before.complete and after.complete
    return MoneyChange(change, capacity, bool(before.prices_of or after.prices_of)) if known and change else None


def _warm_pool(old: NodePoolPlan | None, new: NodePoolPlan, before: Plan, after: Plan) -> Iterator[Risk]:
    """Report how many permanent nodes the placeholder pods need, and their cost."""
    was, now = (_warm_pool_of(pool) for pool in (old, new))
    if was == now:
        return
    nodes = [f"{count} × {kind}" for kind, count in ready_nodes(new).items()]
    means = "no node is kept ready" if now is None else f"{' or '.join(nodes) or 'nodes for its pods'} always run"
    sides = (ready_cost(old, before.spec.region) if old is not None else None, ready_cost(new, after.spec.region))
    yield Risk(
        "node-pool-settings",
        "attention",
        new.spec.name,
        f"warmPool of NodePool {new.spec.name} {_difference(was, now)}: {means}",
        monthly_cost=_change(*sides, "minimum"),
    )


def _warm_pool_of(pool: NodePoolPlan | None) -> dict[str, Any] | None:
    warm = pool.spec.warm_pool if pool is not None else None
    return None if warm is None else warm.model_dump(by_alias=True, mode="json", exclude_defaults=True)


def _groups_of(pool: NodePoolPlan, plan: Plan) -> set[str]:
    classes = plan.spec.autoscaling.node_classes if plan.spec.autoscaling is not None else ()
    return {group for each in classes if each.name == pool.spec.node_class for group in each.instance_groups}


def _settings(old: NodePoolPlan, new: NodePoolPlan, before: Plan, after: Plan) -> Iterator[Risk]:
    name = new.spec.name
    for setting, was, now in (("types", old.instance_types, new.instance_types), ("zones", old.zones, new.zones)):
        removed = [each for each in was if each not in now]
        if removed:
            yield Risk(
                "node-pool-settings",
                "attention",
                name,
                f"NodePool {name} no longer adds nodes of the {setting} {listing(removed, 20)}; existing ones count as "
                "drifted and are deleted, together with the jobs on them",
            )
    sides = [_stated(side.spec.model_dump(by_alias=True, mode="json", exclude_none=True)) for side in (old, new)]
    for key, means in _POOL_MEANS.items():
        effect = means
        then, after_that = (side.get(key) for side in sides)
        if then != after_that:
            change = _difference(then, after_that)
            if key == "nodeClass" and _groups_of(old, before) == _groups_of(new, after):
                effect = (
                    "its nodes come from the same instance groups. Karpenter replaces running nodes because they "
                    "drifted, which ends their jobs; if you meant a rename, keep the old name"
                )
            yield Risk("node-pool-settings", "attention", name, f"{key} of NodePool {name} {change}: {effect}")


def _stated(value: Any) -> Any:
    """Return settings without empty lists, at any depth, because these restrict nothing."""
    if isinstance(value, dict):
        return {key: _stated(each) for key, each in value.items() if each != []}
    return [_stated(each) for each in value] if isinstance(value, list) else value


def _difference(was: Any, now: Any) -> str:
    """Return the difference; for a map, only the keys that differ."""
    if isinstance(was, dict) and isinstance(now, dict):
        return ", ".join(
            f"{key} {value_text(was.get(key))} → {value_text(now.get(key))}"
            for key in {**was, **now}
            if was.get(key) != now.get(key)
        )
    return f"{value_text(was)} → {value_text(now)}"
