"""Kubernetes versions on a given day: which are offered, their support status, and their clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

On = Callable[[str], Any]


def statuses(cloud: Any, **asked: Any) -> dict[str, str]:
    pages = cloud.eks.get_paginator("describe_cluster_versions").paginate(**asked)
    return {each["clusterVersion"]: each["versionStatus"] for page in pages for each in page["clusterVersions"]}


def test_versions_are_told_with_their_support_on_the_day(cloud_on: On) -> None:
    cloud = cloud_on("2026-11-22")
    assert statuses(cloud) == {
        "1.36": "STANDARD_SUPPORT",
        "1.35": "STANDARD_SUPPORT",
        "1.34": "STANDARD_SUPPORT",
        "1.33": "EXTENDED_SUPPORT",
        "1.32": "EXTENDED_SUPPORT",
        "1.31": "EXTENDED_SUPPORT",
    }
    assert statuses(cloud, includeAll=True)["1.30"] == "UNSUPPORTED"
    assert statuses(cloud, clusterVersions=["1.30"]) == {"1.30": "UNSUPPORTED"}
    assert list(statuses(cloud, versionStatus="EXTENDED_SUPPORT")) == ["1.33", "1.32", "1.31"]
    assert list(statuses(cloud, defaultOnly=True)) == ["1.36"]


def test_a_period_of_support_is_over_on_its_day(cloud_on: On) -> None:
    assert statuses(cloud_on("2026-12-01"))["1.34"] == "STANDARD_SUPPORT"
    assert statuses(cloud_on("2026-12-02"))["1.34"] == "EXTENDED_SUPPORT"
    assert "1.35" not in statuses(cloud_on("2026-01-26")), "EKS did not have it yet"


def test_versions_come_in_pages(cloud_on: On) -> None:
    cloud = cloud_on("2026-11-22")
    assert len(cloud.eks.describe_cluster_versions(maxResults=4)["clusterVersions"]) == 4
    assert len(statuses(cloud, PaginationConfig={"PageSize": 4})) == 6


def create(cloud: Any, version: str, support: str | None) -> Any:
    policy = {"upgradePolicy": {"supportType": support}} if support else {}
    network = {"subnetIds": cloud.subnets}
    made = cloud.eks.create_cluster(
        name="new", version=version, roleArn=cloud.eks_role, resourcesVpcConfig=network, **policy
    )
    return made["cluster"]["upgradePolicy"]["supportType"]


@pytest.mark.parametrize(
    ("version", "support", "message"),
    [
        ("1.33", "STANDARD", "Kubernetes version 1.33 left standard support on 2026-07-29: upgradePolicy.supportType "),
        ("1.30", "EXTENDED", "unsupported Kubernetes version 1.30: its extended support ended on 2026-07-23; "),
        ("1.30", "STANDARD", "unsupported Kubernetes version 1.30: its extended support ended on 2026-07-23; "),
        ("1.40", "EXTENDED", "unsupported Kubernetes version 1.40; supported: 1.31, 1.32, 1.33, 1.34, 1.35, 1.36"),
    ],
)
def test_a_new_cluster_of_a_version_without_its_support_is_refused(
    cloud_on: On, refused: Callable[..., str], version: str, support: str, message: str
) -> None:
    cloud = cloud_on("2026-11-22")
    network = {"subnetIds": cloud.subnets}
    text = refused(
        "InvalidParameterException",
        cloud.eks.create_cluster,
        name="new",
        version=version,
        roleArn=cloud.eks_role,
        resourcesVpcConfig=network,
        upgradePolicy={"supportType": support},
    )
    assert text.startswith(message)


def test_extended_support_is_what_eks_takes_by_itself(cloud_on: On) -> None:
    assert create(cloud_on("2026-11-22"), "1.33", None) == "EXTENDED"
    assert create(cloud_on("2026-11-22"), "1.33", "EXTENDED") == "EXTENDED"
    assert create(cloud_on("2026-11-22"), "1.34", "STANDARD") == "STANDARD"


def test_the_upgrade_policy_cannot_change_out_of_standard_support(cloud_on: On, refused: Callable[..., str]) -> None:
    cloud = cloud_on("2026-11-22")
    create(cloud, "1.34", "STANDARD")
    cloud.advance(1)
    update = {"name": "new", "upgradePolicy": {"supportType": "EXTENDED"}}
    cloud.advance(10 * 24 * 3600)
    text = refused("InvalidRequestException", cloud.eks.update_cluster_config, **update)
    assert text == "The upgrade policy cannot change: Kubernetes version 1.34 left standard support on 2026-12-02"
    cloud.eks.update_cluster_version(name="new", version="1.35")
    cloud.eks.update_cluster_config(**update)
    assert cloud.eks.describe_cluster(name="new")["cluster"]["upgradePolicy"] == {"supportType": "EXTENDED"}


def test_add_on_versions_are_listed_for_supported_kubernetes_versions(cloud_on: On) -> None:
    (addon,) = cloud_on("2026-11-22").eks.describe_addon_versions(addonName="coredns")["addons"]
    fits = [each["clusterVersion"] for each in addon["addonVersions"][0]["compatibilities"]]
    assert fits == ["1.31", "1.32", "1.33", "1.34", "1.35", "1.36"]
