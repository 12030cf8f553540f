"""EKS: the control plane."""

from collections.abc import Iterator

from hpkit.catalog import kubernetes_versions
from hpkit.checks.rule import Context, Issue, Rule, listing

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
)
