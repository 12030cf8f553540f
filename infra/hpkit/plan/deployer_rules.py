"""How each IAM action of a deployment is narrowed: on which resources, under which conditions.

Source: Service Authorization Reference, per service: the resource types and condition keys of each action. An action
in several rules is allowed where any of them matches; in a rule, only the actions that a stack needs are kept.
"""

from dataclasses import dataclass

__all__ = ["ACTION_OF", "API_PREFIX", "NO_RIGHT_NEEDED", "RULES", "Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Actions of one service on resources (`{…}` is filled in), under conditions by name.

    NEW: the request sets this environment's tags. OWN: the resource has them. UNCLAIMED: no environment's tags are on
    it. Others are said where they are made.
    """

    sid: str
    service: str
    actions: str
    resources: tuple[str, ...]
    conditions: tuple[str, ...] = ()

    def names(self) -> set[str]:
        """Return its actions as `service:Action`."""
        return {f"{self.service}:{action}" for action in self.actions.split()}


NO_RIGHT_NEEDED = frozenset({"sts:GetCallerIdentity"})
API_PREFIX = {"amp": "aps"}
# Where the action is not called as the operation is (Amazon S3 user guide, "Required permissions for S3 operations").
ACTION_OF = {
    "s3:DeleteBucketEncryption": "s3:PutEncryptionConfiguration",
    "s3:DeleteBucketLifecycle": "s3:PutLifecycleConfiguration",
    "s3:DeleteBucketOwnershipControls": "s3:PutBucketOwnershipControls",
    "s3:DeleteBucketTagging": "s3:PutBucketTagging",
    # With a version, which is how all of a versioned bucket is emptied.
    "s3:DeleteObject": "s3:DeleteObject s3:DeleteObjectVersion",
    "s3:DeletePublicAccessBlock": "s3:PutBucketPublicAccessBlock",
    "s3:GetBucketAccelerateConfiguration": "s3:GetAccelerateConfiguration",
    "s3:GetBucketCors": "s3:GetBucketCORS",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:GetBucketLifecycle": "s3:GetLifecycleConfiguration",
    "s3:GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "s3:GetBucketReplication": "s3:GetReplicationConfiguration",
    "s3:GetObjectLockConfiguration": "s3:GetBucketObjectLockConfiguration",
    "s3:GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListObjectVersions": "s3:ListBucketVersions",
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:PutBucketEncryption": "s3:PutEncryptionConfiguration",
    "s3:PutBucketLifecycle": "s3:PutLifecycleConfiguration",
    "s3:PutBucketLifecycleConfiguration": "s3:PutLifecycleConfiguration",
    "s3:PutPublicAccessBlock": "s3:PutBucketPublicAccessBlock",
}


def _ec2(*types: str) -> tuple[str, ...]:
    return tuple(f"arn:{{partition}}:ec2:{{region}}:{{account}}:{kind}/*" for kind in types)


def _here(service: str, *resources: str) -> tuple[str, ...]:
    return tuple(f"arn:{{partition}}:{service}:{{region}}:{{account}}:{resource}" for resource in resources)


_ALONE = ("elastic-ip", "internet-gateway", "vpc")
_IN_VPC = ("route-table", "security-group", "subnet")
_IN_SUBNET = ("natgateway", "security-group-rule", "vpc-endpoint")
_CLUSTER, *_GOVERNANCE = _here("sagemaker", "cluster/*", "compute-quota/*", "cluster-scheduler-config/*")
_HYPERPOD = (_CLUSTER, *_GOVERNANCE)
_KEYS = _here("kms", "key/*")
_WORKSPACES = _here("aps", "workspace/*")
_RULE_GROUPS = _here("aps", "rulegroupsnamespace/*/hpkit")
_GRAFANA = _here("grafana", "/workspaces/*")
_FILE_SYSTEMS = _here("fsx", "file-system/*")
_EKS = _here("eks", "cluster/{eks}", "addon/{eks}/*", "access-entry/{eks}/*", "podidentityassociation/{eks}/*")

RULES: tuple[Rule, ...] = (
    Rule(
        "NetworkRead",
        "ec2",
        "DescribeAddresses DescribeAddressesAttribute DescribeAvailabilityZones DescribeImages "
        "DescribeInternetGateways DescribeNatGateways DescribeNetworkAcls DescribeNetworkInterfaces "
        "DescribePrefixLists DescribeRouteTables DescribeSecurityGroupRules DescribeSecurityGroups DescribeSnapshots "
        "DescribeSubnets DescribeVpcEndpoints DescribeVpcs",
        ("*",),
    ),
    Rule("VpcRead", "ec2", "DescribeVpcAttribute GetSecurityGroupsForVpc", _ec2("vpc")),
    # Apart, so that what makes one type is never allowed on what another type is made in.
    Rule("NetworkCreate", "ec2", "AllocateAddress CreateInternetGateway CreateVpc", _ec2(*_ALONE), ("NEW",)),
    Rule("VpcPartsCreate", "ec2", "CreateRouteTable CreateSecurityGroup CreateSubnet", _ec2(*_IN_VPC), ("NEW",)),
    Rule(
        "SubnetPartsCreate",
        "ec2",
        "AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress CreateNatGateway CreateVpcEndpoint",
        _ec2(*_IN_SUBNET),
        ("NEW",),
    ),
    Rule(
        "NetworkChange",
        "ec2",
        "AssociateRouteTable AssociateVpcCidrBlock AttachInternetGateway AuthorizeSecurityGroupEgress "
        "AuthorizeSecurityGroupIngress CreateNatGateway CreateRoute CreateRouteTable CreateSecurityGroup CreateSubnet "
        "CreateTags CreateVpcEndpoint DeleteInternetGateway DeleteNatGateway DeleteRoute DeleteRouteTable "
        "DeleteSecurityGroup DeleteSubnet DeleteTags DeleteVpc DeleteVpcEndpoints DetachInternetGateway "
        "DisassociateAddress DisassociateRouteTable DisassociateVpcCidrBlock ModifySecurityGroupRules "
        "ModifySubnetAttribute ModifyVpcAttribute ModifyVpcEndpoint ReleaseAddress ReplaceRoute "
        "ReplaceRouteTableAssociation RevokeSecurityGroupEgress RevokeSecurityGroupIngress",
        _ec2(*_ALONE, *_IN_VPC, *_IN_SUBNET),
        ("OWN",),
    ),
    # The interface of a NAT gateway has no tags; its address does, and is asked for as well.
    Rule("AddressInterface", "ec2", "DisassociateAddress", _ec2("network-interface")),
    Rule("NetworkTagNew", "ec2", "CreateTags", _ec2(*_ALONE, *_IN_VPC, *_IN_SUBNET), ("EC2_CREATES",)),
    # AWS makes a VPC's default security group without tags; the program adopts it.
    Rule("DefaultGroupTag", "ec2", "CreateTags", _ec2("security-group"), ("NEW", "UNCLAIMED")),
    Rule("CustomImages", "ec2", "ModifyImageAttribute", ("arn:{partition}:ec2:{region}::image/*",)),
    Rule("CustomSnapshots", "ec2", "ModifySnapshotAttribute", ("arn:{partition}:ec2:{region}::snapshot/*",)),
    Rule("EndpointNames", "route53", "AssociateVPCWithHostedZone", ("arn:{partition}:route53:::hostedzone/*",)),
    Rule(
        "Bucket",
        "s3",
        "CreateBucket DeleteBucket DeleteBucketPolicy GetAccelerateConfiguration GetBucketAcl GetBucketCORS "
        "GetBucketLocation GetBucketLogging GetBucketObjectLockConfiguration GetBucketOwnershipControls "
        "GetBucketPolicy GetBucketPublicAccessBlock GetBucketRequestPayment GetBucketTagging GetBucketVersioning "
        "GetBucketWebsite GetEncryptionConfiguration GetLifecycleConfiguration GetReplicationConfiguration ListBucket "
        "ListBucketVersions ListTagsForResource PutBucketOwnershipControls PutBucketPolicy PutBucketPublicAccessBlock "
        "PutBucketTagging PutBucketVersioning PutEncryptionConfiguration PutLifecycleConfiguration TagResource "
        "UntagResource",
        ("arn:{partition}:s3:::{bucket}",),
    ),
    Rule(
        "BucketObjects",
        "s3",
        "DeleteObject DeleteObjectVersion GetObject GetObjectTagging PutObject PutObjectTagging",
        ("arn:{partition}:s3:::{bucket}/*",),
    ),
    Rule("StorageKey", "kms", "CreateGrant Decrypt DescribeKey GenerateDataKey", ("{storage_key}",)),
    Rule(
        "Roles",
        "iam",
        "CreateRole DeleteRole DeleteRolePolicy GetRole GetRolePolicy ListAttachedRolePolicies "
        "ListInstanceProfilesForRole ListRolePolicies PutRolePolicy TagRole UntagRole UpdateAssumeRolePolicy "
        "UpdateRole UpdateRoleDescription",
        ("{roles}",),
    ),
    # EKS looks at the role of a Pod Identity association.
    Rule("GivenRoles", "iam", "GetRole", ("{pod_roles}",)),
    Rule("ManagedPolicies", "iam", "AttachRolePolicy DetachRolePolicy", ("{roles}",), ("MANAGED_POLICIES",)),
    Rule("KeyCreate", "kms", "CreateKey", ("*",), ("NEW",)),
    Rule("KeyTag", "kms", "TagResource", _KEYS, ("NEW", "NOT_ANOTHERS")),
    # Right after creation: it can take five minutes until a key's tags count (AWS KMS developer guide, ABAC).
    Rule(
        "KeyRead",
        "kms",
        "DescribeKey EnableKey EnableKeyRotation GetKeyPolicy GetKeyRotationStatus ListResourceTags",
        _KEYS,
    ),
    Rule(
        "KeyChange",
        "kms",
        "PutKeyPolicy ScheduleKeyDeletion TagResource UntagResource UpdateKeyDescription",
        _KEYS,
        ("OWN",),
    ),
    Rule("KeyGrant", "kms", "CreateGrant", _KEYS, ("FOR_SERVICES",)),
    Rule("EksCreate", "eks", "CreateCluster", ("*",), ("NEW",)),
    Rule(
        "Eks",
        "eks",
        "AssociateAccessPolicy CreateAccessEntry CreateAddon CreatePodIdentityAssociation DeleteAccessEntry "
        "DeleteAddon DeleteCluster DeletePodIdentityAssociation DescribeAccessEntry DescribeAddon DescribeCluster "
        "DescribePodIdentityAssociation DescribeUpdate DisassociateAccessPolicy ListAssociatedAccessPolicies "
        "TagResource UntagResource UpdateAccessEntry UpdateAddon UpdateClusterConfig UpdateClusterVersion "
        "UpdatePodIdentityAssociation",
        _EKS,
    ),
    Rule("LogGroupRead", "logs", "DescribeLogGroups", ("*",)),
    Rule(
        "LogGroup",
        "logs",
        "CreateLogGroup DeleteLogGroup DeleteRetentionPolicy ListTagsForResource ListTagsLogGroup PutRetentionPolicy "
        "TagLogGroup TagResource UntagLogGroup UntagResource",
        _here("logs", "log-group:{log_group}", "log-group:{log_group}:*"),
    ),
    Rule("HyperPodList", "sagemaker", "ListClusterSchedulerConfigs ListComputeQuotas", ("*",)),
    # Asked for by name before there is one, so that tags cannot narrow it.
    Rule(
        "HyperPodRead",
        "sagemaker",
        "DescribeCluster DescribeClusterSchedulerConfig DescribeComputeQuota ListClusterEvents ListTags",
        _HYPERPOD,
    ),
    Rule("HyperPodCreate", "sagemaker", "CreateCluster", (_CLUSTER,), ("NEW",)),
    Rule("TrainingPlans", "sagemaker", "CreateCluster UpdateCluster", ("{training_plans}", "{reserved_capacity}")),
    Rule(
        "GovernanceCreate",
        "sagemaker",
        "CreateClusterSchedulerConfig CreateComputeQuota",
        _HYPERPOD,
        ("NEW", "NOT_ANOTHERS"),
    ),
    Rule("HyperPodTagNew", "sagemaker", "AddTags", _HYPERPOD, ("NEW", "NOT_ANOTHERS")),
    Rule(
        "HyperPodChange",
        "sagemaker",
        "AddTags BatchDeleteClusterNodes DeleteCluster DeleteClusterSchedulerConfig DeleteComputeQuota DeleteTags "
        "UpdateCluster UpdateClusterSchedulerConfig UpdateComputeQuota",
        _HYPERPOD,
        ("OWN",),
    ),
    Rule("MetricsCreate", "aps", "CreateWorkspace", ("*",), ("NEW",)),
    Rule(
        "Metrics",
        "aps",
        "DeleteWorkspace DescribeLoggingConfiguration DescribeWorkspace ListTagsForResource TagResource UntagResource "
        "UpdateWorkspaceAlias",
        _WORKSPACES,
        ("OWN",),
    ),
    Rule("MetricsTagNew", "aps", "TagResource", _WORKSPACES, ("NEW", "NOT_ANOTHERS")),
    Rule(
        "Alerts",
        "aps",
        "CreateRuleGroupsNamespace DeleteRuleGroupsNamespace DescribeRuleGroupsNamespace ListTagsForResource "
        "PutRuleGroupsNamespace TagResource UntagResource",
        _RULE_GROUPS,
    ),
    Rule("GrafanaCreate", "grafana", "CreateWorkspace", ("*",), ("NEW",)),
    Rule("GrafanaTagNew", "grafana", "TagResource", _GRAFANA, ("NEW", "NOT_ANOTHERS")),
    Rule(
        "Grafana",
        "grafana",
        "DeleteWorkspace DescribeWorkspace DescribeWorkspaceAuthentication DescribeWorkspaceConfiguration "
        "ListTagsForResource TagResource UntagResource UpdateWorkspace UpdateWorkspaceAuthentication",
        _GRAFANA,
        ("OWN",),
    ),
    Rule("GrafanaAccount", "organizations", "DescribeOrganization", ("*",)),
    Rule(
        "GrafanaSignOn",
        "sso",
        "CreateManagedApplicationInstance DeleteManagedApplicationInstance DescribeRegisteredRegions "
        "GetSharedSsoConfiguration",
        ("*",),
    ),
    Rule("FileSystemRead", "fsx", "DescribeFileSystems", ("*",)),
    Rule("FileSystemCreate", "fsx", "CreateFileSystem TagResource", _FILE_SYSTEMS, ("NEW", "NOT_ANOTHERS")),
    Rule(
        "FileSystem",
        "fsx",
        "DeleteFileSystem ListTagsForResource TagResource UntagResource UpdateFileSystem",
        _FILE_SYSTEMS,
        ("OWN",),
    ),
)
