"""Everything on an endpoint, by service: after a stack is destroyed, none of its resources may exist."""

from tests.endpoint import RunningEndpoint

__all__ = ["inventory"]

# Service, operation, member of the response, key of an entry (none: entries are names).
_LISTS = (
    ("ec2", "describe_vpcs", "Vpcs", "VpcId"),
    ("ec2", "describe_subnets", "Subnets", "SubnetId"),
    ("ec2", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    ("ec2", "describe_addresses", "Addresses", "AllocationId"),
    ("ec2", "describe_route_tables", "RouteTables", "RouteTableId"),
    ("ec2", "describe_security_groups", "SecurityGroups", "GroupId"),
    ("ec2", "describe_security_group_rules", "SecurityGroupRules", "SecurityGroupRuleId"),
    ("s3", "list_buckets", "Buckets", "Name"),
    ("iam", "list_roles", "Roles", "RoleName"),
    ("iam", "list_open_id_connect_providers", "OpenIDConnectProviderList", "Arn"),
    ("kms", "list_aliases", "Aliases", "AliasName"),
    ("logs", "describe_log_groups", "logGroups", "logGroupName"),
    ("eks", "list_clusters", "clusters", ""),
    ("ecr", "describe_repositories", "repositories", "repositoryName"),
    ("fsx", "describe_file_systems", "FileSystems", "FileSystemId"),
    ("amp", "list_workspaces", "workspaces", "workspaceId"),
    ("events", "list_rules", "Rules", "Name"),
    ("sns", "list_topics", "Topics", "TopicArn"),
    ("sns", "list_subscriptions", "Subscriptions", "SubscriptionArn"),
    ("grafana", "list_workspaces", "workspaces", "id"),
)


def inventory(endpoint: RunningEndpoint) -> dict[str, list[str]]:
    """Return IDs by operation, without resources that AWS keeps for a while in a final state."""
    inventory = {}
    for service, operation, member, key in _LISTS:
        entries = getattr(endpoint.client(service), operation)()[member]
        inventory[f"{service}.{operation}"] = sorted(entry[key] if key else entry for entry in entries)
    ec2, iam, kms = (endpoint.client(service) for service in ("ec2", "iam", "kms"))
    gone = ("deleted", "deleting")
    endpoints = ec2.describe_vpc_endpoints()["VpcEndpoints"]
    inventory["endpoints"] = [each["VpcEndpointId"] for each in endpoints if each["State"].lower() not in gone]
    gateways = ec2.describe_nat_gateways()["NatGateways"]
    inventory["gateways"] = [each["NatGatewayId"] for each in gateways if each["State"] not in gone]
    inventory["policies"] = [each["Arn"] for each in iam.list_policies(Scope="Local")["Policies"]]
    keys = [kms.describe_key(KeyId=each["KeyId"])["KeyMetadata"] for each in kms.list_keys()["Keys"]]
    inventory["keys"] = [each["KeyId"] for each in keys if each["KeyState"] != "PendingDeletion"]
    return inventory
