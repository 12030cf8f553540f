"""The types of Terraform and CloudFormation for each type that the program registers."""

from dataclasses import dataclass

__all__ = ["RESOURCE_TYPES", "ToolTypes", "parent_id"]


@dataclass(frozen=True, slots=True)
class ToolTypes:
    """The other tools' types of one Pulumi type.

    - rank: resources are released by ascending rank. What acts on the cluster is released before the cluster.
    - parents: types that contain it as a part, where the tool has no type for it.
    """

    terraform: tuple[str, ...]
    cloudformation: tuple[str, ...]
    rank: int
    parents: tuple[str, ...] = ()


_POLICIES, _ACCESS, _ADDONS, _CLUSTER, _REST = range(5)
_BUCKET = ("AWS::S3::Bucket",)
_ROLE = ("AWS::IAM::Role",)

# awscc's types are CloudFormation's, spelled Terraform's way. The aws provider has no types for quotas and their
# policy. Modules run the AWS CLI from a null_resource, whose provisioner deletes the quota when the resource is
# destroyed.
RESOURCE_TYPES: dict[str, ToolTypes] = {
    "hyperpod:index:ComputeQuota": ToolTypes(
        ("awscc_sagemaker_compute_quota", "null_resource", "terraform_data"),
        ("AWS::SageMaker::ComputeQuota",),
        _POLICIES,
    ),
    "hyperpod:index:ClusterSchedulerConfig": ToolTypes(
        ("awscc_sagemaker_cluster_scheduler_config",), ("AWS::SageMaker::ClusterSchedulerConfig",), _POLICIES
    ),
    "hyperpod:index:Cluster": ToolTypes(("awscc_sagemaker_cluster",), ("AWS::SageMaker::Cluster",), _CLUSTER),
    "aws:eks/accessEntry:AccessEntry": ToolTypes(
        ("aws_eks_access_entry", "awscc_eks_access_entry"), ("AWS::EKS::AccessEntry",), _ACCESS
    ),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": ToolTypes(
        ("aws_eks_access_policy_association",), (), _ACCESS, ("AWS::EKS::AccessEntry", "awscc_eks_access_entry")
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": ToolTypes(
        ("aws_eks_pod_identity_association", "awscc_eks_pod_identity_association"),
        ("AWS::EKS::PodIdentityAssociation",),
        _ACCESS,
    ),
    "aws:eks/addon:Addon": ToolTypes(("aws_eks_addon", "awscc_eks_addon"), ("AWS::EKS::Addon",), _ADDONS),
    "kubernetes:helm.sh/v3:Release": ToolTypes(("helm_release",), (), _ADDONS),
    **{
        f"kubernetes:{token}": ToolTypes((), (), _ADDONS, ("kubernetes_manifest", "kubectl_manifest"))
        for token in ("karpenter.sagemaker.amazonaws.com/v1:HyperpodNodeClass", "karpenter.sh/v1:NodePool")
    },
    **{
        f"kubernetes:{token}": ToolTypes((f"kubernetes_{name}", f"kubernetes_{name}_v1"), (), _ADDONS)
        for token, name in (
            ("core/v1:Namespace", "namespace"),
            ("rbac.authorization.k8s.io/v1:ClusterRole", "cluster_role"),
            ("rbac.authorization.k8s.io/v1:ClusterRoleBinding", "cluster_role_binding"),
            ("rbac.authorization.k8s.io/v1:Role", "role"),
            ("rbac.authorization.k8s.io/v1:RoleBinding", "role_binding"),
            ("scheduling.k8s.io/v1:PriorityClass", "priority_class"),
        )
    },
    "aws:eks/cluster:Cluster": ToolTypes(("aws_eks_cluster", "awscc_eks_cluster"), ("AWS::EKS::Cluster",), _REST),
    "aws:cloudwatch/logGroup:LogGroup": ToolTypes(
        ("aws_cloudwatch_log_group", "awscc_logs_log_group"), ("AWS::Logs::LogGroup",), _REST
    ),
    "aws:kms/key:Key": ToolTypes(("aws_kms_key", "awscc_kms_key"), ("AWS::KMS::Key",), _REST),
    "aws:ecr/repository:Repository": ToolTypes(
        ("aws_ecr_repository", "awscc_ecr_repository"), ("AWS::ECR::Repository",), _REST
    ),
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": ToolTypes(
        ("aws_ecr_lifecycle_policy",), (), _REST, ("AWS::ECR::Repository", "awscc_ecr_repository")
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": ToolTypes(
        ("aws_fsx_lustre_file_system",), ("AWS::FSx::FileSystem",), _REST
    ),
    "aws:amp/workspace:Workspace": ToolTypes(
        ("aws_prometheus_workspace", "awscc_aps_workspace"), ("AWS::APS::Workspace",), _REST
    ),
    "aws:amp/ruleGroupNamespace:RuleGroupNamespace": ToolTypes(
        ("aws_prometheus_rule_group_namespace",), ("AWS::APS::RuleGroupsNamespace",), _REST
    ),
    "aws:amp/alertManagerDefinition:AlertManagerDefinition": ToolTypes(
        ("aws_prometheus_alert_manager_definition",), (), _REST, ("AWS::APS::Workspace", "awscc_aps_workspace")
    ),
    "aws:cloudwatch/eventRule:EventRule": ToolTypes(
        ("aws_cloudwatch_event_rule", "awscc_events_rule"), ("AWS::Events::Rule",), _REST
    ),
    "aws:cloudwatch/eventTarget:EventTarget": ToolTypes(
        ("aws_cloudwatch_event_target",), (), _REST, ("AWS::Events::Rule", "awscc_events_rule")
    ),
    "aws:sns/topic:Topic": ToolTypes(("aws_sns_topic", "awscc_sns_topic"), ("AWS::SNS::Topic",), _REST),
    "aws:sns/topicSubscription:TopicSubscription": ToolTypes(
        ("aws_sns_topic_subscription", "awscc_sns_subscription"), ("AWS::SNS::Subscription",), _REST
    ),
    "aws:grafana/roleAssociation:RoleAssociation": ToolTypes(("aws_grafana_role_association",), (), _REST),
    "aws:grafana/workspace:Workspace": ToolTypes(
        ("aws_grafana_workspace", "awscc_grafana_workspace"), ("AWS::Grafana::Workspace",), _REST
    ),
    "aws:iam/role:Role": ToolTypes(("aws_iam_role", "awscc_iam_role"), _ROLE, _REST),
    "aws:iam/policy:Policy": ToolTypes(("aws_iam_policy",), ("AWS::IAM::ManagedPolicy",), _REST),
    "aws:iam/rolePolicy:RolePolicy": ToolTypes(
        ("aws_iam_role_policy",), ("AWS::IAM::RolePolicy",), _REST, (*_ROLE, "awscc_iam_role")
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": ToolTypes(
        ("aws_iam_role_policy_attachment",), (), _REST, (*_ROLE, "awscc_iam_role")
    ),
    "aws:s3/bucket:Bucket": ToolTypes(("aws_s3_bucket", "awscc_s3_bucket"), _BUCKET, _REST),
    "aws:s3/bucketObjectv2:BucketObjectv2": ToolTypes(("aws_s3_object",), (), _REST),
    "aws:s3/bucketPolicy:BucketPolicy": ToolTypes(("aws_s3_bucket_policy",), ("AWS::S3::BucketPolicy",), _REST),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": ToolTypes(
        ("aws_s3_bucket_lifecycle_configuration",), (), _REST, _BUCKET
    ),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": ToolTypes(
        ("aws_s3_bucket_ownership_controls",), (), _REST, _BUCKET
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": ToolTypes(
        ("aws_s3_bucket_public_access_block",), (), _REST, _BUCKET
    ),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": ToolTypes(
        ("aws_s3_bucket_server_side_encryption_configuration",), (), _REST, _BUCKET
    ),
    "aws:s3/bucketVersioning:BucketVersioning": ToolTypes(("aws_s3_bucket_versioning",), (), _REST, _BUCKET),
    "aws:ec2/vpc:Vpc": ToolTypes(("aws_vpc", "awscc_ec2_vpc"), ("AWS::EC2::VPC",), _REST),
    "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": ToolTypes(
        ("aws_vpc_ipv4_cidr_block_association",), ("AWS::EC2::VPCCidrBlock",), _REST
    ),
    "aws:ec2/subnet:Subnet": ToolTypes(("aws_subnet", "awscc_ec2_subnet"), ("AWS::EC2::Subnet",), _REST),
    "aws:ec2/eip:Eip": ToolTypes(("aws_eip", "awscc_ec2_eip"), ("AWS::EC2::EIP",), _REST),
    "aws:ec2/natGateway:NatGateway": ToolTypes(("aws_nat_gateway",), ("AWS::EC2::NatGateway",), _REST),
    "aws:ec2/internetGateway:InternetGateway": ToolTypes(
        ("aws_internet_gateway",), ("AWS::EC2::InternetGateway",), _REST
    ),
    "aws:ec2/routeTable:RouteTable": ToolTypes(("aws_route_table",), ("AWS::EC2::RouteTable",), _REST),
    "aws:ec2/route:Route": ToolTypes(("aws_route",), ("AWS::EC2::Route",), _REST),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": ToolTypes(
        ("aws_route_table_association",), ("AWS::EC2::SubnetRouteTableAssociation",), _REST
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": ToolTypes(("aws_vpc_endpoint",), ("AWS::EC2::VPCEndpoint",), _REST),
    "aws:ec2/securityGroup:SecurityGroup": ToolTypes(
        ("aws_security_group", "awscc_ec2_security_group"), ("AWS::EC2::SecurityGroup",), _REST
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": ToolTypes(
        ("aws_vpc_security_group_ingress_rule", "aws_security_group_rule"), ("AWS::EC2::SecurityGroupIngress",), _REST
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": ToolTypes(
        ("aws_vpc_security_group_egress_rule", "aws_security_group_rule"), ("AWS::EC2::SecurityGroupEgress",), _REST
    ),
}

# What separates the parent's id from the rest of the id that `pulumi import` takes, from "Import" in the provider's
# documentation of each type. The parts of a bucket are imported by the bucket's own name.
_SEPARATORS = {
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": "#",
    "aws:iam/rolePolicy:RolePolicy": ":",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": "/",
}


def parent_id(token: str, identifier: str) -> str:
    """Return the id of the resource that contains a part, from the part's id; both may be the same."""
    if token.startswith("kubernetes:"):
        return f"{token.rpartition(':')[2]}/{identifier}"
    separator = _SEPARATORS.get(token)
    if separator is None:
        return identifier
    if separator == "#":
        return ":".join(identifier.split("#")[:2])
    return identifier.partition(separator)[0]
