"""EKS: the control plane."""

import datetime
from collections.abc import Iterator
from typing import Final

from hpkit.catalog import KubernetesVersion, cluster_hour, eks_versions, find_kubernetes_version, kubernetes_versions
from hpkit.checks.rule import Context, Issue, Rule, listing
from hpkit.config.document import Path
from hpkit.plan.endpoint import documentation_ranges, private_ranges, reserved_ranges, world_ranges
from hpkit.plan.principals import NOBODYS_ACCOUNT

__all__ = ["RULES"]

_EKS = "Amazon EKS user guide, cluster endpoint access"
_EKS_NETWORK = "Amazon EKS user guide, VPC and subnet considerations"
_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"
_CALENDAR = "Amazon EKS user guide, Kubernetes versions"
_POLICY = "Amazon EKS user guide, cluster upgrade policy; Amazon EKS pricing"
# EKS announces the end of standard support at least that long before.
_NOTICE_DAYS: Final = 60
_MOST_RANGES: Final = 40
_SERVICE_LINKED: Final = ":role/aws-service-role/"
_POLICY_OF_ENDPOINTS: Final = "eks-endpoint-not-open"


def _open_endpoint(context: Context) -> Iterator[Issue]:
    endpoint, path = context.spec.eks.endpoint, (*context.path, "eks", "endpoint")
    if endpoint.public and not endpoint.public_cidrs:
        yield Issue(
            (*path, "public"),
            "the Kubernetes API is public without publicCidrs, which EKS takes as 0.0.0.0/0",
            "List the ranges that may reach it, or remove `public`.",
            policy=_POLICY_OF_ENDPOINTS,
        )
    world = world_ranges(endpoint.public_cidrs)
    for index, cidr in enumerate(endpoint.public_cidrs):
        if endpoint.public and cidr in world:
            yield Issue(
                (*path, "publicCidrs", index),
                f"the Kubernetes API is open to the world ({cidr})",
                "List the ranges of your offices or VPN.",
                policy=_POLICY_OF_ENDPOINTS,
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
    cidrs, is_new = context.spec.eks.endpoint.public_cidrs, context.spec.eks.existing is None
    world = world_ranges(cidrs)
    for index, cidr in enumerate(cidrs):
        # What is open to all of the world is EKS001's.
        if reserved_ranges([cidr]) and cidr not in world:
            yield Issue(
                (*context.path, "eks", "endpoint", "publicCidrs", index),
                f"{cidr} has addresses that are not of the internet, from where publicCidrs let in; EKS refuses it",
                "Write the addresses that the internet sees of you (curl https://checkip.amazonaws.com)"
                + ("; this range belongs in privateFrom." if is_new and private_ranges([cidr]) else "."),
            )


def _of_somebody(context: Context) -> Iterator[Issue]:
    if context.spec.account == NOBODYS_ACCOUNT:
        return
    for index, cidr in enumerate(context.spec.eks.endpoint.public_cidrs):
        if documentation_ranges([cidr]):
            yield Issue(
                (*context.path, "eks", "endpoint", "publicCidrs", index),
                f"{cidr} is a range for documents (RFC 5737), so it lets nobody in: the local cloud takes it, on AWS "
                "`pulumi up` ends with it before it begins",
                "Write the addresses that the internet sees of you (curl https://checkip.amazonaws.com).",
            )


def _without_effect(context: Context) -> Iterator[Issue]:
    eks = context.spec.eks
    if eks.existing is not None and eks.endpoint.private_from:
        yield Issue(
            (*context.path, "eks", "endpoint", "privateFrom"),
            f"privateFrom does nothing here: the security groups of the control plane of {eks.existing.name} are its "
            "owner's",
            f"Remove it, and let its owner admit port 443 from {listing(list(eks.endpoint.private_from))} in a "
            "security group of the cluster.",
        )


def _network_of_its_own(context: Context) -> Iterator[Issue]:
    existing = context.spec.eks.existing
    if existing is not None and context.spec.network.existing is None:
        yield Issue(
            (*context.path, "eks", "existing"),
            f"the EKS cluster {existing.name} is there, and its VPC is not named: nodes would stand in a VPC that this "
            "stack makes, from where they do not reach it",
            "Name the cluster's VPC, subnets and security groups in network.existing.",
        )


def _kubernetes(context: Context) -> Iterator[Issue]:
    version, today = context.spec.eks.version, context.today
    known = {each.version: each for each in eks_versions()}
    ended = {name for name, each in known.items() if today is not None and each.support(today) == "UNSUPPORTED"}
    offered = [each for each in kubernetes_versions() if each == version or each not in ended]
    if version not in offered:
        yield Issue(
            (*context.path, "eks", "version"),
            f"HyperPod on EKS does not offer Kubernetes {version} (offered: {listing(offered, 20)}){_known(version)}",
            f'Write `"{offered[-1]}"` or another of them.',
        )


def _known(version: str) -> str:
    """Say what is known of a version that is newer than all that HyperPod is known to offer."""
    newest = kubernetes_versions()[-1]
    if _order(version) <= _order(newest):
        return ""
    found = find_kubernetes_version(version)
    if found is None:
        return (
            f"; the catalog knows EKS up to {eks_versions()[-1].version}, so when its support ends, and whether "
            "HyperPod takes it by now, is not known"
        )
    return (
        f"; EKS has it since {found.released}, in standard support until {found.end_of_standard_support}, "
        "but no source says that HyperPod takes it"
    )


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _left_standard_support(context: Context) -> Iterator[Issue]:
    # The guide says that STANDARD is upgraded at the end of standard support, and that the policy can be set while the
    # version is in it; of CreateCluster for a version that has left it already it says nothing.
    eks, today = context.spec.eks, context.today
    found = find_kubernetes_version(eks.version)
    if found is None or today is None or eks.existing is not None or eks.support_type == "EXTENDED":
        return
    if found.support(today) == "EXTENDED_SUPPORT":
        yield Issue(
            (*context.path, "eks", "version"),
            f"Kubernetes {eks.version} left standard support on {found.end_of_standard_support}, and supportType is "
            "STANDARD: EKS upgrades a cluster that is there, this file would then ask for a downgrade, and what "
            f"becomes of a new one is not documented; extended support costs {_prices()} until "
            f"{found.end_of_extended_support}",
            f"Write a newer version{_supported(today)}, or `supportType: EXTENDED`, which a cluster that is there must "
            "have had before that day.",
        )


def _existing_left_standard_support(context: Context) -> Iterator[Issue]:
    # Whether such a cluster has extended support is its owner's to say, and not in this file.
    eks, today = context.spec.eks, context.today
    found = find_kubernetes_version(eks.version)
    if found is None or today is None or eks.existing is None:
        return
    if found.support(today) == "EXTENDED_SUPPORT":
        yield Issue(
            (*context.path, "eks", "version"),
            f"Kubernetes {eks.version} left standard support on {found.end_of_standard_support}: the cluster "
            f"{eks.existing.name} costs {_prices()} until {found.end_of_extended_support}, or is upgraded by EKS",
            f"Upgrade the cluster, then write its version{_supported(today)}.",
        )


def _prices() -> str:
    hour = cluster_hour()
    return f"${hour.extended} a cluster-hour instead of ${hour.standard}"


def _supported(today: datetime.date) -> str:
    left = [f'"{each.version}"' for each in _standard(today)]
    return f" ({listing(left)})" if left else ""


def _standard(today: datetime.date) -> list[KubernetesVersion]:
    offered = kubernetes_versions()
    return [each for each in eks_versions() if each.version in offered and each.support(today) == "STANDARD_SUPPORT"]


def _left_extended_support(context: Context) -> Iterator[Issue]:
    version, today = context.spec.eks.version, context.today
    found = find_kubernetes_version(version)
    if found is not None and today is not None and found.support(today) == "UNSUPPORTED":
        yield Issue(
            (*context.path, "eks", "version"),
            f"the support of Kubernetes {version} ended on {found.end_of_extended_support}: EKS refuses a new cluster "
            "of it, and upgrades one that is there",
            f"Write a newer version{_supported(today)}, one minor version at a time for a cluster that is there.",
        )


def _leaves_support(context: Context) -> Iterator[Issue]:
    eks, today = context.spec.eks, context.today
    found = find_kubernetes_version(eks.version)
    if found is None or today is None:
        return
    support = found.support(today)
    if support == "UNSUPPORTED":
        return
    standard = support == "STANDARD_SUPPORT"
    end = found.end_of_standard_support if standard else found.end_of_extended_support
    days = (end - today).days
    if days > _NOTICE_DAYS:
        return
    if standard and eks.support_type == "EXTENDED" and eks.existing is None:
        then = f"a cluster of it costs {_prices()} from then on"
    else:
        then = "EKS upgrades a cluster of it from then on, and this file would ask for a downgrade"
    newer = [each for each in _standard(today) if _order(each.version) > _order(eks.version)]
    # One that stays for a while, if there is one: else the fix would be warned of next.
    lasting = [each for each in newer if (each.end_of_standard_support - today).days > _NOTICE_DAYS] or newer
    fix = (
        f'Write `"{lasting[0].version}"` before.'
        if lasting
        else "Write a newer version before, once HyperPod offers one."
    )
    yield Issue(
        (*context.path, "eks", "version"),
        f"Kubernetes {eks.version} leaves {'standard' if standard else 'extended'} support on {end}, in {days} days; "
        f"{then}",
        fix,
    )


def _number_of_ranges(context: Context) -> Iterator[Issue]:
    given = context.spec.eks.endpoint.public_cidrs
    if len(given) > _MOST_RANGES:
        yield Issue(
            (*context.path, "eks", "endpoint", "publicCidrs"),
            f"{len(given)} ranges may reach the Kubernetes API, and EKS takes {_MOST_RANGES}; no account has more",
            "Join ranges that lie beside each other, or go through a VPN.",
        )


def _service_linked(context: Context) -> Iterator[Issue]:
    eks = context.spec.eks
    lists: list[tuple[Path, tuple[str, ...]]] = [
        ((*context.path, "eks", "administrators"), eks.administrators),
        ((*context.path, "eks", "viewers"), eks.viewers),
    ]
    named = [((*path, index), role) for path, roles in lists for index, role in enumerate(roles)]
    teams = {team.name for team in context.plan.teams}
    named += [(member.path, member.role) for member in context.members if member.team in teams and member.admitted]
    for path, role in named:
        if _SERVICE_LINKED in role:
            yield Issue(
                path,
                f"{role} is linked to a service, and EKS admits no service-linked role to a cluster",
                "Name the role that people use.",
            )


RULES = (
    Rule("EKS019", "error", "At most 40 ranges reach the Kubernetes API.", "Amazon EKS endpoints and quotas",
         _number_of_ranges),
    Rule("EKS020", "error", "Who is let into the cluster is no service-linked role.",
         "Amazon EKS user guide, access entries: considerations", _service_linked),
    Rule("EKS001", "error", "The public endpoint is not open to the world.", _EKS, _open_endpoint),
    Rule("EKS002", "error", "The Kubernetes version is one that HyperPod on EKS offers.", _GUIDE, _kubernetes),
    Rule(
        "EKS003", "error", "The Kubernetes version is in standard support, or extended support is asked for.", _POLICY,
        _left_standard_support,
    ),
    Rule("EKS004", "error", "The Kubernetes version is supported by EKS.", _CALENDAR, _left_extended_support),
    Rule("EKS005", "warning", "The Kubernetes version does not leave its support soon.", _CALENDAR, _leaves_support),
    Rule(
        "EKS006", "warning", "The Kubernetes version of an existing cluster is in standard support.", _POLICY,
        _existing_left_standard_support,
    ),
    Rule("EKS008", "error", "The Kubernetes API of a new VPC can be reached from somewhere.", _EKS, _reachable),
    Rule("EKS009", "warning", "A private Kubernetes API is in a VPC that is connected.", _EKS, _connected_later),
    Rule("EKS010", "error", "publicCidrs are ranges of the internet.", _EKS, _of_the_internet),
    Rule("EKS018", "error", "An existing EKS cluster stands with its network.", _EKS_NETWORK, _network_of_its_own),
    Rule("EKS011", "warning", "publicCidrs are somebody's, not ranges for documents.", "RFC 5737", _of_somebody),
    Rule("EKS012", "error", "privateFrom is for an EKS cluster that the kit makes.", _EKS, _without_effect),
)  # fmt: skip
