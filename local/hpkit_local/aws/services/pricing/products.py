"""The products in the endpoint's price list: some of those that AWS lists for us-east-1 and us-west-2.

HyperPod's prices are the catalog's. Those of EKS, NAT gateways and endpoints are from the price list of August and
September 2026, that of FSx for Lustre is from its pricing page. Both regions have the same.

It lacks volumes of HyperPod, and throughputs of FSx for Lustre other than 125 MB/s/TiB.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from hpkit.catalog.instances import read_data

__all__ = ["SERVICES", "products"]

SERVICES: Final = ("AmazonEC2", "AmazonEKS", "AmazonFSx", "AmazonSageMaker", "AmazonVPC")
_PREFIXES: Final = {"us-east-1": "USE1", "us-west-2": "USW2"}
_LOCATIONS: Final = {"us-east-1": "US East (N. Virginia)", "us-west-2": "US West (Oregon)"}
# The code of the offer term "on demand", and that of a rate per hour or GB.
_TERM: Final = "JRTCKXETXF"
_RATE: Final = "6YS6EN2CT7"
_VERSION: Final = "20260925000000"
_PUBLISHED: Final = "2026-09-25T00:00:00Z"
# Service, product family, usage type, unit, price, other attributes.
_PLATFORM: Final[tuple[tuple[str, str, str, str, str, dict[str, str]], ...]] = (
    ("AmazonEKS", "Compute", "AmazonEKS-Hours:perCluster", "Hours", "0.1000000000", {"operation": "CreateOperation"}),
    ("AmazonEKS", "Compute", "AmazonEKS-Hours:extendedSupport", "Hours", "0.5000000000", {}),
    ("AmazonEC2", "NAT Gateway", "NatGateway-Hours", "Hrs", "0.0450000000", {"group": "NGW:NatGateway"}),
    ("AmazonEC2", "NAT Gateway", "NatGateway-Bytes", "GB", "0.0450000000", {"group": "NGW:NatGateway"}),
    ("AmazonVPC", "VpcEndpoint", "VpcEndpoint-Hours", "Hrs", "0.0100000000", {"group": "VPCE:VpcEndpoint"}),
    (
        "AmazonFSx",
        "Storage",
        "Storage.SSD.125",
        "GB-Mo",
        "0.1450000000",
        {"fileSystemType": "Lustre", "storageType": "SSD", "throughputCapacity": "125"},
    ),
)


def products() -> Iterator[dict[str, Any]]:
    """Yield every product in the form of an element of `PriceList`, before it is written as JSON."""
    for block in read_data("prices.json")["prices"]:
        for name, price in block["hourly"].items():
            attributes = {"component": "Cluster", "instanceType": f"{name}-Cluster", "instanceName": name}
            yield _product(
                "AmazonSageMaker", "ML Instance", f"Cluster:{name}", "Hrs", price, block["region"], attributes
            )
    for region in _PREFIXES:
        for service, family, usage, unit, price, attributes in _PLATFORM:
            yield _product(service, family, usage, unit, price, region, attributes)


def _product(
    service: str, family: str, usage: str, unit: str, price: str, region: str, attributes: dict[str, str]
) -> dict[str, Any]:
    # Usage types of EC2 have no prefix in us-east-1.
    prefix = "" if service == "AmazonEC2" and region == "us-east-1" else f"{_PREFIXES[region]}-"
    usage_type = f"{prefix}{usage}"
    sku = hashlib.sha256(f"{service}:{usage_type}".encode()).hexdigest()[:16].upper()
    rate = {
        "rateCode": f"{sku}.{_TERM}.{_RATE}",
        "description": f"${price} per {unit} of {usage_type}",
        "unit": unit,
        "beginRange": "0",
        "endRange": "Inf",
        "pricePerUnit": {"USD": price},
        "appliesTo": [],
    }
    term = {
        "sku": sku,
        "offerTermCode": _TERM,
        "effectiveDate": _PUBLISHED,
        "priceDimensions": {rate["rateCode"]: rate},
        "termAttributes": {},
    }
    return {
        "product": {
            "sku": sku,
            "productFamily": family,
            "attributes": {
                "servicecode": service,
                "location": _LOCATIONS[region],
                "locationType": "AWS Region",
                "regionCode": region,
                "usagetype": usage_type,
                **attributes,
            },
        },
        "serviceCode": service,
        "terms": {"OnDemand": {f"{sku}.{_TERM}": term}},
        "version": _VERSION,
        "publicationDate": _PUBLISHED,
    }
