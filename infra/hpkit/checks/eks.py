"""EKS: the control plane."""

import datetime
from collections.abc import Iterator
from typing import Final

from hpkit.catalog import (
    PLACEHOLDER_ACCOUNTS,
    KubernetesVersion,
    cluster_hour,
    eks_versions,
    find_kubernetes_version,
    kubernetes_versions,
    version_order,
)
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.reading.document import Path
from hpkit.plan.endpoint import documentation_ranges, private_ranges, reserved_ranges, world_ranges
from hpkit.text.formatting import listing

__all__ = ["RULES", "offered_versions"]

_EKS = "Amazon EKS user guide, cluster endpoint access"
_EKS_NETWORK = "Amazon EKS user guide, VPC and subnet considerations"
_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"
_CALENDAR = "Amazon EKS user guide, Kubernetes versions"
_POLICY = "Amazon EKS user guide, cluster upgrade policy; Amazon EKS pricing"
# EKS announces the end of standard support at least that long before.
_NOTICE_DAYS: Final = 60
_POLICY_OF_ENDPOINTS: Final = "eks-endpoint-not-open"


def _open_endpoint(context: Context) -> Iterator[Issue]:
    endpoint, path = context.spec.eks.endpoint, (*context.path, "eks", "endpoint")
    if endpoint.public and not endpoint.public_cidrs:
        yield Issue(
            (*path, "public"),
            "the Kubernetes API is public without publicCidrs, which defaults to 0.0.0.0/0 in EKS",
            "Set publicCidrs to the ranges that may reach it, or remove `public`.",
            policy=_POLICY_OF_ENDPOINTS,
        )
    world = world_ranges(endpoint.public_cidrs)
    for index, cidr in enumerate(endpoint.public_cidrs):
        if endpoint.public and cidr in world:
            yield Issue(
                (*path, "publicCidrs", index),
                f"the Kubernetes API is open to the whole internet ({cidr})",
                "Use the ranges of your offices or VPN.",
                policy=_POLICY_OF_ENDPOINTS,
            )
    if endpoint.public_cidrs and not endpoint.public:
        yield Issue(
            (*path, "publicCidrs"),
            f"publicCidrs ({len(endpoint.public_cidrs)}) have no effect while `public` is false",
            "Set `public: true`, or remove publicCidrs.",
            "warning",
        )


def _reachable(context: Context) -> Iterator[Issue]:
    eks = context.spec.eks
    path: Path = (*context.path, "eks", "endpoint")
    if eks.existing is not None and eks.endpoint.private_from:
        yield Issue(
            (*path, "privateFrom"),
            "privateFrom has no effect here: hpkit doesn't manage the security groups of the existing cluster "
            f"{eks.existing.name}",
            "Remove it, and ask the cluster's owner to allow port 443 from "
            f"{listing(list(eks.endpoint.private_from))} in a security group of the cluster.",
        )
    # Only the VPC that this stack creates, and networks connected with it, reach a private API.
    if eks.existing is not None or context.spec.network.existing is not None or eks.endpoint.public:
        return
    if not eks.endpoint.private_from:
        yield Issue(
            path,
            "the Kubernetes API is private, in a VPC that this stack creates, so no one outside can reach it. "
            "`pulumi up` would stop after the nodes start to cost money",
            "Set public and publicCidrs to your own ranges. Or set privateFrom to the ranges of networks that are "
            "connected with the VPC.",
        )
    else:
        yield Issue(
            (*path, "privateFrom"),
            "this stack creates the VPC, so no network is connected with it yet, and the first `pulumi up` stops "
            "where it needs the Kubernetes API",
            "Let it stop there, connect the VPC (peering, transit gateway, VPN), and run it again. Or allow your "
            "own ranges for the first run (public, publicCidrs), or use a connected VPC (network.existing).",
            "warning",
        )


