"""A recording as a tree for people and tools: components, their resources, and details of some.

The program determines which resources exist, and in which component. The tables here add the details. A type without an
entry is shown like any other, without details.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from hpkit.plan.capacity import rounding
from hpkit.plan.model import GroupPlan, Plan, QuotaResource, RestrictedGroupPlan, TeamPlan
from hpkit.plan.names import short_type
from hpkit.program.recording.record import RecordedResource, Recording

__all__ = ["UNKNOWN_ACCOUNT", "TreeItem", "tree_of"]

# Only AWS knows it; it's as long as an account ID, because long names are cut to leave room for it.
UNKNOWN_ACCOUNT: Final = "<account-id>"
_COMPONENT: Final = "hpkit:index:"
_PROVIDER: Final = "pulumi:providers:"
# The order in which a platform is explained; other components come last.
_COMPONENTS: Final = (
    *("network", "storage", "identity", "eks", "registry", "addons", "dependencies", "hyperpod", "observability"),
    *("node-addons", "autoscaling", "governance", "scheduling", "team-volumes", "access"),
)


@dataclass(frozen=True, slots=True)
class TreeItem:
    """One resource (kind is its type in short) or, with an empty kind, a component or a part of a resource.

    - name: what its API calls it, where the program names it, else its name in the program.
    - detail: its important settings.
    - wiring: it only connects others.
    """

    kind: str
    name: str
    detail: str = ""
    children: tuple["TreeItem", ...] = field(default=())
    wiring: bool = False

    @property
    def resources(self) -> int:
        """Return the number of resources in the tree; components and parts are none."""
        return (1 if self.kind else 0) + sum(child.resources for child in self.children)


def tree_of(recording: Recording) -> TreeItem:
    """Return the tree of everything that the program registers, in an order that is always the same."""
    plan = recording.plan
    by_parent: dict[str, list[RecordedResource]] = {}
    # What waits for nothing is registered in any order: by that, no two trees would be the same.
    for each in sorted(recording.resources.values(), key=_place):
        if not each.type.startswith(_PROVIDER):
            by_parent.setdefault(each.parent, []).append(each)
    children = tuple(_nodes(by_parent, "", plan))
    return TreeItem("", plan.stack, plan.spec.region, children)


def _place(resource: RecordedResource) -> tuple[int, str]:
    known = resource.name in _COMPONENTS
    return (_COMPONENTS.index(resource.name) if known else len(_COMPONENTS)), resource.name


def _nodes(by_parent: Mapping[str, list[RecordedResource]], parent: str, plan: Plan) -> Iterator[TreeItem]:
    """Yield the resources under a parent, sorted by type and name, then the components in the program's order."""
    registered = by_parent.get(parent, [])
    resources = [each for each in registered if not each.type.startswith(_COMPONENT)]
    yield from (_node(each, plan) for each in sorted(resources, key=_order))
    for component in registered:
        if component.type.startswith(_COMPONENT):
            children = tuple(_nodes(by_parent, component.urn, plan))
            if any(child.resources for child in children):
                yield TreeItem("", component.name, "", children)


def _order(resource: RecordedResource) -> tuple[int, str, str]:
    return _RANKS.get(resource.type, len(_RANKS)), resource.type, _name(resource)


def _node(resource: RecordedResource, plan: Plan) -> TreeItem:
    says = _DETAILS.get(resource.type)
    detail = says(resource.inputs, plan) if says is not None else ""
    parts = _PARTS.get(resource.type)
    children = tuple(parts(resource, plan)) if parts is not None else ()
    return TreeItem(short_type(resource.type), _name(resource), detail, children, wiring=says is None)


def _name(resource: RecordedResource) -> str:
    inputs = resource.inputs
    if resource.type in _NAMED_BY_PROGRAM:
        return resource.name
    metadata = inputs.get("metadata")
    if isinstance(metadata, Mapping) and "name" in metadata:
        return str(metadata["name"])
    names = (inputs.get(key) for key in ("name", "bucket", "addonName", "principalArn", "alias", "clusterName"))
    tags = inputs.get("tags")
    tagged = tags.get("Name") if isinstance(tags, Mapping) else None
    return str(next((name for name in (*names, tagged) if isinstance(name, str) and name), resource.name))


