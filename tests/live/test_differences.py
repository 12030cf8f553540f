"""What runs and is not as the file says it."""

from dataclasses import replace
from decimal import Decimal

import pytest

from hpkit.live.differences import differences
from hpkit.live.model import AddonHealth, Group, Platform, Queue, Quota
from hpkit.project import load_stack
from hpkit.whatif import model_of
from tests.live.builders import observed

CPU = Decimal(1000)


@pytest.fixture
def plan():
    return load_stack("handson-dev").plans["dev"]


@pytest.fixture
def seen(plan):
    """What is read of a platform that is as its file has it."""
    groups = tuple(Group(each.spec.name, each.spec.types, each.spec.instance_count, 0, "") for each in plan.all_groups)
    addons = tuple(AddonHealth(each.name, each.version or "v1", "ACTIVE") for each in plan.addons)
    queues = tuple(
        Queue(
            each.name,
            each.cohort,
            Decimal(each.fair_weight),
            active=True,
            message="",
            quotas={
                (flavor.name, name): Quota(of(name, quota.nominal), of(name, quota.borrowing_limit))
                for group in each.resource_groups
                for flavor in group.flavors
                for name, quota in flavor.resources.items()
            },
        )
        for each in model_of(plan).queues
    )
    classes = {f"{each.name}-priority": each.weight for each in plan.policy.priority_classes}
    platform = Platform("handson", "InService", "", groups, (), "Created", "", addons, ())
    return observed(platform=platform, queues=queues, priority_classes=classes)


def of(name, amount):
    return None if amount is None else Decimal(amount) / (CPU if name == "cpu" else 1)


def test_a_platform_as_its_file_has_it_differs_in_nothing(seen, plan):
    assert differences(seen, plan) == ()


def test_what_was_not_read_is_no_difference(plan):
    assert differences(observed(), plan) == ()


def test_groups_and_add_ons_that_differ_are_named(seen, plan):
    gpu, system = seen.platform.groups
    groups = (replace(gpu, target=3), replace(system, name="other"))
    addons = (*seen.platform.addons[1:-1], replace(seen.platform.addons[-1], version="v0"))
    found = differences(replace(seen, platform=replace(seen.platform, groups=groups, addons=addons)), plan)
    assert "instance group gpu has a target of 3 instances, and 4 in the file" in found
    assert "instance group system is in the file, and not in the cluster" in found
    assert "instance group other is in the cluster, and not in the file" in found
    assert f"add-on {plan.addons[0].name} is in the file, and not on the cluster" in found
    wanted = plan.addons[-1].version
    assert (f"add-on {plan.addons[-1].name} is v0, and {wanted} in the file" in found) == (wanted is not None)


def test_teams_that_differ_are_named_with_both_amounts(seen, plan):
    john, smith = seen.queues
    key = ("ml.g5.12xlarge", "nvidia.com/gpu")
    changed = replace(john, weight=Decimal(7), quotas={**john.quotas, key: Quota(Decimal(8), Decimal(4))})
    renamed = replace(smith, name="hyperpod-ns-other-clusterqueue")
    assert differences(replace(seen, queues=(changed, renamed)), plan) == (
        "team john has fair-share weight 7, and 0 in the file",
        "team john has a quota of 8 nvidia.com/gpu of ml.g5.12xlarge, and 12 in the file",
        "team john has a borrow limit of 4 nvidia.com/gpu of ml.g5.12xlarge, and 6 in the file",
        "team smith is in the file, and has no queue",
        "team other has a queue, and is not in the file",
    )


def test_priority_classes_that_differ_are_named(seen, plan):
    found = differences(replace(seen, priority_classes={"training-priority": 90, "mine-priority": 1}), plan)
    assert found == (
        "priority class training-priority is 90, and 80 in the file",
        "priority class experiment-priority is absent, and 40 in the file",
        "priority class mine-priority is 1, and absent in the file",
    )
