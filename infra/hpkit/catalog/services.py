"""Regions, Kubernetes versions, add-ons, and the limits of the SageMaker API."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from hpkit.catalog.instances import Source, read_data

__all__ = [
    "CLOUDWATCH",
    "INFERENCE_OPERATOR",
    "PLACEHOLDER_ACCOUNT",
    "PLACEHOLDER_ACCOUNTS",
    "SPACES",
    "TASK_GOVERNANCE",
    "AddOn",
    "AddOnVersion",
    "Region",
    "ShapeLimits",
    "addons",
    "aws_regions",
    "find_region",
    "grafana_regions",
    "is_local_zone",
    "is_offered",
    "is_older",
    "is_zone_id",
    "is_zone_of",
    "kubernetes_versions",
    "last_zone",
    "limit",
    "region_in_words",
    "regions",
    "topology_gates",
    "vpc_endpoints",
]


# The account in AWS's documentation, the examples and the local cloud. On AWS, no one deploys to it.
PLACEHOLDER_ACCOUNT: Final = "123456789012"
# The accounts in the IAM user guide and the API models; the examples have the first two, in this order.
PLACEHOLDER_ACCOUNTS: Final = (
    *(PLACEHOLDER_ACCOUNT, "111122223333", "444455556666", "777788889999"),
    *("111111111111", "222222222222", "999999999999"),
)
INFERENCE_OPERATOR = "amazon-sagemaker-hyperpod-inference"
CLOUDWATCH = "amazon-cloudwatch-observability"
SPACES = "amazon-sagemaker-spaces"
TASK_GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
_ZONE_ID: Final = re.compile(r"(?P<region>[a-z]{3,}\d+)(?P<local>-[a-z]{3}\d+)?-az\d+\Z")
_ZONE_NAME: Final = re.compile(r"(?P<region>[a-z]{2}(?:-[a-z]+)+-\d+)(?P<local>-[a-z]{3}-\d+)?[a-z]\Z")
_DIRECTIONS: Final = {"northeast": "ne", "northwest": "nw", "southeast": "se", "southwest": "sw"}
_NUMBERS: Final = re.compile(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


@dataclass(frozen=True, slots=True)
class ShapeLimits:
    """A shape in the API's model; min and max are a range, or the length of text and lists."""

    type: str
    min: float | None
    max: float | None
    pattern: str | None
    enum: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """A region, and what is available in it."""

    name: str
    task_governance: bool
    hyperpod_eks: bool


@dataclass(frozen=True, slots=True)
class AddOnVersion:
    """A version of an add-on, with the Kueue that it ships (None for add-ons that ship none)."""

    version: str
    kueue: str | None


@dataclass(frozen=True, slots=True)
class AddOn:
    """An EKS add-on.

    default is hpkit's pin; None where no version is documented, so EKS's own default is taken. minimum is the oldest
    version that HyperPod or hpkit works with. needs_nodes: it stays DEGRADED until a node is there. requires: add-ons
    that must be there before it.
    """

    name: str
    default: str | None
    minimum: str | None
    needs_nodes: bool
    versions: tuple[AddOnVersion, ...]
    requires: tuple[str, ...]
    source: Source


@cache
def _services() -> Any:
    return read_data("services.json")


@cache
def _shapes() -> dict[str, Any]:
    shapes: dict[str, Any] = read_data("service_model.json")["shapes"]
    return shapes


def limit(shape: str) -> ShapeLimits:
    """Return the limits of a shape of the SageMaker API; raises KeyError if hpkit doesn't use the shape."""
    found = _shapes()[shape]
    return ShapeLimits(
        found["type"], found.get("min"), found.get("max"), found.get("pattern"), tuple(found.get("enum", ()))
    )


def regions() -> tuple[Region, ...]:
    """Return the regions that have HyperPod on EKS, sorted by name."""
    return tuple(
        Region(name, row["taskGovernance"], row["hyperpodEks"]) for name, row in sorted(_services()["regions"].items())
    )


def find_region(name: str) -> Region | None:
    """Return a region, or None if HyperPod on EKS isn't known to be available in it."""
    return next((region for region in regions() if region.name == name), None)


