"""What it means when a resource goes that no guard keeps: why nothing is lost for good, and what stops meanwhile."""

from typing import Final

__all__ = ["GOES"]

# Every type that an edit of one key ever replaces or deletes unrefused, and no other.
GOES: Final = {
    "aws:ec2/eip:Eip": "Holds nothing; its public address is given back for good: lists of it must be changed.",
    "aws:ec2/natGateway:NatGateway": "Holds nothing; connections through it break off, new ones take the new way.",
    "aws:ec2/route:Route": "Holds nothing; it goes with the subnet or the way out that it was for.",
    "aws:ec2/routeTable:RouteTable": "Holds nothing; it goes with its subnet.",
    "aws:ec2/routeTableAssociation:RouteTableAssociation": "Holds nothing; it goes with its subnet.",
    "aws:ec2/subnet:Subnet": "Holds nothing; AWS deletes none in use, and a group that stands in it is guarded.",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "Holds nothing; calls take the way out instead, and what it costs.",
    "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": "Holds nothing; it goes with its subnet.",
    "aws:eks/accessEntry:AccessEntry": "Says who may enter; the role itself is its owner's, and stays.",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": "Says what an administrator may do; the role stays.",
    "aws:eks/addon:Addon": "Software that is installed again; with task governance, queues and what waits there go.",
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": "Says which role pods of an add-on take; it goes with it.",
    "aws:iam/role:Role": "Rights of an add-on or workspace that goes; nothing else takes it.",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": "Rights of a role that goes.",
    "hyperpod:index:AutoscaledGroup": "Stands for a group that is Karpenter's; the cluster has the group itself.",
    "hyperpod:index:ClusterSchedulerConfig": "Ranks and sharing, as the file had them; running work stays.",
    "hyperpod:index:ComputeQuota": "A team's quota, as the file had it; its queue goes with it, and admits nothing "
    "until it is back. The review names the team.",
    "kubernetes:helm.sh/v3:Release": "A chart that is installed again; KEDA takes what teams wrote for it "
    "(ScaledObjects) with it: keep those in a repository.",
    "kubernetes:karpenter.sh/v1:NodePool": "Karpenter drains its nodes and ends them: what runs there is evicted, "
    "and starts again where something owns it.",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole": "Rights of teams that have no quota any more.",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding": "Rights of teams that have no quota any more.",
    "kubernetes:rbac.authorization.k8s.io/v1:Role": "Rights of a team that has no quota or no members any more.",
    "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding": "Rights of a team that has no quota or no members any more.",
}
