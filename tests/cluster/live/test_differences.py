"""Differences between a running platform and its file."""

from dataclasses import replace
from decimal import Decimal

import pytest

from hpkit.cluster.live.differences import differences
from hpkit.cluster.live.model import AddonHealth, Group, NodePool, Platform, Queue, Quota, SchedulerPolicy
from hpkit.project import load_stack
from hpkit_whatif.admission import model_of
from tests.builders import ranked_handson
from tests.cluster.live.builders import observed

CPU = Decimal(1000)


@pytest.fixture
def plan():
    return ranked_handson()


@pytest.fixture
def seen(plan):
    """Return a platform that matches its file."""
    groups = tuple(Group(each.spec.name, each.spec.types, each.spec.instance_count, 0, "") for each in plan.own_groups)
    addons = tuple(AddonHealth(each.name, each.version or "v1", "ACTIVE") for each in plan.addons)
    queues = tuple(
        Queue(
            queue.name,
            queue.cohort,
            Decimal(queue.fair_weight),
            active=True,
            message="",
            within=queue.preemption.within_cluster_queue,
            quotas={
                (flavor.name, name): Quota(
                    of(name, quota.nominal), of(name, quota.borrowing_limit), of(name, quota.lending_limit)
                )
                for group in queue.resource_groups
                for flavor in group.flavors
                for name, quota in flavor.resources.items()
            },
        )
        for queue in model_of(plan).queues
    )
    classes = {f"{each.name}-priority": each.weight for each in plan.policy.priority_classes}
    policy = SchedulerPolicy("handson-dev", "Created", "", "Enabled", "Disabled", {"training": 80, "experiment": 40})
    platform = Platform(
        "handson", "InService", "", groups, (), policy, addons, (), kubernetes="1.35", node_recovery="Automatic"
    )
    return observed(platform=platform, queues=queues, priority_classes=classes)


def of(name, amount):
    return None if amount is None else Decimal(amount) / (CPU if name == "cpu" else 1)


def test_what_was_not_read_is_no_difference(plan):
    assert differences(observed(), plan) == ()


def test_groups_and_add_ons_that_differ_are_named(seen, plan):
    gpu, system = seen.platform.groups
    groups = (replace(gpu, target=3), replace(system, name="other"))
    addons = (*seen.platform.addons[1:-1], replace(seen.platform.addons[-1], version="v0"))
    drift = differences(replace(seen, platform=replace(seen.platform, groups=groups, addons=addons)), plan)
    assert "instance group gpu has a target of 3 instances, but 4 in the file" in drift
    assert "instance group system is in the file, but not in the cluster" in drift
    assert "instance group other is in the cluster, but not in the file" in drift
    assert f"add-on {plan.addons[0].name} is in the file, but not on the cluster" in drift
    wanted = plan.addons[-1].version
    assert (f"add-on {plan.addons[-1].name} is v0, and {wanted} in the file" in drift) == (wanted is not None)


def test_policy_and_teams_of_another_stack_are_no_difference(seen, plan):
    assert differences(seen, replace(plan, policy=None, teams=())) == ()


@pytest.fixture
def platform_differs(seen, plan):
    """Return the differences after parts of the platform are replaced."""
    return lambda **parts: differences(replace(seen, platform=replace(seen.platform, **parts)), plan)


def test_versions_recovery_and_types_that_differ_are_named(seen, platform_differs):
    gpu, system = seen.platform.groups
    assert platform_differs(kubernetes="1.34", node_recovery="None", karpenter="Enable") == (
        "Kubernetes is 1.34, but 1.35 in the file",
        "node recovery is None, but Automatic in the file",
        "Karpenter's mode is Enable, but Disable in the file",
    )
    assert platform_differs(groups=(replace(gpu, instance_types=("ml.p5.48xlarge",)), system)) == (
        "the type of instance group gpu is ml.p5.48xlarge, but ml.g5.12xlarge in the file",
    )


def test_a_cluster_policy_that_differs_is_named(seen, platform_differs):
    changed = replace(seen.platform.policy, fair_share="Disabled", idle_sharing="Enabled", name="mine")
    assert platform_differs(policy=changed) == (
        "the cluster policy has name mine, but handson-dev in the file",
        "the cluster policy has fair share Disabled, but Enabled in the file",
        "the cluster policy has idle resource sharing Enabled, but Disabled in the file",
    )
    assert platform_differs(policy=None) == ("the cluster policy handson-dev is in the file, but not on the cluster",)


def test_what_of_a_platform_was_not_read_is_no_difference(platform_differs):
    assert platform_differs(policy=None, addons=(), unread=frozenset({"policy", "addons"})) == ()


