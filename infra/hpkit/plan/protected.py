"""Resources that must not be deleted by accident, as texts for messages: what each is, and what is deleted with it.

The program's guards find out whether they would be deleted, by comparing live resources.
"""

from typing import Final

from hpkit.plan.dependencies import charts_of
from hpkit.plan.existing import makes_bucket, makes_certificate_bucket
from hpkit.plan.model import GroupPlan, Plan, RestrictedGroupPlan
from hpkit.plan.registry import repositories_of

__all__ = [
    "DEPENDENCIES",
    "allowed_in",
    "contents_of",
    "deletion_protected",
    "kept",
    "leaving_teams",
    "nested_of",
    "network_of",
    "parts_allowed",
    "parts_of",
    "places_of",
    "ranges_of",
]

# The name of the dependencies chart, in the cluster and in `allowDelete.addons`.
DEPENDENCIES: Final = "hyperpod-dependencies"
_CHART: Final = (
    "the dependencies chart with device plugins (no pod gets a GPU without one), the health-monitoring agent (no "
    "failed node is found) and the operators of training jobs"
)
_NAMESPACE = " and its namespace (all tasks, including running ones, and everything else in it)"
# What is replaced together with each: everything that depends on it.
_NESTED = ("vpc", "eks", "cluster")


def kept(plan: Plan, name: str) -> bool:
    """Return whether a resource, by its name in `allowReplace`, must be kept."""
    return name not in plan.spec.allow_replace


def deletion_protected(plan: Plan, name: str) -> bool:
    """Return whether `protect` keeps a resource from deletion, because `allowReplace` doesn't list it."""
    return plan.spec.protect and kept(plan, name)


def contents_of(plan: Plan) -> dict[str, str]:
    """Return each protected resource of the environment and what is deleted with it, by its name in `allowReplace`."""
    spec, stack = plan.spec, plan.stack
    if spec.cluster.existing:
        return {}
    groups = ", ".join(_group(group) for group in plan.own_groups)
    teams = ", ".join(team.name for team in plan.teams)
    buckets = ["the bucket with lifecycle scripts"] if makes_bucket(plan) else []
    buckets += ["the bucket with the certificates of inference endpoints"] if makes_certificate_bucket(plan) else []
    contents = {"bucket": " and ".join(buckets)} if buckets else {}
    if spec.network.existing is None:
        contents["vpc"] = f"the VPC of {stack} with its subnets"
    if spec.eks.existing is None:
        images = ", and images of teams" if repositories_of(plan) else ""
        contents["key"] = f"the KMS key: Kubernetes secrets and control-plane logs{images} can't be read without it"
        contents["eks"] = f"the EKS cluster {stack} with everything in it"
    if spec.storage is not None and spec.storage.lustre is not None:
        size = spec.storage.lustre.storage_capacity_gib
        contents["fileSystem"] = f"the FSx for Lustre file system ({size} GiB) with all files on it"
    if spec.observability is not None and spec.observability.prometheus:
        contents["prometheus"] = "the Managed Prometheus workspace with every metric in it"
    if spec.observability is not None and spec.observability.grafana:
        contents["grafana"] = "the Managed Grafana workspace with every dashboard created in it"
    cluster = f"the HyperPod cluster {spec.cluster.name} with its nodes ({groups})"
    return contents | {"cluster": f"{cluster} and the quota of its teams ({teams})" if teams else cluster}


def nested_of(plan: Plan) -> tuple[str, ...]:
    """Return the names of resources that depend on one another, as far as the environment creates them."""
    contents = contents_of(plan)
    return tuple(name for name in _NESTED if name in contents)


def network_of(plan: Plan) -> str:
    """Return the VPC of the EKS cluster that hpkit creates, which can't move to another one; "" for an existing one."""
    if plan.spec.eks.existing is not None:
        return ""
    existing = plan.spec.network.existing
    return existing.vpc_id if existing else plan.spec.network.vpc_cidr or ""


