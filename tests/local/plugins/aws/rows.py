"""One row per resource type: first inputs, an edit, and an edit that replaces; all tests use this stack."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ROWS", "Row", "references", "stack"]


@dataclass(frozen=True)
class Row:
    """A resource of the stack.

    `inputs` use Python's names; `${row.attribute}` is another row's output. `edit` can be done in place, `replace`
    can't; if a type has no such edit, `only` states why. `drift` is a manual change, given a client of a service and
    the row's outputs: the next refresh finds it, and the next `up` fixes it.
    """

    kind: str
    inputs: dict[str, Any]
    edit: dict[str, Any] = field(default_factory=dict)
    replace: dict[str, Any] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    only: str = ""
    drift: Callable[[Callable[[str], Any], dict[str, Any]], Any] | None = None


def _policy(**statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})


def _trust(service: str, *actions: str) -> str:
    return _policy(Principal={"Service": service}, Action=list(actions) or ["sts:AssumeRole"])


def _expire(days: int) -> str:
    selection = {"tagStatus": "untagged", "countType": "sinceImagePushed", "countUnit": "days", "countNumber": days}
    return json.dumps({"rules": [{"rulePriority": 1, "selection": selection, "action": {"type": "expire"}}]})


# EKS upgrades a cluster only if its role may use the key for its secrets.
READ = _policy(Action=["s3:GetObject", "kms:*"], Resource="*")
WRITE = _policy(Action=["s3:PutObject", "s3:GetObject", "kms:*"], Resource=["*"])
TAGS = {"Name": "first"}
TAGGED = {"tags": {"Name": "second", "more": "yes"}}
ZONES = {"a": "us-west-2a", "b": "us-west-2b"}
ALERT_MANAGER = "alertmanager_config: |\n  route: {receiver: first}\n  receivers: [{name: first}]\n"
RULES = "groups:\n- name: test\n  rules: []\n"

ROWS: dict[str, Row] = {
    "vpc": Row(
        "ec2.Vpc",
        {"cidr_block": "10.0.0.0/16", "enable_dns_hostnames": True, "tags": TAGS},
        {**TAGGED, "enable_dns_hostnames": False},
        {"cidr_block": "10.9.0.0/16"},
        drift=lambda aws, out: aws("ec2").modify_vpc_attribute(VpcId=out["id"], EnableDnsSupport={"Value": False}),
    ),
    "range": Row(
        "ec2.VpcIpv4CidrBlockAssociation",
        {"vpc_id": "${vpc.id}", "cidr_block": "10.1.0.0/16"},
        replace={"cidr_block": "10.2.0.0/16"},
        only="an association is what it is",
    ),
    "sub_a": Row(
        "ec2.Subnet",
        {"vpc_id": "${vpc.id}", "cidr_block": "10.0.0.0/24", "availability_zone": ZONES["a"], "tags": TAGS},
        {**TAGGED, "map_public_ip_on_launch": True},
        {"availability_zone": "us-west-2c"},
    ),
    "sub_b": Row(
        "ec2.Subnet",
        {"vpc_id": "${vpc.id}", "cidr_block": "10.1.0.0/24", "availability_zone": ZONES["b"]},
        TAGGED,
        {"cidr_block": "10.1.1.0/24"},
        after=("range",),
        drift=lambda aws, out: aws("ec2").create_tags(Resources=[out["id"]], Tags=[{"Key": "by", "Value": "hand"}]),
    ),
    "gateway": Row("ec2.InternetGateway", {"vpc_id": "${vpc.id}"}, TAGGED, only="nothing of it is fixed"),
    "address": Row("ec2.Eip", {"domain": "vpc"}, TAGGED, only="`domain` has one value"),
    "nat": Row(
        "ec2.NatGateway",
        {"subnet_id": "${sub_a.id}", "allocation_id": "${address.id}", "tags": TAGS},
        TAGGED,
        {"subnet_id": "${sub_b.id}"},
        after=("gateway",),
    ),
    "table": Row("ec2.RouteTable", {"vpc_id": "${vpc.id}"}, TAGGED, {"vpc_id": "vpc-other"}),
    "other_table": Row("ec2.RouteTable", {"vpc_id": "${vpc.id}"}, TAGGED, {"vpc_id": "vpc-other"}),
    "route": Row(
        "ec2.Route",
        {"route_table_id": "${table.id}", "destination_cidr_block": "0.0.0.0/0", "gateway_id": "${gateway.id}"},
        {"gateway_id": None, "nat_gateway_id": "${nat.id}"},
        {"destination_cidr_block": "192.168.0.0/16"},
    ),
    "use": Row(
        "ec2.RouteTableAssociation",
        {"route_table_id": "${table.id}", "subnet_id": "${sub_a.id}"},
        {"route_table_id": "${other_table.id}"},
        {"subnet_id": "${sub_b.id}"},
    ),
    "s3_endpoint": Row(
        "ec2.VpcEndpoint",
        {
            "vpc_id": "${vpc.id}",
            "service_name": "com.amazonaws.us-west-2.s3",
            "route_table_ids": ["${table.id}"],
            "policy": _policy(Principal="*", Action="*", Resource="*"),
        },
        {**TAGGED, "route_table_ids": ["${table.id}", "${other_table.id}"]},
        {"service_name": "com.amazonaws.us-west-2.dynamodb"},
    ),
    "eks_endpoint": Row(
        "ec2.VpcEndpoint",
        {
            "vpc_id": "${vpc.id}",
            "service_name": "com.amazonaws.us-west-2.eks",
            "vpc_endpoint_type": "Interface",
            "private_dns_enabled": True,
            "subnet_ids": ["${sub_a.id}"],
            "security_group_ids": ["${group.id}"],
        },
        TAGGED,
        {"vpc_id": "vpc-other"},
    ),
    "group": Row(
        "ec2.SecurityGroup",
        {"vpc_id": "${vpc.id}", "description": "nodes", "tags": TAGS},
        TAGGED,
        {"description": "others"},
    ),
    "inward": Row(
        "vpc.SecurityGroupIngressRule",
        {
            "security_group_id": "${group.id}",
            "referenced_security_group_id": "${group.id}",
            "ip_protocol": "tcp",
            "from_port": 443,
            "to_port": 443,
        },
        {"from_port": 80, "to_port": 80},
        {"security_group_id": "sg-other"},
        drift=lambda aws, out: aws("ec2").revoke_security_group_ingress(
            GroupId=out["securityGroupId"], SecurityGroupRuleIds=[out["id"]]
        ),
    ),
    "outward": Row(
        "vpc.SecurityGroupEgressRule",
        {"security_group_id": "${group.id}", "cidr_ipv4": "0.0.0.0/0", "ip_protocol": "-1"},
        {"cidr_ipv4": "10.0.0.0/8", "description": "inside"},
        {"security_group_id": "sg-other"},
    ),
    "bucket": Row(
        "s3.Bucket", {"bucket": "fake-scripts", "force_destroy": True, "tags": TAGS}, TAGGED, {"bucket": "others"}
    ),
    "versioning": Row(
        "s3.BucketVersioning",
        {"bucket": "${bucket.id}", "versioning_configuration": {"status": "Enabled"}},
        {"versioning_configuration": {"status": "Suspended"}},
        {"bucket": "others"},
        drift=lambda aws, out: aws("s3").put_bucket_versioning(
            Bucket=out["bucket"], VersioningConfiguration={"Status": "Enabled"}
        ),
    ),
    "encryption": Row(
        "s3.BucketServerSideEncryptionConfiguration",
        {
            "bucket": "${bucket.id}",
            "rules": [
                {"apply_server_side_encryption_by_default": {"sse_algorithm": "AES256"}, "bucket_key_enabled": False}
            ],
        },
        {
            "rules": [
                {
                    "apply_server_side_encryption_by_default": {
                        "sse_algorithm": "aws:kms",
                        "kms_master_key_id": "${key.arn}",
                    },
                    "bucket_key_enabled": True,
                }
            ]
        },
        {"bucket": "others"},
    ),
    "private": Row(
        "s3.BucketPublicAccessBlock",
        {"bucket": "${bucket.id}", "block_public_acls": True, "block_public_policy": True},
        {"ignore_public_acls": True},
        {"bucket": "others"},
        drift=lambda aws, out: aws("s3").delete_public_access_block(Bucket=out["bucket"]),
    ),
    "owned": Row(
        "s3.BucketOwnershipControls",
        {"bucket": "${bucket.id}", "rule": {"object_ownership": "BucketOwnerEnforced"}},
        {"rule": {"object_ownership": "BucketOwnerPreferred"}},
        {"bucket": "others"},
    ),
    "bucket_policy": Row(
        "s3.BucketPolicy",
        {"bucket": "${bucket.id}", "policy": _policy(Principal="*", Action="s3:GetObject", Resource="*")},
        {"policy": _policy(Principal="*", Action="s3:ListBucket", Resource="*")},
        {"bucket": "others"},
        after=("private",),
        drift=lambda aws, out: aws("s3").put_bucket_policy(
            Bucket=out["bucket"], Policy=_policy(Principal="*", Action="s3:*", Resource="*")
        ),
    ),
    "lifecycle": Row(
        "s3.BucketLifecycleConfiguration",
        {
            "bucket": "${bucket.id}",
            "rules": [
                {
                    "id": "old",
                    "status": "Enabled",
                    "filter": {"prefix": ""},
                    "noncurrent_version_expiration": {"noncurrent_days": 90},
                }
            ],
        },
        {"rules": [{"id": "all", "status": "Enabled", "filter": {"prefix": "x/"}, "expiration": {"days": 9}}]},
        {"bucket": "others"},
        after=("versioning",),
    ),
    "script": Row(
        "s3.BucketObjectv2",
        {"bucket": "${bucket.id}", "key": "a/on_create.sh", "content": "exit 0\n", "content_type": "text/plain"},
        {"content": "exit 1\n", **TAGGED},
        {"key": "b/on_create.sh"},
        after=("versioning",),
    ),
    "role": Row(
        "iam.Role",
        {"assume_role_policy": _trust("eks.amazonaws.com"), "description": "first", "tags": TAGS},
        {"assume_role_policy": _trust("eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession"), **TAGGED},
        {"path": "/other/"},
    ),
    "pod_role": Row(
        "iam.Role",
        {"name": "pods", "assume_role_policy": _trust("pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession")},
        {"description": "pods", "max_session_duration": 7200},
        {"name": "others"},
        drift=lambda aws, out: aws("iam").update_role(RoleName=out["name"], Description="x", MaxSessionDuration=3600),
    ),
    "grafana_role": Row(
        "iam.Role",
        {"assume_role_policy": _trust("grafana.amazonaws.com"), "force_detach_policies": True},
        {"description": "grafana"},
        {"name": "others"},
    ),
    "inline": Row(
        "iam.RolePolicy",
        {"role": "${role.id}", "name": "inline", "policy": READ},
        {"policy": WRITE},
        {"name": "other"},
    ),
    "attached": Row(
        "iam.RolePolicyAttachment",
        {"role": "${role.name}", "policy_arn": "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"},
        replace={"policy_arn": "arn:aws:iam::aws:policy/AmazonEKSServicePolicy"},
        only="an attachment is what it is",
        drift=lambda aws, out: aws("iam").detach_role_policy(RoleName=out["role"], PolicyArn=out["policyArn"]),
    ),
    "oidc": Row(
        "iam.OpenIdConnectProvider",
        {"url": "https://oidc.example.com/id", "client_id_lists": ["sts.amazonaws.com"]},
        {"client_id_lists": ["second", "third"], **TAGGED},
        {"url": "https://oidc.example.com/other"},
    ),
    "key": Row(
        "kms.Key",
        {"description": "secrets", "enable_key_rotation": True, "deletion_window_in_days": 7},
        {"description": "secrets and logs", "enable_key_rotation": False, **TAGGED},
        {"key_usage": "SIGN_VERIFY"},
        drift=lambda aws, out: aws("kms").enable_key_rotation(KeyId=out["id"]),
    ),
    "logs": Row(
        "cloudwatch.LogGroup",
        {"name": "/aws/eks/kube/cluster", "retention_in_days": 30, "kms_key_id": "${key.arn}"},
        {"retention_in_days": 90, **TAGGED},
        {"name": "/aws/eks/other/cluster"},
        drift=lambda aws, out: aws("logs").delete_retention_policy(logGroupName=out["name"]),
    ),
    "cluster": Row(
        "eks.Cluster",
        {
            "name": "kube",
            "version": "1.35",
            "role_arn": "${role.arn}",
            "access_config": {
                "authentication_mode": "API",
                "bootstrap_cluster_creator_admin_permissions": True,
            },
            "bootstrap_self_managed_addons": False,
            "enabled_cluster_log_types": ["api"],
            "encryption_config": {"provider": {"key_arn": "${key.arn}"}, "resources": ["secrets"]},
            "deletion_protection": False,
            "upgrade_policy": {"support_type": "STANDARD"},
            "vpc_config": {
                "subnet_ids": ["${sub_a.id}", "${sub_b.id}"],
                "security_group_ids": ["${group.id}"],
                "endpoint_private_access": True,
                "endpoint_public_access": False,
            },
        },
        {"version": "1.36", "enabled_cluster_log_types": ["api", "audit"], **TAGGED},
        {"kubernetes_network_config": {"service_ipv4_cidr": "192.168.0.0/16"}},
        after=("attached", "inline", "logs"),
        drift=lambda aws, out: aws("eks").update_cluster_config(
            name=out["name"], resourcesVpcConfig={"endpointPublicAccess": True}
        ),
    ),
    "addon": Row(
        "eks.Addon",
        {
            "cluster_name": "${cluster.name}",
            "addon_name": "vpc-cni",
            "resolve_conflicts_on_create": "OVERWRITE",
            "resolve_conflicts_on_update": "OVERWRITE",
        },
        {"configuration_values": '{"env": {"WARM_IP_TARGET": "2"}}', **TAGGED},
        {"addon_name": "kube-proxy"},
        drift=lambda aws, out: aws("eks").update_addon(
            clusterName=out["clusterName"], addonName=out["addonName"], configurationValues="{}"
        ),
    ),
    "entry": Row(
        "eks.AccessEntry",
        {"cluster_name": "${cluster.name}", "principal_arn": "arn:aws:iam::123456789012:role/person"},
        {"kubernetes_groups": ["team"], **TAGGED},
        {"principal_arn": "arn:aws:iam::123456789012:role/other"},
        drift=lambda aws, out: aws("eks").update_access_entry(
            clusterName=out["clusterName"], principalArn=out["principalArn"], kubernetesGroups=["others"]
        ),
    ),
    "rights": Row(
        "eks.AccessPolicyAssociation",
        {
            "cluster_name": "${cluster.name}",
            "principal_arn": "arn:aws:iam::123456789012:role/person",
            "policy_arn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
            "access_scope": {"type": "namespace", "namespaces": ["team"]},
        },
        replace={"access_scope": {"type": "cluster"}},
        after=("entry",),
        only="its scope cannot change in place",
    ),
    "pods": Row(
        "eks.PodIdentityAssociation",
        {
            "cluster_name": "${cluster.name}",
            "namespace": "team",
            "service_account": "jobs",
            "role_arn": "${pod_role.arn}",
        },
        TAGGED,
        {"service_account": "others"},
    ),
    "images": Row(
        "ecr.Repository",
        {
            "name": "team/train",
            "image_tag_mutability": "IMMUTABLE",
            "image_scanning_configuration": {"scan_on_push": True},
            "encryption_configurations": [{"encryption_type": "KMS", "kms_key": "${key.arn}"}],
            "tags": TAGS,
        },
        {**TAGGED, "image_tag_mutability": "MUTABLE", "image_scanning_configuration": {"scan_on_push": False}},
        {"name": "team/serve"},
        drift=lambda aws, out: aws("ecr").put_image_tag_mutability(
            repositoryName=out["name"],
            imageTagMutability="IMMUTABLE" if out["imageTagMutability"] == "MUTABLE" else "MUTABLE",
        ),
    ),
    "more_images": Row("ecr.Repository", {"name": "team/more", "force_delete": False}, TAGGED, {"name": "team/other"}),
    "old_images": Row(
        "ecr.LifecyclePolicy",
        {"repository": "${images.name}", "policy": _expire(14)},
        replace={"policy": _expire(30)},
        only="nothing of it changes in place",
    ),
    "lustre": Row(
        "fsx.LustreFileSystem",
        {
            "subnet_ids": "${sub_a.id}",
            "security_group_ids": ["${group.id}"],
            "deployment_type": "PERSISTENT_2",
            "storage_type": "SSD",
            "file_system_type_version": "2.12",
            "storage_capacity": 1200,
            "per_unit_storage_throughput": 125,
        },
        {"storage_capacity": 2400, "file_system_type_version": "2.15", "data_compression_type": "LZ4", **TAGGED},
        {"deployment_type": "SCRATCH_2"},
        drift=lambda aws, out: aws("fsx").update_file_system(
            FileSystemId=out["id"], LustreConfiguration={"DataCompressionType": "NONE"}
        ),
    ),
    "metrics": Row(
        "amp.Workspace", {"alias": "metrics", "tags": TAGS}, {"alias": "more", **TAGGED}, {"kms_key_arn": "x"}
    ),
    "alerts": Row(
        "amp.RuleGroupNamespace",
        {"workspace_id": "${metrics.id}", "name": "alerts", "data": RULES},
        {"data": RULES.replace("test", "other"), **TAGGED},
        {"name": "others"},
        drift=lambda aws, out: aws("amp").put_rule_groups_namespace(
            workspaceId=out["workspaceId"], name=out["name"], data=b"groups: []\n"
        ),
    ),
    "manager": Row(
        "amp.AlertManagerDefinition",
        {"workspace_id": "${metrics.id}", "definition": ALERT_MANAGER},
        {"definition": ALERT_MANAGER.replace("first", "second")},
        {"workspace_id": "ws-other"},
    ),
    "topic": Row(
        "sns.Topic",
        {
            "policy": _policy(Principal={"Service": "aps.amazonaws.com"}, Action="sns:Publish", Resource="*"),
            "tags": TAGS,
        },
        {"display_name": "alerts", **TAGGED},
        {"name": "others"},
        drift=lambda aws, out: aws("sns").set_topic_attributes(
            TopicArn=out["arn"], AttributeName="DisplayName", AttributeValue="other"
        ),
    ),
    "subscription": Row(
        "sns.TopicSubscription",
        {"topic": "${topic.arn}", "protocol": "email", "endpoint": "ops@example.com"},
        replace={"endpoint": "others@example.com"},
        only="a subscription is what it is",
    ),
    "event_rule": Row(
        "cloudwatch.EventRule",
        {"event_pattern": json.dumps({"source": ["aws.sagemaker"]}), "state": "ENABLED", "tags": TAGS},
        {"event_pattern": json.dumps({"source": ["aws.ec2"]}), **TAGGED},
        {"name": "others"},
        drift=lambda aws, out: aws("events").disable_rule(Name=out["name"]),
    ),
    "event_target": Row(
        "cloudwatch.EventTarget",
        {"rule": "${event_rule.name}", "target_id": "alerts", "arn": "${topic.arn}"},
        {"arn": "arn:aws:sns:us-west-2:123456789012:others"},
        {"target_id": "others"},
    ),
    "grafana": Row(
        "grafana.Workspace",
        {
            "account_access_type": "CURRENT_ACCOUNT",
            "authentication_providers": ["AWS_SSO"],
            "permission_type": "SERVICE_MANAGED",
            "role_arn": "${grafana_role.arn}",
            "data_sources": ["PROMETHEUS"],
            "grafana_version": "9.4",
        },
        {"description": "boards", "grafana_version": "10.4", **TAGGED},
        {"authentication_providers": ["AWS_SSO", "SAML"]},
        drift=lambda aws, out: aws("grafana").update_workspace(workspaceId=out["id"], workspaceDescription="other"),
    ),
    "editors": Row(
        "grafana.RoleAssociation",
        {"workspace_id": "${grafana.id}", "role": "EDITOR", "user_ids": ["one"]},
        {"role": "ADMIN", "user_ids": ["one", "two"]},
        {"workspace_id": "g-other"},
        drift=lambda aws, out: aws("grafana").update_permissions(
            workspaceId=out["workspaceId"],
            updateInstructionBatch=[
                {"action": "REVOKE", "role": out["role"], "users": [{"id": "two", "type": "SSO_USER"}]},
            ],
        ),
    ),
}


def stack(changed: Callable[[str], dict[str, Any]] = lambda _: {}) -> dict[str, dict[str, Any]]:
    """Return the spec of the stack, each row before those that refer to it, without inputs that are None."""
    spec = {}
    for name in _ordered():
        row = ROWS[name]
        inputs = {key: value for key, value in {**row.inputs, **changed(name)}.items() if value is not None}
        spec[name] = {"type": row.kind, "inputs": inputs, "after": row.after}
    return spec


def _ordered() -> list[str]:
    """Return the names of the rows in order of their references."""
    done: dict[str, None] = {}

    def add(name: str) -> None:
        for other in {*references(name), *ROWS[name].after} - done.keys() - {name}:
            add(other)
        done.setdefault(name)

    for name in ROWS:
        add(name)
    return list(done)


def references(name: str) -> set[str]:
    """Return the rows whose outputs a row uses."""
    row = ROWS[name]
    return set(re.findall(r"\$\{(\w+)\.", json.dumps([row.inputs, row.edit])))