def _of_the_internet(context: Context) -> Iterator[Issue]:
    cidrs, is_new = context.spec.eks.endpoint.public_cidrs, context.spec.eks.existing is None
    world = world_ranges(cidrs)
    for index, cidr in enumerate(cidrs):
        # EKS001 reports endpoints that are open to the whole internet.
        if reserved_ranges([cidr]) and cidr not in world:
            yield Issue(
                (*context.path, "eks", "endpoint", "publicCidrs", index),
                f"{cidr} has addresses outside the public internet, which EKS rejects in publicCidrs",
                "Use the public addresses from which you connect (`curl https://checkip.amazonaws.com` prints yours)"
                + ("; this range belongs in privateFrom." if is_new and private_ranges([cidr]) else "."),
            )
        elif documentation_ranges([cidr]) and context.spec.account not in PLACEHOLDER_ACCOUNTS:
            yield Issue(
                (*context.path, "eks", "endpoint", "publicCidrs", index),
                f"{cidr} is a documentation range (RFC 5737) that admits no one; the local cloud accepts it, but on "
                "AWS `pulumi up` fails before it starts",
                "Use the public addresses from which you connect (`curl https://checkip.amazonaws.com` prints yours).",
                "warning",
            )


def _network_of_its_own(context: Context) -> Iterator[Issue]:
    existing = context.spec.eks.existing
    if existing is not None and context.spec.network.existing is None:
        yield Issue(
            (*context.path, "eks", "existing"),
            f"the EKS cluster {existing.name} exists, but its VPC isn't set; nodes would be in a VPC that this stack "
            "creates, and couldn't reach the cluster",
            "Set network.existing to the cluster's VPC, subnets and security groups.",
        )


def offered_versions(today: datetime.date | None) -> list[str]:
    """Return the Kubernetes versions that HyperPod offers, without those whose support ended before a date."""
    ended = {each.version for each in eks_versions() if today and each.support(today) == "UNSUPPORTED"}
    return [each for each in kubernetes_versions() if each not in ended]


def _kubernetes(context: Context) -> Iterator[Issue]:
    version = context.spec.eks.version
    # EKS004 reports a version that HyperPod offers, and EKS no longer supports.
    if version not in kubernetes_versions():
        offered = offered_versions(context.today)
        yield Issue(
            (*context.path, "eks", "version"),
            f"HyperPod on EKS doesn't offer Kubernetes {version} (offered: {listing(offered, 20)}){_known(version)}",
            f'Use `"{offered[-1]}"`, or another offered version.',
        )


def _known(version: str) -> str:
    """Report a version that is newer than all that HyperPod is known to offer."""
    newest = kubernetes_versions()[-1]
    if version_order(version) <= version_order(newest):
        return ""
    release = find_kubernetes_version(version)
    if release is None:
        return (
            f"; the catalog's newest EKS version is {eks_versions()[-1].version}, so the support dates of {version}, "
            "and whether HyperPod supports it, aren't known"
        )
    return (
        f"; EKS has offered it since {release.released}, with standard support until "
        f"{release.end_of_standard_support}, but no source states that HyperPod supports it"
    )


def _left_standard_support(context: Context) -> Iterator[Issue]:
    # The guide states that a STANDARD version is upgraded at the end of standard support, and that the policy can be
    # set while the version is in standard support. It doesn't mention CreateCluster with a later version.
    eks, today = context.spec.eks, context.today
    release = find_kubernetes_version(eks.version)
    if release is None or today is None or release.support(today) != "EXTENDED_SUPPORT":
        return
    if eks.existing is not None:
        # The cluster's owner decides about extended support, and the file doesn't contain it.
        yield Issue(
            (*context.path, "eks", "version"),
            f"Kubernetes {eks.version} left standard support on {release.end_of_standard_support}: the cluster "
            f"{eks.existing.name} costs {_prices(context)} until {release.end_of_extended_support}, or EKS upgrades it",
            f"Upgrade the cluster, then set its new version{_supported(today)}.",
            "warning",
        )
    elif eks.support_type == "STANDARD":
        yield Issue(
            (*context.path, "eks", "version"),
            f"Kubernetes {eks.version} left standard support on {release.end_of_standard_support}, and supportType is "
            "STANDARD: EKS upgrades existing clusters, and this file would then request a downgrade. Extended "
            f"support costs {_prices(context)} until {release.end_of_extended_support}",
            f"Use a newer version{_supported(today)}. Or set `supportType: EXTENDED`; an existing cluster must have "
            "had it before that day.",
        )


