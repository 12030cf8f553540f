"""EKS's Kubernetes versions: end of support, prices, and add-on versions."""

import datetime
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Final, Literal

from hpkit.catalog.instances import Source, read_data
from hpkit.catalog.prices import region_prices
from hpkit.catalog.services import addons

__all__ = [
    "ClusterHour",
    "KubernetesVersion",
    "OfferedAddon",
    "Support",
    "addon_pin",
    "cluster_hour",
    "eks_versions",
    "find_kubernetes_version",
    "offered_addon",
    "version_order",
]

Support = Literal["STANDARD_SUPPORT", "EXTENDED_SUPPORT", "UNSUPPORTED"]
_BUILD: Final = "-eksbuild."


@dataclass(frozen=True, slots=True)
class KubernetesVersion:
    """A Kubernetes version of EKS; a period of support is over from its day on, in UTC."""

    version: str
    released: datetime.date
    end_of_standard_support: datetime.date
    end_of_extended_support: datetime.date
    source: Source

    def support(self, today: datetime.date) -> Support:
        """Return the support that EKS gives on a day, as DescribeClusterVersions spells it."""
        if today < self.end_of_standard_support:
            return "STANDARD_SUPPORT"
        return "EXTENDED_SUPPORT" if today < self.end_of_extended_support else "UNSUPPORTED"


@dataclass(frozen=True, slots=True)
class ClusterHour:
    """The price of a cluster per hour in US dollars, while its version is in standard and in extended support."""

    standard: Decimal
    extended: Decimal
    source: Source


@dataclass(frozen=True, slots=True)
class OfferedAddon:
    """The versions of an add-on that EKS lists for one Kubernetes version, newest first, and its own default."""

    versions: tuple[str, ...]
    default: str | None


@cache
def _data() -> Any:
    return read_data("eks.json")


def _source(name: str) -> Source:
    return Source(**_data()["sources"][name])


def version_order(version: str) -> tuple[int, ...]:
    """Return a Kubernetes version as numbers, by which versions are compared."""
    return tuple(int(number) for number in version.split("."))


@cache
def eks_versions() -> tuple[KubernetesVersion, ...]:
    """Return every Kubernetes version of EKS whose dates are known, oldest first, including unsupported ones."""
    rows = _data()["kubernetesVersions"]
    day = datetime.date.fromisoformat
    return tuple(
        KubernetesVersion(
            version,
            released=day(rows[version]["released"]),
            end_of_standard_support=day(rows[version]["endOfStandardSupport"]),
            end_of_extended_support=day(rows[version]["endOfExtendedSupport"]),
            source=_source(rows[version]["source"]),
        )
        for version in sorted(rows, key=version_order)
    )


def find_kubernetes_version(version: str) -> KubernetesVersion | None:
    """Return a version, or None if its dates aren't known."""
    return next((each for each in eks_versions() if each.version == version), None)


def cluster_hour(region: str) -> ClusterHour:
    """Return the price of a cluster per hour in each period: the project's own prices, otherwise the catalog's.

    Extended support is charged in addition to the cluster's hour. Source: Amazon EKS pricing.
    """
    own = region_prices().get(region)
    if own is not None and {"eksClusterHour", "eksExtendedSupportHour"} <= own.platform.keys():
        standard = own.platform["eksClusterHour"]
        return ClusterHour(standard, standard + own.platform["eksExtendedSupportHour"], own.source)
    row = _data()["clusterHour"]
    return ClusterHour(Decimal(row["standard"]), Decimal(row["extended"]), _source(row["source"]))


def offered_addon(name: str, kubernetes: str) -> OfferedAddon | None:
    """Return EKS's versions of an add-on for a Kubernetes version; None if they aren't in the catalog."""
    row = _data()["addonVersions"].get(name, {}).get(kubernetes)
    return None if row is None else OfferedAddon(tuple(row["versions"]), row["default"])


def addon_pin(name: str, kubernetes: str) -> str | None:
    """Return the version of an add-on that hpkit installs with a Kubernetes version; None leaves it to EKS.

    This is hpkit's own pin if EKS lists it for that version, or if the list isn't known. Otherwise it's the newest
    listed version of a release that hpkit knows, or EKS's default.
    """
    addon = next((each for each in addons() if each.name == name), None)
    if addon is None or addon.default is None:
        return None
    offered = offered_addon(name, kubernetes)
    if offered is None or addon.default in offered.versions:
        return addon.default
    known = {each.version.partition(_BUILD)[0] for each in addon.versions}
    return next((each for each in offered.versions if each.partition(_BUILD)[0] in known), offered.default)
