"""Resources that a killed `up` might have created: each unfinished creation, with its live ID.

The engine only knows that it began to create something. The next `up` would create a second VPC, key or file system,
and AWS would reject a second role, bucket or cluster with the same name. Some resources aren't looked for: those whose
creation can be repeated without harm (policies of roles, settings of buckets, rules of EventBridge), and
patches of Kubernetes objects, which are applied again. The plugin `hyperpod` would find its own resources in the next
`up`, but they would block a deletion.

If `up` already ran again, the first resource is an orphan. The state can contain it as one to delete, which the next
`up` does, and repeats if it fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hpkit.adopt.owned import is_missing, is_owned, tags_of

if TYPE_CHECKING:
    import boto3

__all__ = [
    "Unfinished",
    "default_tags_of",
    "find_ids",
    "is_looked_for",
    "is_object",
    "own_tags_of",
    "unfinished",
    "with_found",
]

_Props = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An unfinished creation.

    - tags: those that the live resource would have.
    - entry: the resource as the state would contain it, without ID and outputs.
    - is_pending: whether the state contains the unfinished creation.
    - recorded_id: ID of the resource in the state that has its URN, "" for none.
    """

    urn: str
    type: str
    inputs: Mapping[str, Any]
    tags: Mapping[str, str]
    entry: Mapping[str, Any]
    is_pending: bool = True
    recorded_id: str = ""

    @property
    def can_be_deleted(self) -> bool:
        """Return whether nothing is lost with the resource if another one replaced it."""
        return self.type in _TAGGED

    @property
    def name(self) -> str:
        """Return the resource's type and name, as messages have them."""
        return f"{self.type.rpartition(':')[2]} {self.urn.rpartition('::')[2]}"

    def is_tagged(self, live_tags: Mapping[str, str]) -> bool:
        """Return whether a live resource with these tags could be it."""
        return self.tags.items() <= live_tags.items()


# IDs that consist of inputs. Formats: "Import" in the pages of the Pulumi registry.
_NAMED: Final[Mapping[str, str]] = {
    "aws:amp/alertManagerDefinition:AlertManagerDefinition": "{workspaceId}",
    "aws:cloudwatch/logGroup:LogGroup": "{name}",
    "aws:ec2/route:Route": "{routeTableId}_{destinationCidrBlock}",
    "aws:ec2/routeTableAssociation:RouteTableAssociation": "{subnetId}/{routeTableId}",
    "aws:ecr/repository:Repository": "{name}",
    "aws:eks/accessEntry:AccessEntry": "{clusterName}:{principalArn}",
    "aws:eks/addon:Addon": "{clusterName}:{addonName}",
    "aws:eks/cluster:Cluster": "{name}",
    "aws:iam/role:Role": "{name}",
    "aws:s3/bucket:Bucket": "{bucket}",
}
# EC2 resources carry their name as a tag: type → operation, member of its result, member with the ID.
_TAGGED: Final[Mapping[str, tuple[str, str, str]]] = {
    "aws:ec2/eip:Eip": ("describe_addresses", "Addresses", "AllocationId"),
    "aws:ec2/internetGateway:InternetGateway": ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    "aws:ec2/natGateway:NatGateway": ("describe_nat_gateways", "NatGateways", "NatGatewayId"),
    "aws:ec2/routeTable:RouteTable": ("describe_route_tables", "RouteTables", "RouteTableId"),
    "aws:ec2/securityGroup:SecurityGroup": ("describe_security_groups", "SecurityGroups", "GroupId"),
    "aws:ec2/subnet:Subnet": ("describe_subnets", "Subnets", "SubnetId"),
    "aws:ec2/vpc:Vpc": ("describe_vpcs", "Vpcs", "VpcId"),
    "aws:ec2/vpcEndpoint:VpcEndpoint": ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
}
# A deleted NAT gateway is listed for an hour.
_GONE: Final = frozenset({"deleted", "deleting", "failed"})