# The API's name for these means less than the name in the program, or is another resource's name.
_NAMED_BY_PROGRAM: Final = frozenset(
    {
        "aws:ec2/subnet:Subnet",
        "aws:ec2/natGateway:NatGateway",
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
        "aws:eks/podIdentityAssociation:PodIdentityAssociation",
        "aws:s3/bucketObjectv2:BucketObjectv2",
        "hyperpod:index:AutoscaledGroup",
    }
)


def _shown(key: str, words: str = "{}") -> Callable[[Mapping[str, Any], Plan], str]:
    def say(inputs: Mapping[str, Any], _plan: Plan) -> str:
        value = inputs.get(key)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return "" if value in (None, "") else words.format(value)

    return say


def _lustre(inputs: Mapping[str, Any], plan: Plan) -> str:
    storage = plan.spec.storage
    zone = storage.lustre.availability_zone if storage and storage.lustre else ""
    speed = f"{inputs['perUnitStorageThroughput']:g} MB/s for each TiB"
    return f"{inputs['storageCapacity']:g} GiB, {speed}, in {zone}"


def _eks(inputs: Mapping[str, Any], plan: Plan) -> str:
    reach = "public, restricted" if plan.spec.eks.endpoint.public else "private"
    return f"Kubernetes {inputs['version']}, {reach}"


def _entry(inputs: Mapping[str, Any], plan: Plan) -> str:
    principal = inputs["principalArn"]
    teams = [team.name for team in plan.teams if principal in team.spec.members]
    parts = ["administrator"] if principal in plan.spec.eks.administrators else []
    parts += ["viewer"] if principal in plan.spec.eks.viewers else []
    return "; ".join([*parts, *([f"data scientist of {', '.join(teams)}"] if teams else [])])


def _groups(resource: RecordedResource, plan: Plan) -> Iterator[TreeItem]:
    members = ("instanceGroups", "restrictedInstanceGroups")
    registered = {group["instanceGroupName"] for each in members for group in resource.inputs.get(each) or ()}
    yield from (
        TreeItem("", group.spec.name, _group(group)) for group in plan.own_groups if group.spec.name in registered
    )


def _group(group: GroupPlan | RestrictedGroupPlan) -> str:
    spec = group.spec
    count = "Karpenter" if group.autoscaled else str(spec.instance_count)
    kind = ", Spot" if spec.is_spot else ", restricted" if isinstance(group, RestrictedGroupPlan) else ""
    return f"{count} × {' | '.join(spec.types)} in {', '.join(group.zones) or 'no zone'}{kind}"


def _node_pool(inputs: Mapping[str, Any], plan: Plan) -> str:
    types = next(pool.instance_types for pool in plan.node_pools if pool.spec.name == inputs["metadata"]["name"])
    limits = ", ".join(f"{key} {value}" for key, value in sorted(inputs["spec"].get("limits", {}).items()))
    return f"{', '.join(types) or 'no type'}; {limits or 'no limits'}"


