"""IAM Identity Center: one instance per account."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_an_instance_of_identity_center_is_of_one_region(cloud: Any, refused: Callable[..., str]) -> None:
    here = cloud.endpoint.client("sso-admin")
    there = cloud.endpoint.client("sso-admin", region="eu-west-1")
    assert there.list_instances()["Instances"] == []
    assert there.list_instances(RegionScope="ALL_REGIONS") | {"ResponseMetadata": {}} == {
        "Instances": here.list_instances()["Instances"],
        "ResponseMetadata": {},
    }
    refused("ConflictException", here.create_instance)
    refused("ResourceNotFoundException", here.delete_instance, InstanceArn="arn:aws:sso:::instance/ssoins-" + "a" * 16)