def ranges_of(plan: Plan) -> dict[str, str]:
    """Return the range of the nodes' subnet in each zone; none in an existing network."""
    zones = () if plan.spec.network.existing is not None else plan.network.zones
    return {zone.availability_zone: zone.node_cidr for zone in zones if zone.node_cidr}


def places_of(plan: Plan) -> dict[str, str]:
    """Return the places of each group, as names that the guard compares with the previous ones.

    A group that is added, removed, or gets another zone has no name in common with the previous ones, so it can change.
    The live IDs of subnets would do too, but `up` knows them only after it created the new subnets. AWS couldn't undo
    that, because two subnets can't have the same addresses. Existing subnets have IDs, which the plugin compares.
    """
    if plan.spec.network.existing is not None:
        return {}
    ranges = {zone.availability_zone: zone.node_cidr for zone in plan.network.zones}
    alone = {group.spec.name: group.zones[0] for group in plan.own_groups if len(group.zones) == 1}
    return alone | {
        f"{group.spec.name} in {zone}": f"nodeCidr {ranges.get(zone)}"
        for group in plan.own_groups
        for zone in group.zones
    }


def parts_of(plan: Plan) -> dict[str, tuple[str, str]]:
    """Return the parts that are deleted by name, such as `teams/nlp`.

    Each part's live name, and what is deleted with it.

    If a part's name changes, it's another part for the API, and the old one is deleted with its contents.
    """
    parts = {
        f"teams/{team.name}": (
            team.quota_name,
            f"the quota of {team.name} with its queue"
            # The service creates the namespace with the quota; Kubernetes deletes running pods with a namespace.
            + ("" if team.is_shared_pool else _NAMESPACE),
        )
        for team in plan.teams
    }
    for pool in plan.node_pools:
        name = pool.spec.name
        parts[f"nodePools/{name}"] = (name, f"the NodePool {name} with its nodes and their jobs")
    for addon in plan.addons:
        parts[f"addons/{addon.name}"] = (addon.name, _addon(addon.name))
    for chart in charts_of(plan.spec):
        parts[f"addons/{chart.name}"] = (chart.name, _addon(chart.name))
    if plan.dependencies is not None:
        parts[f"addons/{DEPENDENCIES}"] = (DEPENDENCIES, _CHART)
    for repository in repositories_of(plan):
        parts[f"repositories/{repository.key}"] = (
            repository.name,
            f"the repository {repository.name} of {repository.team}'s images",
        )
    for name in _nat_gateways(plan):
        parts[f"natGateways/{name}"] = (name, f"the NAT gateway {name} with its public address and open connections")
    return parts


def parts_allowed(plan: Plan) -> tuple[str, ...]:
    """Return the parts that `allowDelete` names; instance groups are the cluster's own matter."""
    named = plan.spec.allow_delete.model_dump(by_alias=True, exclude={"instance_groups"})
    return tuple(f"{kind}/{name}" for kind, names in named.items() for name in names)


def leaving_teams(plan: Plan) -> tuple[str, ...]:
    """Return the teams that `allowDelete` names and the file no longer has."""
    staying = {team.name for team in plan.teams}
    return tuple(sorted(set(plan.spec.allow_delete.teams) - staying))


def _nat_gateways(plan: Plan) -> tuple[str, ...]:
    """Return the names of the NAT gateways that hpkit creates: a single one, or one per zone."""
    if not plan.network.nat_gateways or plan.spec.network.existing is not None:
        return ()
    if plan.spec.network.nat_gateways == "Single":
        return ("nat",)
    return tuple(f"nat-{zone.availability_zone}" for zone in plan.network.zones)


def _addon(name: str) -> str:
    return f"{name} with all objects of its resource types"


def allowed_in(plan: Plan) -> str:
    """Return where a user writes `allowReplace`."""
    return f"environments.{plan.environment} of stacks/{plan.organization}.yaml"


def _group(group: GroupPlan | RestrictedGroupPlan) -> str:
    types = " or ".join(group.spec.types)
    count = "Karpenter's count" if group.autoscaled else str(group.spec.instance_count)
    return f"{group.spec.name} {count} × {types}"