def _deployment(inputs: Mapping[str, Any], _plan: Plan) -> str:
    spec = inputs["spec"]
    requests = spec["template"]["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return f"{spec['replicas']:g} × {', '.join(f'{key} {value}' for key, value in sorted(requests.items()))}"


def _policy(inputs: Mapping[str, Any], plan: Plan) -> str:
    config = inputs["schedulerConfig"]
    order = plan.policy.task_prioritization if plan.policy else ""
    sharing = config.get("idleResourceSharing")
    return f"{order}, fair share {config['fairShare']}, idle sharing {sharing}"


def _classes(resource: RecordedResource, _plan: Plan) -> Iterator[TreeItem]:
    for each in resource.inputs["schedulerConfig"].get("priorityClasses", ()):
        yield TreeItem("", each["name"], f"weight {each['weight']:g}")


def _quota(inputs: Mapping[str, Any], plan: Plan) -> str:
    team = _team(inputs, plan)
    pool = "shared pool, " if team.is_shared_pool else ""
    limit = f" {team.spec.sharing.borrow_limit}%" if team.spec.sharing.borrow_limit is not None else ""
    return f"{pool}{team.spec.sharing.strategy}{limit}, weight {team.spec.fair_share_weight}, {team.namespace}"


def _quota_resources(resource: RecordedResource, plan: Plan) -> Iterator[TreeItem]:
    yield from (
        TreeItem("", quota_resource.instance_type, _quota_resource(quota_resource, plan))
        for quota_resource in _team(resource.inputs, plan).quota_resources
    )


def _team(inputs: Mapping[str, Any], plan: Plan) -> TeamPlan:
    return next(team for team in plan.teams if team.name == inputs["computeQuotaTarget"]["teamName"])


def _quota_resource(quota_resource: QuotaResource, plan: Plan) -> str:
    rounded = rounding(quota_resource, plan.capacity.get(quota_resource.instance_type))
    partition = quota_resource.partition
    amounts = {
        "instance" if quota_resource.count == 1 else "instances": quota_resource.count,
        "accelerator" if quota_resource.accelerators == 1 else "accelerators": quota_resource.accelerators,
        f"× {partition.type}" if partition else "": partition.count if partition else None,
        "vCPU": quota_resource.v_cpu,
        "GiB": quota_resource.memory_in_gib,
    }
    parts = [f"{_number(value)} {unit}" for unit, value in amounts.items() if value is not None]
    if rounded:
        parts.append(rounded)
    elif quota_resource.share is not None:
        parts.append(f"{_number(quota_resource.share * 100)}%")
    return ", ".join(parts) + (", elastic" if quota_resource.elastic else "")


def _number(value: Fraction | int) -> str:
    return f"{float(value):g}"


# Type → its details, in the order in which they are shown. A type with empty details only connects others, and is
# counted where space is short.
_DETAILS: Final[dict[str, Callable[[Mapping[str, Any], Plan], str]]] = {
    "aws:ec2/vpc:Vpc": _shown("cidrBlock"),
    "aws:ec2/subnet:Subnet": (
        lambda inputs, _: f"{inputs.get('cidrBlock', '')} in {inputs.get('availabilityZone', '')}"
    ),
    "aws:ec2/natGateway:NatGateway": lambda *_: "",
    "aws:ec2/vpcEndpoint:VpcEndpoint": _shown("vpcEndpointType"),
    "aws:ec2/securityGroup:SecurityGroup": _shown("description"),
    "aws:s3/bucket:Bucket": lambda *_: "",
    "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre,
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": _shown("dataRepositoryPath"),
    "aws:ecr/repository:Repository": lambda *_: "",
    "aws:iam/role:Role": _shown("description"),
    "aws:kms/key:Key": _shown("description"),
    "aws:cloudwatch/logGroup:LogGroup": _shown("retentionInDays", "{} days"),
    "aws:eks/cluster:Cluster": _eks,
    "aws:eks/accessEntry:AccessEntry": _entry,
    "aws:eks/addon:Addon": lambda inputs, _: str(inputs.get("addonVersion") or "EKS's default version"),
    "kubernetes:helm.sh/v3:Release": (
        lambda inputs, _: f"{inputs.get('chart', '')} {inputs.get('version', '')}".strip()
    ),
    "hyperpod:index:Cluster": (
        lambda _, plan: f"continuous provisioning, node recovery {plan.spec.cluster.node_recovery}"
    ),
    "kubernetes:karpenter.sagemaker.amazonaws.com/v1:HyperpodNodeClass": (
        lambda inputs, _: ", ".join(inputs["spec"]["instanceGroups"])
    ),
    "kubernetes:karpenter.sh/v1:NodePool": _node_pool,
    "kubernetes:apps/v1:Deployment": _deployment,
    "hyperpod:index:ClusterSchedulerConfig": _policy,
    "hyperpod:index:ComputeQuota": _quota,
    "aws:amp/workspace:Workspace": lambda *_: "",
    "aws:grafana/workspace:Workspace": lambda *_: "",
}
_RANKS: Final = {token: rank for rank, token in enumerate(_DETAILS)}
_PARTS: Final[dict[str, Callable[[RecordedResource, Plan], Iterator[TreeItem]]]] = {
    "hyperpod:index:Cluster": _groups,
    "hyperpod:index:ClusterSchedulerConfig": _classes,
    "hyperpod:index:ComputeQuota": _quota_resources,
}