def grafana_regions() -> tuple[str, ...]:
    """Return the regions that have Amazon Managed Grafana, sorted by name."""
    return tuple(sorted(_services()["grafanaRegions"]["regions"]))


def aws_regions() -> tuple[str, ...]:
    """Return the names of AWS's regions, those without HyperPod too."""
    return tuple(_services()["awsRegions"]["names"])


def region_in_words(words: str) -> str | None:
    """Return the region with AWS's display name, such as `US West (Oregon)` or its `Oregon`, or None."""
    said = words.casefold()
    shown: dict[str, str] = {region: text.casefold() for region, text in _services()["awsRegions"]["names"].items()}
    found = [region for region, text in shown.items() if said == text or text.endswith(f"({said})")]
    return found[0] if len(found) == 1 else None


@cache
def _offerings() -> dict[str, frozenset[str]]:
    return {region: frozenset(types.split()) for region, types in read_data("offerings.json")["notOffered"].items()}


def is_offered(instance_type: str, region: str) -> bool:
    """Return whether EC2 may offer a type in a region: False only if the catalog's record excludes it."""
    return instance_type not in _offerings().get(region, frozenset())


def last_zone(region: str) -> str | None:
    """Return the last letter of a region's zones in any account, None if it isn't known."""
    found: str | None = _services()["lastZones"]["byRegion"].get(region)
    return found


def is_zone_id(zone: str) -> bool:
    """Return whether a zone is given by its ID, such as `use1-az1`, which is the same zone in every account.

    Source: AWS RAM user guide, "Availability Zone IDs for your AWS resources".
    """
    return _ZONE_ID.match(zone) is not None


def is_local_zone(zone: str) -> bool:
    """Return whether a name or an ID is that of a Local Zone (AWS Local Zones user guide, "Available Local Zones")."""
    found = _ZONE_ID.match(zone) or _ZONE_NAME.match(zone)
    return found is not None and found["local"] is not None


def is_zone_of(zone: str, region: str) -> bool:
    """Return whether a name or an ID is that of a zone or Local Zone in a region; IDs abbreviate the region."""
    if found := _ZONE_ID.match(zone):
        area, *directions, number = region.split("-")
        return found["region"] == area + "".join(_DIRECTIONS.get(each, each[0]) for each in directions) + number
    named = _ZONE_NAME.match(zone)
    return named is not None and named["region"] == region


def vpc_endpoints() -> tuple[str, ...]:
    """Return services with a VPC endpoint; others exist, which no similar platform is known to use."""
    return tuple(_services()["vpcEndpoints"]["services"])


def kubernetes_versions() -> tuple[str, ...]:
    """Return the Kubernetes versions that HyperPod on EKS offers, oldest first."""
    return tuple(_services()["kubernetesVersions"]["versions"])


def topology_gates(kueue: str | None) -> tuple[str, ...]:
    """Return the feature gates of a Kueue version that are changed together with topology-aware scheduling.

    Kueue 0.19 won't start with TopologyAwareScheduling off and the gates that need it on. An older Kueue rejects
    those gates as unknown. For an unlisted version, the result is TopologyAwareScheduling alone.
    """
    gates: dict[str, list[str]] = _services()["topologyGates"]["byKueue"]
    return tuple(gates.get(kueue or "", ("TopologyAwareScheduling",)))


def is_older(version: str, than: str) -> bool:
    """Return whether a version of an add-on is older than another, by its three numbers; False without them."""
    mine, minimum = _NUMBERS.match(version), _NUMBERS.match(than)
    if mine is None or minimum is None:
        return False
    return tuple(map(int, mine.groups())) < tuple(map(int, minimum.groups()))


@cache
def addons() -> tuple[AddOn, ...]:
    """Return the add-ons that hpkit knows, sorted by name."""
    data = _services()
    return tuple(
        AddOn(
            name=name,
            default=row["default"],
            minimum=row["minimum"],
            needs_nodes=row["needsNodes"],
            requires=tuple(row.get("requires", ())),
            versions=tuple(AddOnVersion(each["version"], each["kueue"]) for each in row["versions"]),
            source=Source(**data["sources"][row["source"]]),
        )
        for name, row in sorted(data["addons"].items())
    )
