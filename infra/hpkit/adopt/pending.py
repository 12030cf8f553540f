"""Resources that a killed `up` might have created: each unfinished creation in a state, with its live ID.

The engine only knows that it began to create something. The next `up` would create a second VPC, key or file system,
and AWS would reject a second role, bucket or cluster with the same name. Some resources aren't looked for: those whose
creation can be repeated without harm (policies of roles, settings of buckets, rules of EventBridge, topics), those that
the plugin `hyperpod` finds itself, and patches of Kubernetes objects, which are applied again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hpkit.adopt.imports import object_name

if TYPE_CHECKING:
    import boto3

__all__ = ["Unfinished", "find_ids", "is_looked_for", "unfinished", "with_found"]

_Props = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An unfinished creation in the state; tags: those that the live resource would have."""

    urn: str
    type: str
    inputs: Mapping[str, Any]
    tags: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return the resource's type and name, as messages have them."""
        return f"{self.type.rpartition(':')[2]} {self.urn.rpartition('::')[2]}"


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
    "aws:ec2/internetGateway:InternetGateway": (
        "describe_internet_gateways",
        "InternetGateways",
        "InternetGatewayId",
    ),
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
    """Return the unfinished creations of an exported state."""
    deployment = state["deployment"] or {}
    provided = {
        f"{resource['urn']}::{resource.get('id')}": _default_tags(resource.get("inputs") or {})
        for resource in deployment.get("resources") or ()
        if resource["type"] == "pulumi:providers:aws"
    }
    operations = deployment.get("pending_operations") or ()
    return tuple(_unfinished(each["resource"], provided) for each in operations if each["type"] == "creating")


def _unfinished(entry: Mapping[str, Any], provided: Mapping[str, Mapping[str, str]]) -> Unfinished:
    """Return a resource of a state; provided: the tags that each provider adds."""
    inputs = entry.get("inputs") or {}
    tags = {**provided.get(entry.get("provider", ""), {}), **(inputs.get("tags") or {})}
    return Unfinished(entry["urn"], entry["type"], inputs, tags)


def _default_tags(inputs: _Props) -> Mapping[str, str]:
    stated = inputs.get("defaultTags") or {}
    found = json.loads(stated) if isinstance(stated, str) else stated
    return found.get("tags") or {}


def find_ids(session: boto3.Session, creations: Sequence[Unfinished], state: Mapping[str, Any]) -> dict[str, str]:
    """Return URN → ID of the resources that a killed run might have created. Raises botocore's ClientError.

    IDs that are already in the state belong to other resources. If an ID consists of inputs, a refresh finds out
    whether the resource exists. Raises ValueError if several live resources match.
    """
    recorded_ids = {each.get("id") for each in state["deployment"]["resources"]}
    ids_by_urn = {}
    for creation in creations:
        if creation.type in _NAMED:
            ids_by_urn[creation.urn] = _NAMED[creation.type].format_map(creation.inputs)
        elif _is_object(creation.type):
            ids_by_urn[creation.urn] = object_name(creation.inputs)
        elif is_looked_for(creation.type):
            find = _LISTED.get(creation.type, _find_tagged)
            ids = [one for one in find(session, creation) if one not in recorded_ids]
            if len(ids) > 1:
                raise ValueError(f"{creation.name} could be any of {', '.join(sorted(ids))}")
            if ids:
                ids_by_urn[creation.urn] = ids[0]
    return ids_by_urn


def is_looked_for(resource_type: str) -> bool:
    """Return whether a live resource of this type would be found."""
    return resource_type in (_NAMED.keys() | _TAGGED.keys() | _LISTED.keys()) or _is_object(resource_type)


def _is_object(resource_type: str) -> bool:
    return resource_type.startswith("kubernetes:") and not resource_type.endswith("Patch")