def test_preemption_and_lending_that_differ_are_named(seen, plan):
    john, smith = seen.queues
    held = {key: replace(quota, lending_limit=Decimal(0)) for key, quota in john.quotas.items()}
    found = differences(replace(seen, queues=(replace(john, within="Never", quotas=held), smith)), plan)
    assert found == (
        "team john preempts its own tasks by Never, but by LowerPriority in the file",
        "team john lends no idle quota, but all of it in the file",
    )
    key = ("ml.g5.12xlarge", "nvidia.com/gpu")
    part = {**john.quotas, key: replace(john.quotas[key], lending_limit=Decimal(4))}
    assert differences(replace(seen, queues=(replace(john, quotas=part), smith)), plan) == (
        "team john has a lending limit of 4 nvidia.com/gpu of ml.g5.12xlarge, but 12 in the file",
    )


def test_a_quota_that_differs_in_all_resources_of_an_instance_is_one_line(seen, plan):
    john, smith = seen.queues
    less = {
        key: replace(each, nominal=each.nominal / 3, borrowing_limit=each.nominal) for key, each in john.quotas.items()
    }
    found = differences(replace(seen, queues=(replace(john, quotas=less), smith)), plan)
    others = "cpu, memory, vpc.amazonaws.com/efa"
    assert found == (
        f"team john has a quota of 4 nvidia.com/gpu of ml.g5.12xlarge, but 12 in the file ({others} too)",
        f"team john has a borrow limit of 12 nvidia.com/gpu of ml.g5.12xlarge, but 6 in the file ({others} too)",
    )


def test_memory_is_counted_in_gib(seen, plan):
    john, smith = seen.queues
    key = ("ml.g5.12xlarge", "memory")
    less = {**john.quotas, key: replace(john.quotas[key], nominal=Decimal(192 * 2**30))}
    assert differences(replace(seen, queues=(replace(john, quotas=less), smith)), plan) == (
        "team john has a quota of 192 GiB memory of ml.g5.12xlarge, but 576 GiB in the file",
    )


def test_teams_that_differ_are_named_with_both_amounts(seen, plan):
    john, smith = seen.queues
    key = ("ml.g5.12xlarge", "nvidia.com/gpu")
    changed = replace(john, weight=Decimal(7), quotas={**john.quotas, key: Quota(Decimal(8), Decimal(4))})
    renamed = replace(smith, name="hyperpod-ns-other-clusterqueue")
    assert differences(replace(seen, queues=(changed, renamed)), plan) == (
        "team john has fair-share weight 7, but 0 in the file",
        "team john has a quota of 8 nvidia.com/gpu of ml.g5.12xlarge, but 12 in the file",
        "team john has a borrow limit of 4 nvidia.com/gpu of ml.g5.12xlarge, but 6 in the file",
        "team smith is in the file, but has no queue",
        "team other has a queue, but isn't in the file",
    )


def test_priority_classes_that_differ_are_named(seen, plan):
    found = differences(replace(seen, priority_classes={"training-priority": 90, "mine-priority": 1}), plan)
    assert found == (
        "priority class training-priority is 90, but 80 in the file",
        "priority class experiment-priority is absent, but 40 in the file",
        "priority class mine-priority is 1, but absent in the file",
    )


def test_gang_scheduling_that_the_console_turned_on_is_a_difference(plan, seen):
    text = "apiVersion: config.kueue.x-k8s.io/v1beta1\nwaitForPodsReady: {enable: true, timeout: 7m}\n"
    (line,) = differences(replace(seen, kueue_configuration=text), plan)
    assert line.startswith("gang scheduling is on (timeout 7m")
    assert line.endswith("but off in the file")


def test_node_pools_that_differ_are_named():
    (plan,) = load_stack("autoscale-dev").plans.values()
    first, *others = plan.node_pools
    limits = {name: Decimal(str(amount)) for name, amount in first.spec.limits.items()}
    name = next(iter(limits))

    def pool(name, limits):
        return NodePool(name, ready=True, message="", limits=limits, used={})

    live = (pool(first.spec.name, limits), *(pool(each.spec.name, each.spec.limits) for each in others))
    changed = (pool(first.spec.name, {**limits, name: Decimal(1)}), pool("mine", {}))
    assert differences(observed(pools=live), plan) == ()
    assert differences(observed(pools=changed), plan) == (
        f"NodePool {first.spec.name} has {name} 1, but {limits[name]} in the file",
        *(f"NodePool {each.spec.name} is in the file, but not on the cluster" for each in others),
        "NodePool mine is on the cluster, but not in the file",
    )
    assert differences(observed(unread=frozenset({"nodepools"})), plan) == (), "members can't read them"


def test_a_team_that_somebody_paused_is_named(seen, plan):
    john, smith = seen.queues
    assert differences(replace(seen, queues=(replace(john, active=False, stopped=True), smith)), plan) == (
        "team john is paused, but activationState is Enabled in the file",
    )
