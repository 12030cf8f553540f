"""GOV: sharing, and the cluster policy."""

import re
from collections.abc import Iterator
from itertools import groupby

from hpkit.catalog import TASK_GOVERNANCE, find_region, instance_types, is_older, regions
from hpkit.catalog import limit as limit_of
from hpkit.checks.capacity import let_borrow
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.models.governance import ClusterPolicy, QuotaAmount, Sharing
from hpkit.config.reading.document import Path
from hpkit.text.formatting import listing
from hpkit.text.spelling import did_you_mean, near

__all__ = ["RULES"]

_CONTRACT = "hpkit configuration reference"
_GUIDE = "SageMaker HyperPod developer guide, task governance"
_API = "SageMaker API: CreateComputeQuota, CreateClusterSchedulerConfig"
_QUOTA = "SageMaker API: CreateComputeQuota"
_LABELS = "Kubernetes, labels and selectors: syntax; Kueue, workload priority class"
_MOST_LABEL_VALUE = 63
_MOST_CLASS_NAME = _MOST_LABEL_VALUE - len("-priority")
_TOPOLOGY = "Amazon EC2 user guide, prerequisites for EC2 topology"
_BEST_PRACTICES = "AWS Machine Learning Blog, best practices for SageMaker HyperPod task governance"
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_MOST_RESOURCES = 15
# SageMaker API reference, ResourceSharingConfig: "The values can be 1 - 500 percent".
_DOCUMENTED_BORROW_LIMIT = 500
_MOST_CLASSES = 10
_MOST_TEAM_NAME = 40
# With Kueue 0.12; recoveryTimeout is unknown to older ones, which reject unknown keys.
_KNOWS_RECOVERY = "v1.3.1"
_GANG = "Kueue's source, Configuration API: waitForPodsReady"
# Seconds. Kueue's maintainers recommend 30 minutes for clusters that scale.
_NODE_STARTS = 900


def _limits_need_borrowing(context: Context) -> Iterator[Issue]:
    for _, sharing, path in _sharings(context):
        if sharing.strategy == "LendAndBorrow":
            continue
        limit = sharing.borrow_limit
        for key, value, usable in (
            ("borrowLimit", limit is not None, 1 <= (limit or 0) <= _DOCUMENTED_BORROW_LIMIT),
            ("absoluteBorrowLimits", bool(sharing.absolute_borrow_limits), True),
        ):
            if value:
                yield Issue(
                    (*path, key),
                    f"the strategy {sharing.strategy} doesn't borrow, so {key} must not be set",
                    f"Remove {key}" + (", or set `strategy: LendAndBorrow`." if usable else "."),
                )


def _borrow_limit_range(context: Context) -> Iterator[Issue]:
    for name, sharing, path in _sharings(context):
        limit, most = sharing.borrow_limit, int(limit_of("BorrowLimit").max or 0)
        if limit is not None and sharing.absolute_borrow_limits and sharing.strategy == "LendAndBorrow":
            yield Issue(
                (*path, "borrowLimit"),
                f"team `{name}` has both borrowLimit and absoluteBorrowLimits; AWS documents only that the absolute "
                "limits apply regardless of the percentage",
                "Remove borrowLimit, and list each type that the team borrows in absoluteBorrowLimits.",
                severity="warning",
            )
        # A limit without the strategy that uses it is GOV001's.
        if limit is None or sharing.strategy != "LendAndBorrow" or 1 <= limit <= _DOCUMENTED_BORROW_LIMIT:
            continue
        if 1 <= limit <= most:
            yield Issue(
                (*path, "borrowLimit"),
                f"borrowLimit is {limit}%; the API reference documents 1–{_DOCUMENTED_BORROW_LIMIT}, and "
                f"the service model accepts up to {most}",
                f"Use at most {_DOCUMENTED_BORROW_LIMIT}, or set absoluteBorrowLimits.",
                severity="warning",
            )
        else:
            yield Issue(
                (*path, "borrowLimit"),
                f"borrowLimit is {limit}%; it must be 1–{_DOCUMENTED_BORROW_LIMIT}",
                f"Use at most {_DOCUMENTED_BORROW_LIMIT}, or set absoluteBorrowLimits."
                if limit > most
                else "To turn off borrowing, remove borrowLimit and set the strategy to Lend.",
            )


