"""Kubernetes versions at the time of the endpoint's clock: which are offered, their support, and their clusters.

The dates are the catalog's. Sources of the rejections in the Amazon EKS user guide:

- "Understand the Kubernetes version lifecycle on EKS": no new cluster of a version whose extended support is over.
- "View current cluster upgrade policy": the policy can't change while the version is out of standard support.

Neither page states that EKS rejects a new cluster with policy STANDARD for a version in extended support. EKS may
upgrade it at once instead. The program never asks for that (rule EKS003). The wording of EKS's rejections isn't
documented. Clusters aren't upgraded automatically here.
"""

import datetime

from hpkit.catalog import KubernetesVersion, eks_versions
from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError

__all__ = ["check_policy_change", "check_version", "default_version", "next_version", "offered", "reaches"]

INVALID = "InvalidParameterException"
# The deprecated member `status` spells them otherwise.
_STATUSES = {
    "standard-support": "STANDARD_SUPPORT",
    "extended-support": "EXTENDED_SUPPORT",
    "unsupported": "UNSUPPORTED",
}


def _today(ctx: Context) -> datetime.date:
    return datetime.datetime.fromtimestamp(ctx.now, tz=datetime.UTC).date()


def _released(ctx: Context) -> list[KubernetesVersion]:
    return [each for each in eks_versions() if each.released <= _today(ctx)]


def offered(ctx: Context) -> list[str]:
    """Return the versions that are supported on the day, oldest first."""
    return [each.version for each in _released(ctx) if each.support(_today(ctx)) != "UNSUPPORTED"]


# Inferred from: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
def default_version(ctx: Context) -> str:
    """Return the default version of a cluster: the newest in standard support."""
    standard = [each for each in _released(ctx) if each.support(_today(ctx)) == "STANDARD_SUPPORT"]
    if not standard:
        raise ServiceError(INVALID, f"no Kubernetes version known here is in standard support on {_today(ctx)}")
    return standard[-1].version


# Source: https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
def check_version(ctx: Context, version: str, support_type: str) -> None:
    """Reject a version that a new cluster cannot have."""
    releases = {each.version: each for each in _released(ctx)}
    if version not in releases:
        raise ServiceError(INVALID, f"unsupported Kubernetes version {version}; supported: {', '.join(offered(ctx))}")
    release = releases[version]
    support = release.support(_today(ctx))
    if support == "UNSUPPORTED":
        raise ServiceError(
            INVALID,
            f"unsupported Kubernetes version {version}: its extended support ended on "
            f"{release.end_of_extended_support}; supported: {', '.join(offered(ctx))}",
        )
    if support == "EXTENDED_SUPPORT" and support_type == "STANDARD":
        raise ServiceError(
            INVALID,
            f"Kubernetes version {version} left standard support on {release.end_of_standard_support}: "
            "upgradePolicy.supportType must be EXTENDED",
        )


def next_version(ctx: Context, version: str) -> str | None:
    """Return the version that a cluster can be upgraded to: one minor version up, and supported."""
    later = [each for each in _released(ctx) if reaches(each.version, version) and each.version != version]
    return later[0].version if later and later[0].version in offered(ctx) else None


# Source: https://docs.aws.amazon.com/eks/latest/userguide/disable-extended-support.html
def check_policy_change(ctx: Context, version: str) -> None:
    """Reject another upgrade policy while the version is out of standard support."""
    release = next((each for each in eks_versions() if each.version == version), None)
    if release is not None and release.support(_today(ctx)) != "STANDARD_SUPPORT":
        raise ServiceError(
            "InvalidRequestException",
            f"The upgrade policy cannot change: Kubernetes version {version} left standard support on "
            f"{release.end_of_standard_support}",
        )


def reaches(version: str, least: str) -> bool:
    """Return whether a version is not older than another."""
    return _order(version) >= _order(least)


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


@operation("eks", "DescribeClusterVersions")
def describe_cluster_versions(ctx: Context, params: Record) -> Record:
    """Return Kubernetes versions and their dates; unsupported ones only if all are requested."""
    status = params.get("versionStatus") or _STATUSES.get(params.get("status", ""))
    requested = params.get("clusterVersions")
    newest_first = list(reversed(_released(ctx)))
    entries = [_version(ctx, each) for each in newest_first if not requested or each.version in requested]
    if not params.get("includeAll") and not requested and status != "UNSUPPORTED":
        entries = [each for each in entries if each["versionStatus"] != "UNSUPPORTED"]
    if status:
        entries = [each for each in entries if each["versionStatus"] == status]
    if params.get("defaultOnly"):
        entries = [each for each in entries if each["defaultVersion"]]
    if params.get("clusterType", "eks") != "eks":
        entries = []
    return page("clusterVersions", entries, params, code=INVALID)


def _version(ctx: Context, release: KubernetesVersion) -> Record:
    support = release.support(_today(ctx))
    spelled = {new: old for old, new in _STATUSES.items()}
    return {
        "clusterVersion": release.version,
        "clusterType": "eks",
        "defaultVersion": release.version == default_version(ctx),
        "releaseDate": _midnight(release.released),
        "endOfStandardSupportDate": _midnight(release.end_of_standard_support),
        "endOfExtendedSupportDate": _midnight(release.end_of_extended_support),
        "status": spelled[support],
        "versionStatus": support,
    }


def _midnight(day: datetime.date) -> float:
    return datetime.datetime.combine(day, datetime.time(), tzinfo=datetime.UTC).timestamp()
