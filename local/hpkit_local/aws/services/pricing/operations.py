"""GetProducts: the products of a service that match every filter."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.pricing.products import SERVICES, products

__all__: list[str] = []

_FORMAT: Final = "aws_v1"
# AWS doesn't document how long a token lasts.
_TOKEN_SECONDS: Final = 3600
# AWS Price List API reference, Filter: Type.
_FILTERS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "TERM_MATCH": lambda own, value: own == value,
    "EQUALS": lambda own, value: own == value,
    "CONTAINS": lambda own, value: value in own,
    "ANY_OF": lambda own, value: own in value.split(","),
    "NONE_OF": lambda own, value: own not in value.split(","),
}


# Source: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
@operation("pricing", "GetProducts")
def get_products(ctx: Context, params: Record) -> Record:
    """Return a page of products, each as a JSON text."""
    service = params["ServiceCode"]
    if service not in SERVICES:
        # Inferred from: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
        raise ServiceError("NotFoundException", f"Service code {service} was not found")
    if params.get("FormatVersion", _FORMAT) != _FORMAT:
        raise ServiceError("InvalidParameterException", f"Format version {params['FormatVersion']} is not supported")
    matching = [
        product
        for product in products()
        if product["serviceCode"] == service and all(_matches(product, given) for given in params.get("Filters", ()))
    ]
    token = _token(ctx, params.get("NextToken"))
    shown, following = page(matching, size=params.get("MaxResults"), token=token, code="InvalidNextTokenException")
    answer: Record = {"FormatVersion": _FORMAT, "PriceList": [json.dumps(each) for each in shown]}
    return answer | ({"NextToken": f"{int(ctx.now)}/{following}"} if following else {})


# Source: https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
def _token(ctx: Context, token: str | None) -> str | None:
    """Return the arguments for `page` from a token that is still valid."""
    if token is None:
        return None
    created, _, rest = token.partition("/")
    if not created.isdecimal() or not rest:
        raise ServiceError("InvalidNextTokenException", "The pagination token is invalid")
    if ctx.now - int(created) > _TOKEN_SECONDS:
        raise ServiceError("ExpiredNextTokenException", "The pagination token expired")
    return rest


def _matches(product: Mapping[str, Any], condition: Mapping[str, str]) -> bool:
    described = product["product"]
    fields = {
        "ServiceCode": product["serviceCode"],
        "productFamily": described["productFamily"],
        **described["attributes"],
    }
    own = fields.get(condition["Field"])
    return own is not None and _FILTERS[condition["Type"]](own, condition["Value"])
