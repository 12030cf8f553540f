"""Which AWS API calls a deployment makes for each type of resource, and what services do with the caller's rights.

Sources: `calls` are those of the local cloud, where the program runs against a recording endpoint (`--record` of
`python -m local.aws`), and those by which the same types change. `more` are further calls of the released `aws`
plugin, which is built from the Terraform AWS provider: `source` is below its internal/service/. `service` is what the
Service Authorization Reference lists as dependent actions, or else what the type's `source` says.
"""

from dataclasses import dataclass

__all__ = ["ALWAYS", "KINDS", "Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """The calls of one type: operations of `api`, and IAM actions that services need from the caller."""

    api: str
    calls: str
    more: str = ""
    service: str = ""
    source: str = ""

    def operations(self) -> set[str]:
        """Return all of its API operations as `api:Operation`."""
        return {f"{self.api}:{operation}" for operation in f"{self.calls} {self.more}".split()}

    def actions(self) -> set[str]:
        """Return the IAM actions that services need from the caller."""
        return set(self.service.split())


_TAGS = "CreateTags DeleteTags"
_BY_ARN = "TagResource UntagResource"
_QUOTA_SERVICE = "eks:DescribeCluster eks:AssociateAccessPolicy eks:ListAssociatedAccessPolicies sagemaker:AddTags"
_POLICY_SERVICE = "eks:DisassociateAccessPolicy eks:DescribeAccessEntry"  # as CloudFormation's handler declares
# What the program asks before it registers anything; GetCallerIdentity needs no right.
ALWAYS = frozenset({"ec2:DescribeAvailabilityZones", "sts:GetCallerIdentity"})

KINDS: dict[str, Kind] = {
    "aws:ec2/vpc:Vpc": Kind(
        "ec2",
        f"CreateVpc DescribeVpcs DescribeVpcAttribute ModifyVpcAttribute DescribeNetworkAcls DescribeRouteTables "
        f"DescribeSecurityGroups DeleteVpc {_TAGS}",
        source="ec2/vpc_.go",
    ),
    "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": Kind(
        "ec2",
        "AssociateVpcCidrBlock DescribeVpcs DisassociateVpcCidrBlock",
        source="ec2/vpc_ipv4_cidr_block_association.go",
    ),
    "aws:ec2/subnet:Subnet": Kind(
        "ec2",
        f"CreateSubnet DescribeSubnets ModifySubnetAttribute DeleteSubnet {_TAGS}",
        more="DescribeNetworkInterfaces",
        source="ec2/vpc_subnet.go",
    ),
    "aws:ec2/internetGateway:InternetGateway": Kind(
        "ec2",
        f"CreateInternetGateway AttachInternetGateway DescribeInternetGateways DetachInternetGateway "
        f"DeleteInternetGateway {_TAGS}",
        source="ec2/vpc_internet_gateway.go",
    ),
    "aws:ec2/eip:Eip": Kind(
        "ec2",
        f"AllocateAddress DescribeAddresses ReleaseAddress {_TAGS}",
        more="DescribeAddressesAttribute DisassociateAddress",
        source="ec2/ec2_eip.go",
    ),
    "aws:ec2/natGateway:NatGateway": Kind(
        "ec2", f"CreateNatGateway DescribeNatGateways DeleteNatGateway {_TAGS}", source="ec2/vpc_nat_gateway.go"
    ),
    "aws:ec2/routeTable:RouteTable": Kind(
        "ec2",
        f"CreateRouteTable DescribeRouteTables DeleteRouteTable {_TAGS}",
        more="DisassociateRouteTable",
        source="ec2/vpc_route_table.go",
    ),
    "aws:ec2/route:Route": Kind(
        "ec2", "CreateRoute DescribeRouteTables ReplaceRoute DeleteRoute", source="ec2/vpc_route.go"
    ),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": Kind(
        "ec2",
        "AssociateRouteTable DescribeRouteTables ReplaceRouteTableAssociation DisassociateRouteTable",
        source="ec2/vpc_route_table_association.go",
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": Kind(
        "ec2",
        f"CreateVpcEndpoint DescribeVpcEndpoints ModifyVpcEndpoint DeleteVpcEndpoints {_TAGS}",
        more="DescribePrefixLists DescribeNetworkInterfaces",
        service="route53:AssociateVPCWithHostedZone",
        source="ec2/vpc_endpoint.go",
    ),
    "aws:ec2/securityGroup:SecurityGroup": Kind(
        "ec2",
        f"CreateSecurityGroup DescribeSecurityGroups RevokeSecurityGroupEgress RevokeSecurityGroupIngress "
        f"DeleteSecurityGroup {_TAGS}",
        more="DescribeNetworkInterfaces",
        source="ec2/vpc_security_group.go",
    ),
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": Kind(
        "ec2",
        f"DescribeSecurityGroups RevokeSecurityGroupEgress RevokeSecurityGroupIngress {_TAGS}",
        source="ec2/vpc_default_security_group.go",
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": Kind(
        "ec2",
        f"AuthorizeSecurityGroupIngress DescribeSecurityGroupRules ModifySecurityGroupRules "
        f"RevokeSecurityGroupIngress {_TAGS}",
        source="ec2/vpc_security_group_ingress_rule.go",
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": Kind(
        "ec2",
        f"AuthorizeSecurityGroupEgress DescribeSecurityGroupRules ModifySecurityGroupRules "
        f"RevokeSecurityGroupEgress {_TAGS}",
        source="ec2/vpc_security_group_egress_rule.go",
    ),
    "aws:s3/bucket:Bucket": Kind(
        "s3",
        "CreateBucket HeadBucket GetBucketTagging PutBucketTagging DeleteBucketTagging GetObjectLockConfiguration "
        "ListObjectVersions DeleteObject DeleteBucket",
        # Its read asks for every setting; tags by the S3 Control API since version 6.23 of the Terraform provider.
        more="GetBucketLocation GetBucketPolicy GetBucketAcl GetBucketCors GetBucketWebsite GetBucketVersioning "
        "GetBucketAccelerateConfiguration GetBucketRequestPayment GetBucketLogging GetBucketReplication "
        "GetBucketLifecycleConfiguration GetBucketEncryption ListObjectsV2 ListTagsForResource TagResource "
        "UntagResource",
        source="s3/bucket.go, s3/tags.go, s3/delete.go",
    ),
    "aws:s3/bucketVersioning:BucketVersioning": Kind(
        "s3", "GetBucketVersioning PutBucketVersioning", source="s3/bucket_versioning.go"
    ),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": Kind(
        "s3",
        "DeleteBucketEncryption GetBucketEncryption PutBucketEncryption",
        source="s3/bucket_server_side_encryption_configuration.go",
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": Kind(
        "s3",
        "DeletePublicAccessBlock GetPublicAccessBlock PutPublicAccessBlock",
        source="s3/bucket_public_access_block.go",
    ),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": Kind(
        "s3",
        "DeleteBucketOwnershipControls GetBucketOwnershipControls PutBucketOwnershipControls",
        source="s3/bucket_ownership_controls.go",
    ),
    "aws:s3/bucketPolicy:BucketPolicy": Kind(
        "s3", "DeleteBucketPolicy GetBucketPolicy PutBucketPolicy", source="s3/bucket_policy.go"
    ),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": Kind(
        "s3",
        "DeleteBucketLifecycle GetBucketLifecycleConfiguration PutBucketLifecycleConfiguration",
        source="s3/bucket_lifecycle_configuration.go",
    ),
    "aws:s3/bucketObjectv2:BucketObjectv2": Kind(
        "s3",
        "DeleteObject GetObjectTagging HeadObject ListObjectVersions PutObject PutObjectTagging",
        source="s3/object.go",
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": Kind(
        "fsx",
        f"CreateFileSystem DescribeFileSystems UpdateFileSystem DeleteFileSystem {_BY_ARN}",
        more="ListTagsForResource",
        service="ec2:GetSecurityGroupsForVpc iam:CreateServiceLinkedRole",
        source="fsx/lustre_file_system.go",
    ),
    "aws:iam/role:Role": Kind(
        "iam",
        "CreateRole GetRole ListRolePolicies ListAttachedRolePolicies UpdateAssumeRolePolicy UpdateRole DeleteRole "
        "TagRole UntagRole",
        more="ListInstanceProfilesForRole UpdateRoleDescription",
        source="iam/role.go",
    ),
    "aws:iam/rolePolicy:RolePolicy": Kind(
        "iam", "PutRolePolicy GetRolePolicy DeleteRolePolicy", source="iam/role_policy.go"
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Kind(
        "iam",
        "AttachRolePolicy ListAttachedRolePolicies DetachRolePolicy",
        source="iam/role_policy_attachment.go",
    ),
    "aws:kms/key:Key": Kind(
        "kms",
        f"CreateKey DescribeKey GetKeyPolicy PutKeyPolicy GetKeyRotationStatus EnableKey EnableKeyRotation "
        f"UpdateKeyDescription ListResourceTags ScheduleKeyDeletion {_BY_ARN}",
        source="kms/key.go",
    ),
    "aws:eks/cluster:Cluster": Kind(
        "eks",
        f"CreateCluster DescribeCluster UpdateClusterConfig UpdateClusterVersion DescribeUpdate DeleteCluster "
        f"{_BY_ARN}",
        # Amazon EKS user guide, "Encrypt Kubernetes secrets with KMS": the creator needs both rights on the key.
        service="iam:PassRole iam:CreateServiceLinkedRole kms:DescribeKey kms:CreateGrant",
        source="eks/cluster.go",
    ),
    "aws:eks/addon:Addon": Kind(
        "eks",
        f"CreateAddon DescribeAddon UpdateAddon DescribeUpdate DeleteAddon {_BY_ARN}",
        source="eks/addon.go",
    ),
    "aws:eks/accessEntry:AccessEntry": Kind(
        "eks",
        f"CreateAccessEntry DescribeAccessEntry UpdateAccessEntry DeleteAccessEntry {_BY_ARN}",
        source="eks/access_entry.go",
    ),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": Kind(
        "eks",
        "AssociateAccessPolicy DisassociateAccessPolicy ListAssociatedAccessPolicies",
        source="eks/access_policy_association.go",
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": Kind(
        "eks",
        f"CreatePodIdentityAssociation DescribePodIdentityAssociation UpdatePodIdentityAssociation "
        f"DeletePodIdentityAssociation {_BY_ARN}",
        service="iam:PassRole iam:GetRole",
        source="eks/pod_identity_association.go",
    ),
    "aws:cloudwatch/logGroup:LogGroup": Kind(
        "logs",
        "CreateLogGroup DescribeLogGroups PutRetentionPolicy DeleteRetentionPolicy ListTagsLogGroup TagLogGroup "
        "UntagLogGroup DeleteLogGroup",
        more=f"ListTagsForResource {_BY_ARN}",
        source="logs/group.go",
    ),
    "aws:amp/workspace:Workspace": Kind(
        "amp",
        f"CreateWorkspace DescribeWorkspace DescribeLoggingConfiguration UpdateWorkspaceAlias DeleteWorkspace "
        f"{_BY_ARN}",
        more="ListTagsForResource",
        source="amp/workspace.go",
    ),
    "aws:amp/ruleGroupNamespace:RuleGroupNamespace": Kind(
        "amp",
        f"CreateRuleGroupsNamespace DescribeRuleGroupsNamespace PutRuleGroupsNamespace DeleteRuleGroupsNamespace "
        f"{_BY_ARN}",
        more="ListTagsForResource",
        source="amp/rule_group_namespace.go",
    ),
    "aws:grafana/workspace:Workspace": Kind(
        "grafana",
        f"CreateWorkspace DescribeWorkspace UpdateWorkspace UpdateWorkspaceAuthentication DeleteWorkspace {_BY_ARN}",
        more="DescribeWorkspaceAuthentication DescribeWorkspaceConfiguration ListTagsForResource",
        service="iam:PassRole iam:CreateServiceLinkedRole organizations:DescribeOrganization "
        "sso:CreateManagedApplicationInstance sso:DeleteManagedApplicationInstance sso:DescribeRegisteredRegions "
        "sso:GetSharedSsoConfiguration",
        source="grafana/workspace.go",
    ),
    "hyperpod:index:Cluster": Kind(
        "sagemaker",
        "CreateCluster DescribeCluster ListClusterEvents UpdateCluster DeleteCluster AddTags DeleteTags ListTags",
        service="eks:DescribeCluster eks:CreateAccessEntry eks:DescribeAccessEntry eks:DeleteAccessEntry "
        "eks:AssociateAccessPolicy iam:PassRole iam:CreateServiceLinkedRole sagemaker:AddTags "
        "sagemaker:BatchDeleteClusterNodes",
        source="this repository's plugin `hyperpod`",
    ),
    "hyperpod:index:AutoscaledGroup": Kind(
        "sagemaker",
        "DescribeCluster ListClusterEvents UpdateCluster",
        service="eks:DescribeCluster eks:CreateAccessEntry eks:DescribeAccessEntry eks:DeleteAccessEntry "
        "eks:AssociateAccessPolicy iam:PassRole sagemaker:BatchDeleteClusterNodes",
        source="this repository's plugin `hyperpod`",
    ),
    "hyperpod:index:ComputeQuota": Kind(
        "sagemaker",
        "CreateComputeQuota DescribeComputeQuota ListComputeQuotas UpdateComputeQuota DeleteComputeQuota "
        "DescribeCluster AddTags DeleteTags ListTags",
        service=_QUOTA_SERVICE,
        source="this repository's plugin `hyperpod`",
    ),
    "hyperpod:index:ClusterSchedulerConfig": Kind(
        "sagemaker",
        "CreateClusterSchedulerConfig DescribeClusterSchedulerConfig ListClusterSchedulerConfigs "
        "UpdateClusterSchedulerConfig DeleteClusterSchedulerConfig DescribeCluster AddTags DeleteTags ListTags",
        service=f"{_QUOTA_SERVICE} {_POLICY_SERVICE}",
        source="this repository's plugin `hyperpod`",
    ),
}
