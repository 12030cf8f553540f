"""What somebody does by hand, by row: each must be found by the next refresh, and fixed by the next `up`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["DRIFTS"]

Drift = Callable[[Callable[[str], Any], dict[str, Any]], Any]
_OTHER = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"}]}
)

DRIFTS: dict[str, Drift] = {
    "vpc": lambda aws, out: aws("ec2").modify_vpc_attribute(VpcId=out["id"], EnableDnsSupport={"Value": False}),
    "sub_b": lambda aws, out: aws("ec2").create_tags(Resources=[out["id"]], Tags=[{"Key": "by", "Value": "hand"}]),
    "inward": lambda aws, out: aws("ec2").revoke_security_group_ingress(
        GroupId=out["securityGroupId"], SecurityGroupRuleIds=[out["id"]]
    ),
    "versioning": lambda aws, out: aws("s3").put_bucket_versioning(
        Bucket=out["bucket"], VersioningConfiguration={"Status": "Enabled"}
    ),
    "private": lambda aws, out: aws("s3").delete_public_access_block(Bucket=out["bucket"]),
    "bucket_policy": lambda aws, out: aws("s3").put_bucket_policy(Bucket=out["bucket"], Policy=_OTHER),
    "pod_role": lambda aws, out: aws("iam").update_role(RoleName=out["name"], Description="x", MaxSessionDuration=3600),
    "attached": lambda aws, out: aws("iam").detach_role_policy(RoleName=out["role"], PolicyArn=out["policyArn"]),
    "key": lambda aws, out: aws("kms").enable_key_rotation(KeyId=out["id"]),
    "logs": lambda aws, out: aws("logs").delete_retention_policy(logGroupName=out["name"]),
    "cluster": lambda aws, out: aws("eks").update_cluster_config(
        name=out["name"], resourcesVpcConfig={"endpointPublicAccess": True}
    ),
    "addon": lambda aws, out: aws("eks").update_addon(
        clusterName=out["clusterName"], addonName=out["addonName"], configurationValues="{}"
    ),
    "entry": lambda aws, out: aws("eks").update_access_entry(
        clusterName=out["clusterName"], principalArn=out["principalArn"], kubernetesGroups=["others"]
    ),
    "images": lambda aws, out: aws("ecr").put_image_tag_mutability(
        repositoryName=out["name"],
        imageTagMutability="IMMUTABLE" if out["imageTagMutability"] == "MUTABLE" else "MUTABLE",
    ),
    "lustre": lambda aws, out: aws("fsx").update_file_system(
        FileSystemId=out["id"], LustreConfiguration={"DataCompressionType": "NONE"}
    ),
    "alerts": lambda aws, out: aws("amp").put_rule_groups_namespace(
        workspaceId=out["workspaceId"], name=out["name"], data=b"groups: []\n"
    ),
    "event_rule": lambda aws, out: aws("events").disable_rule(Name=out["name"]),
    "topic": lambda aws, out: aws("sns").set_topic_attributes(
        TopicArn=out["arn"], AttributeName="DisplayName", AttributeValue="other"
    ),
    "grafana": lambda aws, out: aws("grafana").update_workspace(workspaceId=out["id"], workspaceDescription="other"),
    "editors": lambda aws, out: aws("grafana").update_permissions(
        workspaceId=out["workspaceId"],
        updateInstructionBatch=[
            {"action": "REVOKE", "role": out["role"], "users": [{"id": "two", "type": "SSO_USER"}]},
        ],
    ),
}