def unfinished(state: Mapping[str, Any]) -> tuple[Unfinished, ...]:
    """Return the unfinished creations of an exported state.

    A resource without outputs is one, too: an interrupted recovery added it, and didn't read it.
    """
    deployment = state["deployment"] or {}
    resources = deployment.get("resources") or ()
    provided = {
        f"{resource['urn']}::{resource.get('id')}": default_tags_of(resource.get("inputs") or {})
        for resource in resources
        if resource["type"] == "pulumi:providers:aws"
    }
    recorded = {entry["urn"]: entry.get("id", "") for entry in resources if not entry.get("delete")}
    unread = [each for each in resources if is_looked_for(each["type"]) and not each.get("outputs")]
    # By URN: a creation that is killed twice is in the state twice.
    entries = {each["urn"]: each for each in (*(each["resource"] for each in _creations(deployment)), *unread)}
    return tuple(_unfinished(entry, provided, recorded.get(urn, "")) for urn, entry in entries.items())


def _creations(deployment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in deployment.get("pending_operations") or () if each["type"] == "creating"]


def _unfinished(entry: Mapping[str, Any], provided: Mapping[str, Mapping[str, str]], recorded_id: str) -> Unfinished:
    """Return a resource of a state; provided: the tags that each provider adds."""
    inputs = entry.get("inputs") or {}
    tags = {**provided.get(entry.get("provider", ""), {}), **own_tags_of(inputs)}
    return Unfinished(entry["urn"], entry["type"], inputs, tags, entry, recorded_id=recorded_id)


def own_tags_of(inputs: _Props) -> Mapping[str, str]:
    """Return the tags that a resource's inputs state: a map, or a list in resources of the plugin `hyperpod`."""
    tags = inputs.get("tags") or {}
    return tags if isinstance(tags, Mapping) else {tag["key"]: tag["value"] for tag in tags}


def default_tags_of(inputs: _Props) -> Mapping[str, str]:
    """Return the tags that a provider with these inputs adds to each resource."""
    stated = inputs.get("defaultTags") or {}
    found = json.loads(stated) if isinstance(stated, str) else stated
    return found.get("tags") or {}


def find_ids(session: boto3.Session, creations: Sequence[Unfinished], state: Mapping[str, Any]) -> dict[str, str]:
    """Return URN → ID of the AWS resources that a killed run might have created. Raises botocore's ClientError.

    IDs that are already in the state belong to other resources. Raises ValueError if several live resources match.
    """
    # With the type: settings of a bucket have the bucket's ID.
    recorded_ids = {(each["type"], each.get("id")) for each in state["deployment"]["resources"]}
    ids_by_urn = {}
    for creation in creations:
        ids = [one for one in _find(session, creation) if (creation.type, one) not in recorded_ids]
        if len(ids) > 1:
            raise ValueError(f"{creation.name} could be any of {', '.join(sorted(ids))}")
        if ids:
            ids_by_urn[creation.urn] = ids[0]
    return ids_by_urn


def _find(session: boto3.Session, creation: Unfinished) -> Sequence[str]:
    from botocore.exceptions import ClientError

    if creation.type in _NAMED:
        is_it = not creation.recorded_id and is_owned(session, creation.type, creation.inputs, creation.tags)
        return [_NAMED[creation.type].format_map(creation.inputs)] if is_it else []
    if is_object(creation.type) or not is_looked_for(creation.type):
        return []
    try:
        return _LISTED.get(creation.type, _find_tagged)(session, creation)
    except ClientError as error:
        if is_missing(error):
            return []
        raise


def is_looked_for(resource_type: str) -> bool:
    """Return whether a live resource of this type would be found."""
    return resource_type in (_NAMED.keys() | _TAGGED.keys() | _LISTED.keys()) or is_object(resource_type)


def is_object(resource_type: str) -> bool:
    """Return whether resources of this type are Kubernetes objects or releases, and not patches of objects."""
    return resource_type.startswith("kubernetes:") and not resource_type.endswith("Patch")


