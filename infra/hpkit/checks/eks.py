"""EKS: the control plane."""

from collections.abc import Iterator

from hpkit.catalog import kubernetes_versions
from hpkit.checks.rule import Context, Issue, Rule, listing
from hpkit.plan.endpoint import documentation_ranges, reserved_ranges

__all__ = ["RULES"]

_EKS = "Amazon EKS user guide, cluster endpoint access"
_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"


def _open_endpoint(context: Context) -> Iterator[Issue]:
    endpoint, path = context.spec.eks.endpoint, (*context.path, "eks", "endpoint")
    if endpoint.public and not endpoint.public_cidrs:
        yield Issue(
            (*path, "public"),
            "the Kubernetes API is public without publicCidrs, which EKS takes as 0.0.0.0/0",
            "List the ranges that may reach it, or remove `public`.",
        )
    for index, cidr in enumerate(endpoint.public_cidrs):
        if endpoint.public and cidr.strip().endswith("/0"):
            yield Issue(
                (*path, "publicCidrs", index),
                f"the Kubernetes API is open to the world ({cidr})",
                "List the ranges of your offices or VPN.",
            )
    if endpoint.public_cidrs and not endpoint.public:
        yield Issue(
            (*path, "publicCidrs"),
            f"{len(endpoint.public_cidrs)} publicCidrs do nothing while `public` is false",
            "Write `public: true`, or remove publicCidrs.",
            "warning",
        )


def _is_inside(context: Context) -> bool:
    """Whether only what is inside a VPC that the same run makes, or connected with it, reaches the Kubernetes API."""
    eks = context.spec.eks
    return eks.existing is None and context.spec.network.existing is None and not eks.endpoint.public


def _reachable(context: Context) -> Iterator[Issue]:
    if _is_inside(context) and not context.spec.eks.endpoint.private_from:
        yield Issue(
            (*context.path, "eks", "endpoint"),
            "the Kubernetes API is private, in a VPC that this stack makes: nobody outside reaches it, and `pulumi up` "
            "would stop when the nodes are paid for",
            "Name your own ranges (public: true, publicCidrs); or in privateFrom those of networks that are connected "
            "with the VPC.",
        )


def _connected_later(context: Context) -> Iterator[Issue]:
    if _is_inside(context) and context.spec.eks.endpoint.private_from:
        yield Issue(
            (*context.path, "eks", "endpoint", "privateFrom"),
            "this stack makes the VPC, so nothing is connected with it at first: the first `pulumi up` stops where it "
            "needs the Kubernetes API",
            "Let it stop there, connect the VPC (peering, transit gateway, VPN), and run it again; or name your own "
            "ranges for the first run (public: true, publicCidrs), or a VPC that is connected (network.existing).",
        )


def _of_the_internet(context: Context) -> Iterator[Issue]:
    for index, cidr in enumerate(context.spec.eks.endpoint.public_cidrs):
        if reserved_ranges([cidr]):
            yield Issue(
                (*context.path, "eks", "endpoint", "publicCidrs", index),
                f"{cidr} is not of the internet, from where publicCidrs let in; EKS refuses it",
                "Write it in privateFrom; in publicCidrs, the addresses that the internet sees of you.",
            )


def _of_somebody(context: Context) -> Iterator[Issue]:
    for index, cidr in enumerate(context.spec.eks.endpoint.public_cidrs):
        if documentation_ranges([cidr]):
            yield Issue(
                (*context.path, "eks", "endpoint", "publicCidrs", index),
                f"{cidr} is a range for documents (RFC 5737), so it lets nobody in: the local cloud takes it, on AWS "
                "`pulumi up` ends with it before it begins",
                "Write the addresses that the internet sees of you (curl https://checkip.amazonaws.com).",
            )


def _kubernetes(context: Context) -> Iterator[Issue]:
    offered = kubernetes_versions()
    version = context.spec.eks.version
    if version not in offered:
        yield Issue(
            (*context.path, "eks", "version"),
            f"HyperPod on EKS does not offer Kubernetes {version} (offered: {listing(list(offered), 20)})",
            f'Write "{offered[-1]}" or another of them.',
        )


RULES = (
    Rule("EKS001", "error", "The public endpoint is not open to the world.", _EKS, _open_endpoint),
    Rule("EKS002", "error", "The Kubernetes version is one that HyperPod on EKS offers.", _GUIDE, _kubernetes),
    Rule("EKS008", "error", "The Kubernetes API of a new VPC can be reached from somewhere.", _EKS, _reachable),
    Rule("EKS009", "warning", "A private Kubernetes API is in a VPC that is connected.", _EKS, _connected_later),
    Rule("EKS010", "error", "publicCidrs are ranges of the internet.", _EKS, _of_the_internet),
    Rule("EKS011", "warning", "publicCidrs are somebody's, not ranges for documents.", "RFC 5737", _of_somebody),
)
