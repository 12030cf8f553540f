"""Which types of Terraform and CloudFormation stand for which type that the program registers."""

from dataclasses import dataclass

__all__ = ["KINDS", "Kind", "parent"]


@dataclass(frozen=True, slots=True)
class Kind:
    """The other tools' types of one Pulumi type.

    rank: what is let go first has the lowest, so that whatever acts on the cluster is gone before the cluster is;
    within: CloudFormation types that hold it as a part, and have no resource of its own for it.
    """

    terraform: tuple[str, ...]
    cloudformation: tuple[str, ...]
    rank: int
    within: tuple[str, ...] = ()


_POLICIES, _ACCESS, _ADDONS, _CLUSTER, _REST = range(5)
_BUCKET = ("AWS::S3::Bucket",)
_ROLE = ("AWS::IAM::Role",)

# awscc's types are CloudFormation's, spelled Terraform's way. Quotas and their policy have none in the aws provider:
# modules run the AWS CLI from a null_resource, whose provisioner deletes the quota when the resource is destroyed.
KINDS: dict[str, Kind] = {
    "hyperpod:index:ComputeQuota": Kind(
        ("awscc_sagemaker_compute_quota", "null_resource", "terraform_data"),
        ("AWS::SageMaker::ComputeQuota",),
        _POLICIES,
    ),
    "hyperpod:index:ClusterSchedulerConfig": Kind(
        ("awscc_sagemaker_cluster_scheduler_config",), ("AWS::SageMaker::ClusterSchedulerConfig",), _POLICIES
    ),
    "hyperpod:index:Cluster": Kind(("awscc_sagemaker_cluster",), ("AWS::SageMaker::Cluster",), _CLUSTER),
    "aws:eks/accessEntry:AccessEntry": Kind(
        ("aws_eks_access_entry", "awscc_eks_access_entry"), ("AWS::EKS::AccessEntry",), _ACCESS
    ),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": Kind(
        ("aws_eks_access_policy_association",), (), _ACCESS, ("AWS::EKS::AccessEntry", "awscc_eks_access_entry")
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": Kind(
        ("aws_eks_pod_identity_association", "awscc_eks_pod_identity_association"),
        ("AWS::EKS::PodIdentityAssociation",),
        _ACCESS,
    ),
    "aws:eks/addon:Addon": Kind(("aws_eks_addon", "awscc_eks_addon"), ("AWS::EKS::Addon",), _ADDONS),
    "kubernetes:helm.sh/v3:Release": Kind(("helm_release",), (), _ADDONS),
    **{
        f"kubernetes:{token}": Kind((), (), _ADDONS, ("kubernetes_manifest", "kubectl_manifest"))
        for token in ("karpenter.sagemaker.amazonaws.com/v1:HyperpodNodeClass", "karpenter.sh/v1:NodePool")
    },
    **{
        f"kubernetes:{token}": Kind((f"kubernetes_{name}", f"kubernetes_{name}_v1"), (), _ADDONS)
        for token, name in (
            ("core/v1:Namespace", "namespace"),
            ("rbac.authorization.k8s.io/v1:ClusterRole", "cluster_role"),
            ("rbac.authorization.k8s.io/v1:ClusterRoleBinding", "cluster_role_binding"),
            ("rbac.authorization.k8s.io/v1:Role", "role"),
            ("rbac.authorization.k8s.io/v1:RoleBinding", "role_binding"),
            ("scheduling.k8s.io/v1:PriorityClass", "priority_class"),
        )
    },
    "aws:eks/cluster:Cluster": Kind(("aws_eks_cluster", "awscc_eks_cluster"), ("AWS::EKS::Cluster",), _REST),
    "aws:cloudwatch/logGroup:LogGroup": Kind(
        ("aws_cloudwatch_log_group", "awscc_logs_log_group"), ("AWS::Logs::LogGroup",), _REST
    ),
    "aws:kms/key:Key": Kind(("aws_kms_key", "awscc_kms_key"), ("AWS::KMS::Key",), _REST),
    "aws:fsx/lustreFileSystem:LustreFileSystem": Kind(
        ("aws_fsx_lustre_file_system",), ("AWS::FSx::FileSystem",), _REST
    ),
    "aws:amp/workspace:Workspace": Kind(
        ("aws_prometheus_workspace", "awscc_aps_workspace"), ("AWS::APS::Workspace",), _REST
    ),
    "aws:amp/ruleGroupNamespace:RuleGroupNamespace": Kind(
        ("aws_prometheus_rule_group_namespace",), ("AWS::APS::RuleGroupsNamespace",), _REST
    ),
    "aws:grafana/workspace:Workspace": Kind(
        ("aws_grafana_workspace", "awscc_grafana_workspace"), ("AWS::Grafana::Workspace",), _REST
    ),
    "aws:iam/role:Role": Kind(("aws_iam_role", "awscc_iam_role"), _ROLE, _REST),
    "aws:iam/policy:Policy": Kind(("aws_iam_policy",), ("AWS::IAM::ManagedPolicy",), _REST),
    "aws:iam/rolePolicy:RolePolicy": Kind(
        ("aws_iam_role_policy",), ("AWS::IAM::RolePolicy",), _REST, (*_ROLE, "awscc_iam_role")
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Kind(
        ("aws_iam_role_policy_attachment",), (), _REST, (*_ROLE, "awscc_iam_role")
    ),
    "aws:s3/bucket:Bucket": Kind(("aws_s3_bucket", "awscc_s3_bucket"), _BUCKET, _REST),
    "aws:s3/bucketObjectv2:BucketObjectv2": Kind(("aws_s3_object",), (), _REST),
    "aws:s3/bucketPolicy:BucketPolicy": Kind(("aws_s3_bucket_policy",), ("AWS::S3::BucketPolicy",), _REST),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": Kind(
        ("aws_s3_bucket_lifecycle_configuration",), (), _REST, _BUCKET
    ),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": Kind(
        ("aws_s3_bucket_ownership_controls",), (), _REST, _BUCKET
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": Kind(
        ("aws_s3_bucket_public_access_block",), (), _REST, _BUCKET
    ),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": Kind(
        ("aws_s3_bucket_server_side_encryption_configuration",), (), _REST, _BUCKET
    ),
    "aws:s3/bucketVersioning:BucketVersioning": Kind(("aws_s3_bucket_versioning",), (), _REST, _BUCKET),
    "aws:ec2/vpc:Vpc": Kind(("aws_vpc", "awscc_ec2_vpc"), ("AWS::EC2::VPC",), _REST),
    "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": Kind(
        ("aws_vpc_ipv4_cidr_block_association",), ("AWS::EC2::VPCCidrBlock",), _REST
    ),
    "aws:ec2/subnet:Subnet": Kind(("aws_subnet", "awscc_ec2_subnet"), ("AWS::EC2::Subnet",), _REST),
    "aws:ec2/eip:Eip": Kind(("aws_eip", "awscc_ec2_eip"), ("AWS::EC2::EIP",), _REST),
    "aws:ec2/natGateway:NatGateway": Kind(("aws_nat_gateway",), ("AWS::EC2::NatGateway",), _REST),
    "aws:ec2/internetGateway:InternetGateway": Kind(("aws_internet_gateway",), ("AWS::EC2::InternetGateway",), _REST),
    "aws:ec2/routeTable:RouteTable": Kind(("aws_route_table",), ("AWS::EC2::RouteTable",), _REST),
    "aws:ec2/route:Route": Kind(("aws_route",), ("AWS::EC2::Route",), _REST),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": Kind(
        ("aws_route_table_association",), ("AWS::EC2::SubnetRouteTableAssociation",), _REST
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": Kind(("aws_vpc_endpoint",), ("AWS::EC2::VPCEndpoint",), _REST),
    "aws:ec2/securityGroup:SecurityGroup": Kind(
        ("aws_security_group", "awscc_ec2_security_group"), ("AWS::EC2::SecurityGroup",), _REST
    ),
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": Kind(
        ("aws_default_security_group", "aws_security_group"), ("AWS::EC2::SecurityGroup",), _REST
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": Kind(
        ("aws_vpc_security_group_ingress_rule", "aws_security_group_rule"), ("AWS::EC2::SecurityGroupIngress",), _REST
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": Kind(
        ("aws_vpc_security_group_egress_rule", "aws_security_group_rule"), ("AWS::EC2::SecurityGroupEgress",), _REST
    ),
}

# How the id that `pulumi import` takes goes on after what holds the part, as the provider's documentation of each type
# says under "Import". The parts of a bucket are imported by the bucket's own name.
_SEPARATORS = {
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": "#",
    "aws:iam/rolePolicy:RolePolicy": ":",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": "/",
}


def parent(token: str, identifier: str) -> str:
    """Return the id of what holds a part, from the part's own; unchanged where both have one id."""
    if token.startswith("kubernetes:"):
        return f"{token.rpartition(':')[2]}/{identifier}"
    separator = _SEPARATORS.get(token)
    if separator is None:
        return identifier
    if separator == "#":
        return ":".join(identifier.split("#")[:2])
    return identifier.partition(separator)[0]