def with_found(
    state: Mapping[str, Any],
    creations: Sequence[Unfinished],
    ids: Mapping[str, str],
    outputs: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return a state with the found resources; outputs: by URN, those that a refresh needs.

    If the refresh is interrupted, the missing outputs show the next recovery what is still to be read.
    """
    deployment = state["deployment"]
    added = [
        _found(creation, ids[creation.urn], outputs.get(creation.urn, {}))
        for creation in creations
        if _is_added(creation, ids)
    ]
    resources = [*deployment["resources"], *added]
    return {**state, "deployment": {**deployment, "resources": resources, "pending_operations": []}}


def _is_added(creation: Unfinished, ids: Mapping[str, str]) -> bool:
    return creation.urn in ids and (not creation.recorded_id or creation.can_be_deleted)


def _found(creation: Unfinished, id_: str, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a found resource as the state contains it: an orphan as one to delete."""
    if not creation.recorded_id:
        return {**creation.entry, "id": id_, "outputs": outputs}
    return {**creation.entry, "id": id_, "outputs": {**creation.inputs, "id": id_}, "delete": True, "protect": False}


def _find_tagged(session: boto3.Session, creation: Unfinished) -> list[str]:
    """Return the resources of the VPC, where the type has one, with all the tags; none if it would have no name."""
    operation, member, key = _TAGGED[creation.type]
    filters = [{"Name": f"tag:{name}", "Values": [value]} for name, value in creation.tags.items()]
    if "Name" not in creation.tags:
        return []
    vpc = creation.inputs.get("vpcId")
    return [
        entry[key]
        for entry in getattr(session.client("ec2"), operation)(Filters=filters)[member]
        if vpc in (None, entry.get("VpcId", vpc)) and str(entry.get("State")).lower() not in _GONE
    ]


def _entries(session: boto3.Session, service: str, operation: str, member: str, **query: Any) -> Iterator[_Props]:
    for page in session.client(service).get_paginator(operation).paginate(**query):
        yield from page[member]


def _find_rules(session: boto3.Session, creation: Unfinished) -> list[str]:
    """Return the rules of the group that allow the same."""
    inputs = creation.inputs
    group = [{"Name": "group-id", "Values": [inputs["securityGroupId"]]}]
    same = {
        "IsEgress": "Egress" in creation.type,
        "IpProtocol": inputs["ipProtocol"],
        "CidrIpv4": inputs.get("cidrIpv4"),
        "FromPort": inputs.get("fromPort", -1),
    }
    rules = _entries(session, "ec2", "describe_security_group_rules", "SecurityGroupRules", Filters=group)
    return [
        rule["SecurityGroupRuleId"]
        for rule in rules
        if all(value == {"FromPort": -1, **rule}.get(name) for name, value in same.items())
        and rule.get("ReferencedGroupInfo", {}).get("GroupId") == inputs.get("referencedSecurityGroupId")
    ]


def _find_ranges(session: boto3.Session, creation: Unfinished) -> list[str]:
    vpcs = session.client("ec2").describe_vpcs(VpcIds=[creation.inputs["vpcId"]])["Vpcs"]
    return [
        association["AssociationId"]
        for vpc in vpcs
        for association in vpc["CidrBlockAssociationSet"]
        if association["CidrBlock"] == creation.inputs["cidrBlock"]
        and association["CidrBlockState"]["State"] == "associated"
    ]


def _find_keys(session: boto3.Session, creation: Unfinished) -> list[str]:
    client = session.client("kms")
    keys = [each["KeyId"] for each in _entries(session, "kms", "list_keys", "Keys")]
    metadata = [client.describe_key(KeyId=key)["KeyMetadata"] for key in keys]
    return [
        key["KeyId"]
        for key in metadata
        if key.get("Description") == creation.inputs.get("description")
        and key["KeyState"] != "PendingDeletion"
        and creation.is_tagged(
            {tag["TagKey"]: tag["TagValue"] for tag in client.list_resource_tags(KeyId=key["KeyId"])["Tags"]}
        )
    ]


def _find_associations(session: boto3.Session, creation: Unfinished) -> list[str]:
    query = {name: creation.inputs[name] for name in ("clusterName", "namespace", "serviceAccount")}
    found = _entries(session, "eks", "list_pod_identity_associations", "associations", **query)
    return [f"{query['clusterName']},{each['associationId']}" for each in found]


def _find_prometheus(session: boto3.Session, creation: Unfinished) -> list[str]:
    found = _entries(session, "amp", "list_workspaces", "workspaces", alias=creation.inputs["alias"])
    return [each["workspaceId"] for each in found if creation.is_tagged(each["tags"])]


def _find_prometheus_rules(session: boto3.Session, creation: Unfinished) -> list[str]:
    workspace = creation.inputs["workspaceId"]
    found = _entries(session, "amp", "list_rule_groups_namespaces", "ruleGroupsNamespaces", workspaceId=workspace)
    return [each["arn"] for each in found if each["name"] == creation.inputs["name"]]


def _find_grafana(session: boto3.Session, creation: Unfinished) -> list[str]:
    name = creation.inputs["name"]
    named = (each for each in _entries(session, "grafana", "list_workspaces", "workspaces") if each["name"] == name)
    return [each["id"] for each in named if creation.is_tagged(each["tags"])]


def _find_file_systems(session: boto3.Session, creation: Unfinished) -> list[str]:
    found = _entries(session, "fsx", "describe_file_systems", "FileSystems")
    return [each["FileSystemId"] for each in found if creation.is_tagged(tags_of(each.get("Tags", ())))]


def _find_links(session: boto3.Session, creation: Unfinished) -> list[str]:
    filters = [{"Name": "file-system-id", "Values": [creation.inputs["fileSystemId"]]}]
    found = _entries(session, "fsx", "describe_data_repository_associations", "Associations", Filters=filters)
    path = creation.inputs["fileSystemPath"]
    return [each["AssociationId"] for each in found if each["FileSystemPath"].rstrip("/") == path]


def _find_clusters(session: boto3.Session, creation: Unfinished) -> list[str]:
    client = session.client("sagemaker")
    arn = str(client.describe_cluster(ClusterName=creation.inputs["clusterName"])["ClusterArn"])
    return [arn] if creation.is_tagged(tags_of(client.list_tags(ResourceArn=arn)["Tags"])) else []


def _find_topics(session: boto3.Session, creation: Unfinished) -> list[str]:
    """Return the topic with the name and the tags: pulumi-aws doesn't create one that exists."""
    region, account = session.region_name, session.client("sts").get_caller_identity()["Account"]
    arn = f"arn:{session.get_partition_for_region(region)}:sns:{region}:{account}:{creation.inputs['name']}"
    tags = session.client("sns").list_tags_for_resource(ResourceArn=arn)["Tags"]
    return [arn] if creation.is_tagged(tags_of(tags)) else []


def _find_governance(operation: str, member: str, arn: str) -> Callable[[Any, Unfinished], list[str]]:
    def find(session: boto3.Session, creation: Unfinished) -> list[str]:
        """Return what the cluster has under this name; the API allows each name once."""
        cluster, name = creation.inputs["clusterArn"], creation.inputs["name"]
        found = _entries(session, "sagemaker", operation, member, ClusterArn=cluster)
        return [str(each[arn]) for each in found if each["Name"] == name]

    return find


_LISTED: Final[Mapping[str, Callable[[Any, Unfinished], list[str]]]] = {
    "aws:amp/ruleGroupNamespace:RuleGroupNamespace": _find_prometheus_rules,
    "aws:amp/workspace:Workspace": _find_prometheus,
    "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": _find_ranges,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _find_associations,
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": _find_links,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _find_file_systems,
    "aws:grafana/workspace:Workspace": _find_grafana,
    "aws:kms/key:Key": _find_keys,
    "aws:sns/topic:Topic": _find_topics,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _find_rules,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _find_rules,
    "hyperpod:index:Cluster": _find_clusters,
    "hyperpod:index:ClusterSchedulerConfig": _find_governance(
        "list_cluster_scheduler_configs", "ClusterSchedulerConfigSummaries", "ClusterSchedulerConfigArn"
    ),
    "hyperpod:index:ComputeQuota": _find_governance("list_compute_quotas", "ComputeQuotaSummaries", "ComputeQuotaArn"),
}