def with_found(state: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """Return a state with the found resources, and without unfinished operations."""
    deployment = state["deployment"]
    added = [
        {**operation["resource"], "id": ids[operation["resource"]["urn"]], "outputs": {}}
        for operation in deployment.get("pending_operations") or ()
        if operation["type"] == "creating" and operation["resource"]["urn"] in ids
    ]
    resources = [*deployment["resources"], *added]
    return {**state, "deployment": {**deployment, "resources": resources, "pending_operations": []}}


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


def _find_rules(session: boto3.Session, creation: Unfinished) -> list[str]:
    """Return the rules of the group that allow the same."""
    inputs = creation.inputs
    group = [{"Name": "group-id", "Values": [inputs["securityGroupId"]]}]
    pages = session.client("ec2").get_paginator("describe_security_group_rules").paginate(Filters=group)
    allowed = (
        "Egress" in creation.type,
        inputs["ipProtocol"],
        inputs.get("cidrIpv4"),
        inputs.get("referencedSecurityGroupId"),
        inputs.get("fromPort", -1),
    )
    return [
        rule["SecurityGroupRuleId"]
        for page in pages
        for rule in page["SecurityGroupRules"]
        if allowed
        == (
            rule["IsEgress"],
            rule["IpProtocol"],
            rule.get("CidrIpv4"),
            rule.get("ReferencedGroupInfo", {}).get("GroupId"),
            rule.get("FromPort", -1),
        )
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
    keys = [each["KeyId"] for page in client.get_paginator("list_keys").paginate() for each in page["Keys"]]
    metadata = [client.describe_key(KeyId=key)["KeyMetadata"] for key in keys]
    return [
        key["KeyId"]
        for key in metadata
        if key.get("Description") == creation.inputs.get("description") and key["KeyState"] != "PendingDeletion"
    ]


def _find_associations(session: boto3.Session, creation: Unfinished) -> list[str]:
    cluster, inputs = creation.inputs["clusterName"], creation.inputs
    pages = (
        session.client("eks")
        .get_paginator("list_pod_identity_associations")
        .paginate(clusterName=cluster, namespace=inputs["namespace"], serviceAccount=inputs["serviceAccount"])
    )
    return [f"{cluster},{each['associationId']}" for page in pages for each in page["associations"]]


def _find_prometheus(session: boto3.Session, creation: Unfinished) -> list[str]:
    pages = session.client("amp").get_paginator("list_workspaces").paginate(alias=creation.inputs["alias"])
    return [each["workspaceId"] for page in pages for each in page["workspaces"]]


def _find_prometheus_rules(session: boto3.Session, creation: Unfinished) -> list[str]:
    inputs = creation.inputs
    pages = (
        session.client("amp").get_paginator("list_rule_groups_namespaces").paginate(workspaceId=inputs["workspaceId"])
    )
    return [each["arn"] for page in pages for each in page["ruleGroupsNamespaces"] if each["name"] == inputs["name"]]


def _find_grafana(session: boto3.Session, creation: Unfinished) -> list[str]:
    pages = session.client("grafana").get_paginator("list_workspaces").paginate()
    return [each["id"] for page in pages for each in page["workspaces"] if each["name"] == creation.inputs["name"]]


def _find_file_systems(session: boto3.Session, creation: Unfinished) -> list[str]:
    pages = session.client("fsx").get_paginator("describe_file_systems").paginate()
    return [
        file_system["FileSystemId"]
        for page in pages
        for file_system in page["FileSystems"]
        if creation.tags.items() <= {tag["Key"]: tag["Value"] for tag in file_system.get("Tags", ())}.items()
    ]


_LISTED: Final[Mapping[str, Callable[[Any, Unfinished], list[str]]]] = {
    "aws:amp/ruleGroupNamespace:RuleGroupNamespace": _find_prometheus_rules,
    "aws:amp/workspace:Workspace": _find_prometheus,
    "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": _find_ranges,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _find_associations,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _find_file_systems,
    "aws:grafana/workspace:Workspace": _find_grafana,
    "aws:kms/key:Key": _find_keys,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _find_rules,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _find_rules,
}
