"""Types that no guard protects: what it means when one is replaced or deleted, and why nothing is lost for good."""

from typing import Final

__all__ = ["UNGUARDED_TYPES"]

# Every type that an edit of one key ever replaces or deletes without a refusal, and no other.
UNGUARDED_TYPES: Final = {
    "aws:ec2/route:Route": "Holds nothing; it goes with the subnet or the gateway that it was for.",
    "aws:ec2/routeTable:RouteTable": "Holds nothing; it goes with its subnet.",
    "aws:ec2/routeTableAssociation:RouteTableAssociation": "Holds nothing; it goes with its subnet.",
    "aws:ec2/subnet:Subnet": "Holds nothing; AWS deletes none in use, and a group that stands in it is guarded.",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "Holds nothing; calls take the network's egress instead, at its price.",
    "aws:ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation": "Holds nothing; it goes with its subnet.",
    "aws:eks/accessEntry:AccessEntry": "Says who may enter; the role itself is its owner's, and stays.",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": "Says what an administrator may do; the role stays.",
    "hyperpod:index:AutoscaledGroup": "Stands for a group that is Karpenter's; the cluster has the group itself.",
    "kubernetes:core/v1:LimitRange": "Requests of containers that state none; running pods keep theirs.",
    "kubernetes:core/v1:NamespacePatch": "Labels of a team's namespace, which goes with the quota; that is guarded.",
    "kubernetes:rbac.authorization.k8s.io/v1:Role": "Rights of a team that has no quota or no members any more.",
    "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding": "Rights of a team that has no quota or no members any more.",
}