def _prices(context: Context) -> str:
    hour = cluster_hour(context.spec.region)
    return f"${hour.extended} per cluster-hour instead of ${hour.standard}"


def _supported(today: datetime.date) -> str:
    left = [f'"{each.version}"' for each in _standard(today)]
    return f" ({listing(left)})" if left else ""


def _standard(today: datetime.date) -> list[KubernetesVersion]:
    offered = kubernetes_versions()
    return [each for each in eks_versions() if each.version in offered and each.support(today) == "STANDARD_SUPPORT"]


def _left_extended_support(context: Context) -> Iterator[Issue]:
    version, today = context.spec.eks.version, context.today
    release = find_kubernetes_version(version)
    if release is not None and today is not None and release.support(today) == "UNSUPPORTED":
        yield Issue(
            (*context.path, "eks", "version"),
            f"support of Kubernetes {version} ended on {release.end_of_extended_support}: EKS rejects new clusters "
            "with this version, and upgrades existing ones",
            f"Use a newer version{_supported(today)}. Upgrade existing clusters one minor version at a time.",
        )


def _leaves_support(context: Context) -> Iterator[Issue]:
    eks, today = context.spec.eks, context.today
    release = find_kubernetes_version(eks.version)
    if release is None or today is None:
        return
    support = release.support(today)
    if support == "UNSUPPORTED":
        return
    standard = support == "STANDARD_SUPPORT"
    end = release.end_of_standard_support if standard else release.end_of_extended_support
    days = (end - today).days
    if days > _NOTICE_DAYS:
        return
    if standard and eks.support_type == "EXTENDED" and eks.existing is None:
        then = f"from then on, a cluster costs {_prices(context)}"
    else:
        then = "EKS then upgrades the cluster, and this file would request a downgrade"
    newer = [each for each in _standard(today) if version_order(each.version) > version_order(eks.version)]
    # One that stays for a while, if there is one: else the fix would be warned of next.
    lasting = [each for each in newer if (each.end_of_standard_support - today).days > _NOTICE_DAYS] or newer
    fix = (
        f'Use `"{lasting[0].version}"` before then.'
        if lasting
        else "Upgrade before then, once HyperPod offers a newer version."
    )
    yield Issue(
        (*context.path, "eks", "version"),
        f"Kubernetes {eks.version} leaves {'standard' if standard else 'extended'} support on {end}, in {days} days; "
        f"{then}",
        fix,
    )


RULES = (
    Rule("EKS001", "error", "The public endpoint isn't open to the whole internet.", _EKS, _open_endpoint),
    Rule("EKS002", "error", "HyperPod on EKS offers the Kubernetes version.", _GUIDE, _kubernetes),
    Rule(
        "EKS003",
        "error",
        "The Kubernetes version is in standard support, or extended support is enabled.",
        _POLICY,
        _left_standard_support,
    ),
    Rule("EKS004", "error", "EKS supports the Kubernetes version.", _CALENDAR, _left_extended_support),
    Rule("EKS005", "warning", "Support of the Kubernetes version doesn't end soon.", _CALENDAR, _leaves_support),
    Rule("EKS008", "error", "The Kubernetes API is reachable from outside the VPC.", _EKS, _reachable),
    Rule(
        "EKS010",
        "error",
        "publicCidrs are public ranges, and none is for documentation (192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24).",
        f"{_EKS}; RFC 5737",
        _of_the_internet,
    ),
    Rule("EKS018", "error", "An existing EKS cluster requires an existing network.", _EKS_NETWORK, _network_of_its_own),
)
