"""Kubernetes versions of EKS on a given day, and the add-on versions pinned for them."""

import datetime
from decimal import Decimal

import pytest

from hpkit.catalog import OfferedAddon, addon_pin, cluster_hour, eks_versions, find_kubernetes_version
from hpkit.catalog.eks import offered_addon
from hpkit.catalog.services import TASK_GOVERNANCE, kubernetes_versions
from hpkit.plan.derive import derive
from tests.builders import organization, typed


@pytest.mark.parametrize("version", eks_versions(), ids=lambda version: version.version)
def test_support_is_14_months_and_12_more_as_eks_promises(version):
    months = [
        (end.year - start.year) * 12 + end.month - start.month
        for start, end in (
            (version.released, version.end_of_standard_support),
            (version.end_of_standard_support, version.end_of_extended_support),
        )
    ]
    assert months == [14, 12]
    assert version.source.url.startswith("https://")
    datetime.date.fromisoformat(version.source.date)


@pytest.mark.parametrize(
    ("day", "support"),
    [
        ("2027-03-26", "STANDARD_SUPPORT"),
        ("2027-03-27", "EXTENDED_SUPPORT"),
        ("2028-03-26", "EXTENDED_SUPPORT"),
        ("2028-03-27", "UNSUPPORTED"),
    ],
)
def test_a_period_is_over_on_its_day(day, support):
    assert find_kubernetes_version("1.35").support(datetime.date.fromisoformat(day)) == support


def test_every_version_that_hyperpod_takes_has_its_days():
    assert set(kubernetes_versions()) <= {each.version for each in eks_versions()}
    assert find_kubernetes_version("1.99") is None


def test_an_hour_in_extended_support_costs_six_times_as_much():
    hour = cluster_hour("us-west-2")
    assert (hour.standard, hour.extended) == (Decimal("0.10"), Decimal("0.60"))


@pytest.mark.parametrize(
    ("offered", "pin"),
    [
        (None, "v1.6.0-eksbuild.1"),
        (OfferedAddon(("v1.7.0-eksbuild.1", "v1.6.0-eksbuild.1"), "v1.7.0-eksbuild.1"), "v1.6.0-eksbuild.1"),
        (OfferedAddon(("v1.7.0-eksbuild.1", "v1.5.0-eksbuild.2"), "v1.7.0-eksbuild.1"), "v1.5.0-eksbuild.2"),
        (OfferedAddon(("v1.7.0-eksbuild.1",), "v1.7.0-eksbuild.1"), "v1.7.0-eksbuild.1"),
    ],
)
def test_the_pin_is_one_that_eks_lists_for_the_kubernetes_version(monkeypatch, offered, pin):
    monkeypatch.setattr(
        "hpkit.catalog.eks.offered_addon", lambda _name, kubernetes: offered if kubernetes == "1.35" else None
    )
    assert addon_pin(TASK_GOVERNANCE, "1.35") == pin
    assert addon_pin(TASK_GOVERNANCE, "1.34") == "v1.6.0-eksbuild.1"
    plan = derive(typed(organization()), "dev")
    assert {each.name: each.version for each in plan.addons}[TASK_GOVERNANCE] == pin


def test_what_nobody_asked_is_not_known_and_left_to_eks():
    assert offered_addon("vpc-cni", "1.99") is None
    assert addon_pin("vpc-cni", "1.35") is None
    assert addon_pin("no-such-add-on", "1.35") is None