def _quota_resources(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    for team, quota_resources in (governance.allocations if governance else {}).items():
        path: Path = (*context.path, "governance", "allocations", team)
        if len(quota_resources) > _MOST_RESOURCES:
            yield Issue(
                path,
                f"team `{team}` has {len(quota_resources)} quota resources; the limit of a compute quota is "
                f"{_MOST_RESOURCES}",
                "Merge allocations of the same instance type, or split the team.",
            )
        for index, quota_resource in enumerate(quota_resources):
            message = _problem_of_resource("allocation", quota_resource, quota_resource.share)
            if message:
                yield Issue(
                    (*path, index),
                    f"team `{team}`: {message}",
                    "Set `count`, `share`, or fractions (`accelerators` or `acceleratorPartition`, `vCpu`, "
                    "`memoryInGiB`).",
                )
    for name, sharing, path in _sharings(context):
        if len(sharing.absolute_borrow_limits) > _MOST_RESOURCES:
            yield Issue(
                (*path, "absoluteBorrowLimits"),
                f"team `{name}` has {len(sharing.absolute_borrow_limits)} absolute borrow limits; the limit is "
                f"{_MOST_RESOURCES}",
                "Keep only the types that the team borrows.",
            )
        for index, limit in enumerate(sharing.absolute_borrow_limits):
            message = _problem_of_resource("borrow limit", limit)
            if message:
                yield Issue(
                    (*path, "absoluteBorrowLimits", index),
                    f"team `{name}`: {message}",
                    "Set `count` or fractions (`accelerators` or `acceleratorPartition`, `vCpu`, `memoryInGiB`).",
                )


def _problem_of_resource(what: str, quota_resource: QuotaAmount, share: str | None = None) -> str | None:
    fractions = {
        "accelerators": quota_resource.accelerators,
        "acceleratorPartition": quota_resource.accelerator_partition,
        "vCpu": quota_resource.v_cpu,
        "memoryInGiB": quota_resource.memory_in_gib,
    }
    stated_keys = [key for key, value in fractions.items() if value is not None]
    whole = [key for key, value in (("count", quota_resource.count), ("share", share)) if value is not None]
    subject = f"the {what} of {quota_resource.instance_type}"
    if not stated_keys and not whole:
        return f"{subject} has no amount"
    if whole and stated_keys:
        return f"{subject} has both {whole[0]} and {listing(stated_keys)}"
    if len(whole) == 2:
        return f"{subject} has both count and share"
    if quota_resource.accelerators is not None and quota_resource.accelerator_partition is not None:
        return f"{subject} has both accelerators and acceleratorPartition"
    return None


def _team_names(context: Context) -> Iterator[Issue]:
    pool = context.spec.governance.shared_pool if context.spec.governance else None
    names: list[tuple[str, Path]] = [
        (team.name, ("teams", index, "name")) for index, team in enumerate(context.organization.teams)
    ]
    if pool is not None:
        names.append((pool.name, (*context.path, "governance", "sharedPool", "name")))
    for name, path in names:
        if len(name) > _MOST_TEAM_NAME or not _DNS_LABEL.match(name):
            problem = f"has {len(name)} characters" if len(name) > _MOST_TEAM_NAME else "isn't a DNS label"
            yield Issue(
                path,
                f"the team name `{name}` {problem}; `hyperpod-ns-{name}-localqueue` must be a label value of at most "
                "63 characters",
                (f"Use `{plain}`{_also_in(context, name)}: " if (plain := _plain(name)) else "Use ")
                + f"a-z, 0-9 and `-`, at most {_MOST_TEAM_NAME} characters, no `-` at the ends.",
            )


def _also_in(context: Context, team: str) -> str:
    """Return which keys of environments also contain the team's name."""
    parts = [each.governance for each in context.organization.environments.values() if each.governance]
    uses = {
        "allocations": any(team in each.allocations for each in parts),
        "overrides": any(team in each.overrides for each in parts),
        "quotaNames": any(team in each.quota_names for each in parts),
    }
    names = [name for name, is_used in uses.items() if is_used]
    return f", also in {listing(names)}" if names else ""


def _plain(name: str) -> str:
    """Return the name of a team that is nearly another's; nothing if the name is only too long."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") if len(name) <= _MOST_TEAM_NAME else ""


def _policies(context: Context) -> Iterator[tuple[ClusterPolicy, Path]]:
    yield context.organization.cluster_policy, ("clusterPolicy",)
    governance = context.spec.governance
    if governance is not None and governance.cluster_policy is not None:
        yield governance.cluster_policy, (*context.path, "governance", "clusterPolicy")


def _priority_classes(context: Context) -> Iterator[Issue]:
    for policy, path in _policies(context):
        classes = policy.priority_classes
        if len(classes) > _MOST_CLASSES:
            yield Issue(
                (*path, "priorityClasses"),
                f"the cluster policy has {len(classes)} priority classes; the limit is {_MOST_CLASSES}",
                "Merge classes.",
            )
        by_weight = sorted(classes, key=lambda each: (each.weight, each.name))
        for weight, same in groupby(by_weight, key=lambda each: each.weight):
            names = [each.name for each in same]
            if len(names) > 1:
                yield Issue(
                    (*path, "priorityClasses"),
                    f"{listing(names)} have the same weight, {weight}, so none of them has priority",
                    "Give each class a different weight.",
                )
    yield from _names_of_classes(context)


def _names_of_classes(context: Context) -> Iterator[Issue]:
    for policy, path in _policies(context):
        for index, priority_class in enumerate(policy.priority_classes):
            if len(priority_class.name) > _MOST_CLASS_NAME:
                yield Issue(
                    (*path, "priorityClasses", index, "name"),
                    f"the priority class name has {len(priority_class.name)} characters; the label value "
                    f"`NAME-priority` of jobs can have at most {_MOST_LABEL_VALUE}",
                    f"Use at most {_MOST_CLASS_NAME} characters.",
                )
            elif priority_class.name.endswith("-priority"):
                name = priority_class.name.removesuffix("-priority")
                is_free = name not in {other.name for other in policy.priority_classes}
                yield Issue(
                    (*path, "priorityClasses", index, "name"),
                    "the service appends `-priority` to class names, so jobs would need the label value "
                    f"`{priority_class.name}-priority`",
                    f"Use `{name}`; jobs then use `{priority_class.name}`."
                    if is_free
                    else f"Choose another name without `-priority`; `{name}` already exists.",
                    "warning",
                )


def _prioritization(context: Context) -> Iterator[Issue]:
    for policy, path in _policies(context):
        ranked = policy.task_prioritization == "Rank"
        if ranked and not policy.priority_classes:
            yield Issue(
                (*path, "taskPrioritization"),
                "`taskPrioritization: Rank` requires at least one priority class",
                "Add priorityClasses, or use FirstComeFirstServed.",
            )
        if not ranked and policy.priority_classes:
            names = [each.name for each in policy.priority_classes]
            yield Issue(
                (*path, "priorityClasses"),
                f"FirstComeFirstServed doesn't support priority classes, but the policy has {len(names)} "
                f"({listing(names)})",
                "Set `taskPrioritization: Rank`, or remove the classes.",
            )


def _weights(context: Context) -> Iterator[Issue]:
    policy, teams = context.plan.policy, context.plan.teams
    if policy is None or len(teams) < 2:
        return
    weights = {team.name: team.spec.fair_share_weight for team in teams if not team.is_shared_pool}
    team_weights = listing([f"{name} {weight}" for name, weight in sorted(weights.items())])
    path = (*context.policy_path, "fairShare")
    if policy.fair_share == "Disabled" and len(set(weights.values())) > 1:
        yield Issue(
            path,
            f"fairShare is Disabled in `{context.environment}`, so the teams' weights have no effect ({team_weights})",
            "Set fairShare to Enabled, or give all teams the same weight.",
        )
    if policy.fair_share == "Enabled" and len(weights) > 1 and not any(weights.values()):
        yield Issue(
            path,
            f"all teams of `{context.environment}` have the weight 0 ({listing(sorted(weights))}), so idle compute "
            "goes to the oldest request",
            "Give at least one team a fairShareWeight above 0.",
        )


def _region(context: Context) -> Iterator[Issue]:
    region = find_region(context.spec.region)
    if context.spec.governance is not None and region is not None and not region.task_governance:
        offered = [each.name for each in regions() if each.task_governance]
        yield Issue(
            (*context.path, "region"),
            f"task governance isn't available in {context.spec.region}",
            f"Choose a region where it is available ({listing(offered, len(offered))}), or remove governance.",
        )


def _known_teams(context: Context) -> Iterator[Issue]:
    team_names = {team.name for team in context.organization.teams}
    for team, likely in _meant_teams(context).items():
        # If a team's own name must change, GOV004 suggests a new one.
        if likely is not None and _plain(likely) == team:
            continue
        yield Issue(
            (*context.path, "governance", "allocations", team),
            f"the allocation is for `{team}`, which isn't in teams ({listing(sorted(team_names)) or 'none'})",
            f"Did you mean `{_plain(likely) or likely}`?"
            if likely
            else f"Add `- name: {team}` to teams, or remove the allocation.",
        )


def _meant_teams(context: Context) -> dict[str, str | None]:
    """Return the names of allocations that no team has, with the team without an allocation that each may mean."""
    allocations = context.spec.governance.allocations if context.spec.governance else {}
    team_names = {team.name for team in context.organization.teams}
    if _lacks_a_name(context):
        return {}
    return {name: near(name, team_names - allocations.keys()) for name in allocations if name not in team_names}


def _lacks_a_name(context: Context) -> bool:
    """Return whether two teams have one name (CFG004), so that a name without a team is probably one of theirs."""
    return len({team.name for team in context.organization.teams}) < len(context.organization.teams)


def _topology(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    if governance is None or context.spec.karpenter is None:
        return
    if governance.topology_aware_scheduling == "Enabled":
        yield Issue(
            (*context.path, "governance", "topologyAwareScheduling"),
            "topology-aware scheduling doesn't work with Karpenter: nodes that don't exist yet have no topology, "
            "so every workload would wait forever",
            "Set `topologyAwareScheduling: Disabled`, or remove the key.",
        )


def _gang_scheduling(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    gang = governance.gang_scheduling if governance else None
    if gang is None or not gang.enable:
        return
    path: Path = (*context.path, "governance", "gangScheduling")
    addon = context.spec.addons.get(TASK_GOVERNANCE)
    if addon is not None and addon.version is not None and is_older(addon.version, _KNOWS_RECOVERY):
        yield Issue(
            (*context.path, "addons", TASK_GOVERNANCE),
            f"{TASK_GOVERNANCE} is at version {addon.version}, whose Kueue won't start with the settings of gang "
            f"scheduling; {_KNOWS_RECOVERY} is the oldest known to accept them",
            "Remove the version, or set `gangScheduling: {enable: false}`.",
        )
    if not gang.timeout_seconds:
        yield Issue(
            (*path, "timeout"),
            f"timeout is {gang.timeout}: Kueue treats it as not set, and uses its default",
            "Use a duration such as `5m`.",
        )
    elif gang.timeout_seconds < _NODE_STARTS and context.plan.node_pools:
        yield Issue(
            path,
            f"Kueue evicts workloads whose pods aren't ready after {gang.timeout}, but those that wait for a node from "
            "Karpenter take longer, so they would be evicted again and again",
            "Set `timeout: 30m`.",
            "warning",
        )
    strategy = gang.requeuing_strategy
    if strategy.backoff_max_seconds < strategy.backoff_base_seconds:
        # The explicitly set one; the other might be the default.
        key = "backoffMaxSeconds" if "backoff_max_seconds" in strategy.model_fields_set else "backoffBaseSeconds"
        yield Issue(
            (*path, "requeuingStrategy", key),
            f"backoffMaxSeconds is {strategy.backoff_max_seconds}, less than backoffBaseSeconds "
            f"({strategy.backoff_base_seconds}), so the longest wait would be shorter than the first",
            f"Set `backoffMaxSeconds: {max(strategy.backoff_base_seconds, 3600)}`.",
        )


def _installed(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    if governance is None or not governance.installed:
        return
    path: Path = (*context.path, "governance")
    if context.spec.eks.existing is None:
        yield Issue(
            (*path, "installed"), "hpkit creates the EKS cluster, which has no add-ons yet", "Remove `installed`."
        )
    stated = {
        ("governance", "gangScheduling"): governance.gang_scheduling is not None,
        ("governance", "topologyAwareScheduling"): governance.topology_aware_scheduling in ("Enabled", "Disabled"),
        ("addons", TASK_GOVERNANCE): TASK_GOVERNANCE in context.spec.addons,
    }
    for section in (section for section, is_stated in stated.items() if is_stated):
        yield Issue(
            (*context.path, *section),
            f"`{section[-1]}` has no effect with `installed`: hpkit changes neither the add-on nor Kueue's "
            "configuration",
            "Remove it, or remove `installed`.",
        )


def _network_layers(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    # If unset, it's also on, which has no effect on types without a topology. GOV011 reports autoscaling.
    wanted = governance is not None and governance.topology_aware_scheduling == "Enabled"
    if not wanted or context.spec.karpenter is not None:
        return
    reserved = {
        resource.instance_type
        for team in context.plan.teams
        for resource in team.quota_resources
        if resource.instance_type in context.instances
    }
    without = sorted(name for name in reserved if not context.instances[name].network_layers)
    if without:
        some = [each.name for each in instance_types() if each.network_layers]
        yield Issue(
            (*context.path, "governance", "topologyAwareScheduling"),
            f"EC2 reports no network layers for {listing(without)}, so a job that requires one would wait forever",
            "Set `topologyAwareScheduling: Disabled`, or use types with network layers, such as "
            f"{listing([name for name in some if name.startswith('ml.p5')])} (networkLayers in `hpkit catalog "
            "instances --format json`).",
        )


def _shared_pool_name(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    if governance is None or governance.shared_pool is None:
        return
    if governance.shared_pool.name in context.team_paths:
        yield Issue(
            (*context.path, "governance", "sharedPool"),
            f"the shared pool has the same name as the team {governance.shared_pool.name}",
            "Rename the pool.",
        )


def _sharings(context: Context) -> Iterator[tuple[str, Sharing, Path]]:
    """Yield each team's name, how it shares, and where that is written: with the team, and in this environment."""
    for index, team in enumerate(context.organization.teams):
        yield team.name, team.sharing, ("teams", index, "sharing")
    governance = context.spec.governance
    for name, override in (governance.overrides if governance else {}).items():
        if override.sharing is not None:
            yield name, override.sharing, (*context.path, "governance", "overrides", name, "sharing")


def _overrides(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    teams = {team.name for team in context.plan.teams if not team.is_shared_pool}
    meant = set(_meant_teams(context).values())
    for name, override in (governance.overrides if governance else {}).items():
        path = (*context.path, "governance", "overrides", name)
        if name in meant or (_lacks_a_name(context) and name not in context.team_paths):
            continue
        if name not in teams:
            yield Issue(
                path,
                f"the override is for `{name}`, which has no quota in `{context.environment}` (teams with quota: "
                f"{listing(sorted(teams)) or 'none'})",
                did_you_mean(name, teams, f"Remove it, or give team `{name}` an allocation."),
            )
        elif not override.model_fields_set:
            yield Issue(path, f"the override for team `{name}` is empty", "Remove it, or set what differs here.")


def _lent_to_nobody(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    if governance is None or governance.shared_pool is None or not context.plan.teams:
        return
    teams = [team for team in context.plan.teams if not team.is_shared_pool]
    strategies: dict[str, str] = {team.name: team.spec.sharing.strategy for team in teams}
    strategies.update({team.name: "paused" for team in teams if team.spec.activation_state == "Disabled"})
    held = {each.instance_type for team in context.plan.teams if team.is_shared_pool for each in team.quota_resources}
    unusable = [each.instance_type for each in context.quotas if each.instance_type in held and not each.borrowers]
    if strategies and (unusable or not any(team.borrows for team in context.plan.teams)):
        what = f"{listing(unusable)} " if unusable else ""
        yield Issue(
            (*context.path, "governance", "sharedPool"),
            f"no team of `{context.environment}` can borrow {what}from the shared pool `{governance.shared_pool.name}` "
            f"({listing([f'{name} {strategy}' for name, strategy in sorted(strategies.items())])})",
            f"{let_borrow(unusable)}."
            if unusable
            else "Set the strategy of a team to LendAndBorrow, or remove sharedPool.",
        )


def _quota_names(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    names = governance.quota_names if governance else {}
    path = (*context.path, "governance", "quotaNames")
    teams = {team.name: team.quota_name for team in context.plan.teams}
    meant = set(_meant_teams(context).values())
    for team, name in names.items():
        if team in meant or (_lacks_a_name(context) and team not in context.team_paths):
            continue
        if team not in teams:
            yield Issue(
                (*path, team),
                f"the quota name `{name}` is for `{team}`, which has no quota here (teams with quota: "
                f"{listing(sorted(teams)) or 'none'})",
                f"Remove it, or add an allocation for team `{team}`.",
            )
            continue
        other_teams = sorted(other for other, called in teams.items() if called == name and other != team)
        if other_teams:
            yield Issue(
                (*path, team),
                f"the quotas of team `{team}` and of {listing(other_teams)} have the same name, `{name}`",
                "Use the names that `aws sagemaker list-compute-quotas` prints.",
            )


RULES = (
    Rule("GOV001", "error", "Borrow limits require the strategy LendAndBorrow.", _GUIDE, _limits_need_borrowing),
    Rule("GOV002", "error", "borrowLimit is 1–10,000 percent, and documented up to 500.", _API, _borrow_limit_range),
    Rule("GOV003", "error", "A quota has at most 15 resources, each with one kind of amount.", _API, _quota_resources),
    Rule("GOV004", "error", "Team names are DNS labels of at most 40 characters.", _API, _team_names),
    Rule(
        "GOV005",
        "error",
        "A policy has at most 10 priority classes, with different weights and short names.",
        f"{_API}; {_LABELS}",
        _priority_classes,
    ),
    Rule(
        "GOV006", "error", "Priority classes require Rank, and Rank requires priority classes.", _GUIDE, _prioritization
    ),
    Rule(
        "GOV007",
        "warning",
        "Weights have an effect: fair share is on, and at least one weight isn't 0.",
        _GUIDE,
        _weights,
    ),
    Rule("GOV008", "error", "Task governance is available in the region.", _API, _region),
    Rule("GOV010", "error", "Allocations are for teams in `teams`.", _CONTRACT, _known_teams),
    Rule("GOV011", "error", "Topology-aware scheduling isn't combined with Karpenter.", _GUIDE, _topology),
    Rule(
        "GOV012", "error", "The shared pool doesn't have the name of a team.", _API, _shared_pool_name, waivable=False
    ),
    Rule(
        "GOV013",
        "error",
        "Overrides and unique quotaNames are for teams with quota in the environment.",
        f"{_QUOTA}; {_CONTRACT}",
        _overrides,
        _quota_names,
    ),
    Rule("GOV015", "warning", "At least one team can borrow from a shared pool.", _BEST_PRACTICES, _lent_to_nobody),
    Rule(
        "GOV016", "warning", "Topology-aware scheduling requires nodes with network layers.", _TOPOLOGY, _network_layers
    ),
    Rule(
        "GOV018",
        "error",
        "Timeouts and retries of gang scheduling are valid, and allow time for new nodes.",
        _GANG,
        _gang_scheduling,
    ),
    Rule(
        "GOV020",
        "error",
        "With `installed`, the environment doesn't configure the task governance add-on.",
        _CONTRACT,
        _installed,
    ),
)
