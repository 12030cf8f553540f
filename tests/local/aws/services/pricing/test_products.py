"""The endpoint's price list: products in the documented format, with filters and pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hpkit_local.aws.clock import ManualClock
from tests.local.aws.conftest import Served


def _filters(*given: tuple[str, str, str]) -> list[dict[str, str]]:
    return [{"Type": kind, "Field": field, "Value": value} for kind, field, value in given]


def _usage_types(pricing: Any, *given: tuple[str, str, str]) -> set[str]:
    found = pricing.get_products(ServiceCode="AmazonEC2", Filters=_filters(*given))["PriceList"]
    return {json.loads(each)["product"]["attributes"]["usagetype"] for each in found}


def test_products_are_json_texts_that_every_filter_matches(cloud: Any) -> None:
    pricing = cloud.endpoint.client("pricing", region="us-east-1")
    everywhere = {"NatGateway-Hours", "NatGateway-Bytes", "USW2-NatGateway-Hours", "USW2-NatGateway-Bytes"}
    assert _usage_types(pricing) == everywhere
    hours = ("EQUALS", "usagetype", "USW2-NatGateway-Hours")
    assert _usage_types(pricing, ("TERM_MATCH", "regionCode", "us-west-2"), hours) == {"USW2-NatGateway-Hours"}
    assert _usage_types(pricing, ("CONTAINS", "usagetype", "-Bytes")) == {each for each in everywhere if "By" in each}
    assert _usage_types(pricing, ("ANY_OF", "regionCode", "us-east-1,us-west-2")) == everywhere
    assert _usage_types(pricing, ("NONE_OF", "regionCode", "us-east-1,us-west-2")) == set()
    assert _usage_types(pricing, ("TERM_MATCH", "volumeApiName", "gp3")) == set()


def test_pages_end_and_tokens_expire(served: Served, refused: Callable[..., str]) -> None:
    endpoint, client = served
    clock = ManualClock()
    endpoint.reset(clock=clock)
    pricing, filters = client("pricing"), _filters(("TERM_MATCH", "component", "Cluster"))
    pages = list(pricing.get_paginator("get_products").paginate(ServiceCode="AmazonSageMaker", Filters=filters))
    assert len(pages) > 1
    skus = [json.loads(each)["product"]["sku"] for page in pages for each in page["PriceList"]]
    assert len(skus) == len(set(skus))
    token = pages[0]["NextToken"]
    clock.advance(3601)
    refused("ExpiredNextTokenException", pricing.get_products, ServiceCode="AmazonSageMaker", NextToken=token)


@pytest.mark.parametrize(
    ("code", "params"),
    [
        ("NotFoundException", {"ServiceCode": "AmazonNothing"}),
        ("InvalidParameterException", {"ServiceCode": "AmazonEC2", "FormatVersion": "aws_v2"}),
        ("InvalidNextTokenException", {"ServiceCode": "AmazonEC2", "NextToken": "x"}),
        ("InvalidNextTokenException", {"ServiceCode": "AmazonEC2", "NextToken": "9999999999/x"}),
    ],
)
def test_what_the_price_list_refuses(
    cloud: Any, refused: Callable[..., str], code: str, params: dict[str, str]
) -> None:
    refused(code, cloud.endpoint.client("pricing").get_products, **params)
