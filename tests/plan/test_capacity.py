"""The quota arithmetic: shares, fractions, lending, borrowing, and threads per core."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.catalog import find_instance_type
from hpkit.changes.plan_diff import Change, diff
from hpkit.plan.capacity import apportion, overruns, pods_on, pool_instances, quantity, quota_table, reserve, usage
from hpkit.plan.derive import derive, instances_of, quotas_of
from hpkit.plan.model import Partition, QuotaResource, TypeCapacity
from tests.builders import findings, group, organization, team, typed

G5 = find_instance_type("ml.g5.12xlarge")  # 48 vCPU, 192 GiB, 4 GPUs
P4D = find_instance_type("ml.p4d.24xlarge")  # 96 vCPU, 1152 GiB, 8 GPUs, MIG

percents = st.integers(0, 100_000).map(lambda value: Fraction(value, 100_000))
shares = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), percents, max_size=8)


@given(st.integers(0, 10_000), shares)
def test_shares_never_sum_to_more_than_their_part_of_the_whole(total, asked):
    counts = apportion(total, asked)
    assert sum(counts.values()) == int(total * sum(asked.values(), Fraction(0)))
    assert all(abs(counts[name] - total * asked[name]) < 1 for name in asked)


@given(st.integers(0, 500), shares)
def test_the_order_of_shares_changes_nothing(total, asked):
    assert apportion(total, dict(reversed(asked.items()))) == apportion(total, asked)


@given(st.integers(0, 500), shares, percents)
def test_a_change_in_one_share_moves_every_other_by_one_at_most(total, asked, other):
    if not asked:
        return
    first = min(asked)
    before, after = apportion(total, asked), apportion(total, {**asked, first: other})
    assert all(abs(before[name] - after[name]) <= 1 for name in asked if name != first)


def test_ties_go_to_the_name_that_sorts_first():
    third = Fraction(1, 3)
    assert apportion(10, {"c": third, "a": third, "b": third}) == {"a": 4, "b": 3, "c": 3}


@pytest.mark.parametrize(
    ("quota_resource", "vector"),
    [
        ({"count": 2}, (2, 8, 96, 384)),
        ({"accelerators": 1}, (0, 1, 12, 48)),
        ({"accelerators": 2, "v_cpu": Fraction(10)}, (0, 2, 10, 96)),
        ({"v_cpu": Fraction(12)}, (0, 0, 12, 48)),
        ({"memory_in_gib": Fraction(96)}, (0, 0, 24, 96)),
        ({}, (0, 0, 0, 0)),
    ],
)
def test_what_a_row_leaves_out_is_filled_pro_rata(quota_resource, vector):
    assert usage(QuotaResource("ml.g5.12xlarge", **quota_resource), G5).vector[:4] == vector


def test_partitions_take_their_part_of_the_accelerators():
    seven = usage(QuotaResource("ml.p4d.24xlarge", partition=Partition("mig-1g.5gb", 7)), P4D)
    assert seven.vector == (0, 1, 12, 144, 7), "seven of the smallest fill one of eight GPUs"
    three = usage(QuotaResource("ml.p4d.24xlarge", partition=Partition("mig-3g.20gb", 2)), P4D)
    assert three.vector[1] == 1, "two of 3g.20gb fill a GPU, although one slice stays empty"


def test_a_fraction_that_the_type_does_not_have_is_a_problem():
    assert usage(QuotaResource("ml.g5.12xlarge", partition=Partition("mig-1g.5gb", 1)), G5).problem
    cpu = find_instance_type("ml.m5.4xlarge")
    assert usage(QuotaResource("ml.m5.4xlarge", accelerators=1), cpu).problem


def test_fractions_and_counts_are_summed_in_every_dimension():
    quota_resources = [
        QuotaResource("ml.g5.12xlarge", count=3),
        QuotaResource("ml.g5.12xlarge", memory_in_gib=Fraction(193)),
    ]
    over = {
        overrun.dimension: overrun.reserved
        for overrun in overruns(reserve((quota_resource, G5) for quota_resource in quota_resources), 4, G5)
    }
    assert over == {"vCPU": Fraction(769, 4), "memory GiB": 769}


@pytest.mark.parametrize(
    ("text", "value"), [("16", 16), ("500m", Fraction(1, 2)), ("64Gi", 64 * 2**30), ("1.5k", 1500), ("2M", 2 * 10**6)]
)
def test_quantities_are_exact(text, value):
    assert quantity(text) == value


@pytest.mark.parametrize("text", ["", "Gi", "1/3", "0/0", "1_000", " 1", "٣", "inf", "1e999999999", "1GiGi"])
def test_other_texts_are_no_quantities(text):
    with pytest.raises(ValueError, match="isn't a Kubernetes quantity"):
        quantity(text)


def test_the_tightest_limit_of_a_pool_counts():
    assert pool_instances({"nvidia.com/gpu": "16"}, G5) == 4
    assert pool_instances({"nvidia.com/gpu": "16", "cpu": "100"}, G5) == 2
    assert pool_instances({"memory": "400Gi"}, G5) == 2
    assert pool_instances({}, G5) is None
    assert pool_instances({"nvidia.com/gpu": "16"}, find_instance_type("ml.m5.4xlarge")) is None


@pytest.mark.parametrize(("name", "nodes"), [("neurondevice", 2), ("neuron", 2), ("neuroncore", 1)], ids=str)
def test_chips_of_trainium_count_under_both_their_names_and_their_cores_under_a_third(name, nodes):
    trainium = find_instance_type("ml.trn1.32xlarge")
    assert pool_instances({f"aws.amazon.com/{name}": "32"}, trainium) == nodes
    assert pool_instances({f"aws.amazon.com/{name}": "32"}, G5) is None
    assert pods_on({f"aws.amazon.com/{name}": "16"}, trainium) == (1 if nodes == 2 else 2)


def six_and_five(limit):
    teams = [
        team("a", sharing={"strategy": "LendAndBorrow", "borrowLimit": limit}),
        team("b", sharing={"strategy": "LendAndBorrow", "borrowLimit": limit}),
    ]
    quota_resources = {
        name: [{"instanceType": "ml.c5.2xlarge", "count": count}] for name, count in (("a", 6), ("b", 5))
    }
    data = organization(teams=teams, groups=[group("cpu", "ml.c5.2xlarge", 11)], allocations=quota_resources)
    plan = derive(typed(data), "dev")
    instances = {"ml.c5.2xlarge": find_instance_type("ml.c5.2xlarge")}
    (quota,) = quota_table(plan.teams, plan.capacity, instances, lend_unallocated=False)
    return {share.team: share for share in quota.teams}


def test_a_team_borrows_up_to_its_limit_or_what_others_lend():
    assert six_and_five(100)["b"].borrowable == 5
    assert six_and_five(50)["b"].borrowable == Fraction(5, 2)
    assert six_and_five(500)["b"].borrowable == 6, "the other team has no more to lend"


def pooled(instance_type, instances, rows):
    """Return the plan with a shared pool and one team per row, and the pool."""
    names = [f"t{number}" for number, _ in enumerate(rows)]
    allocations = {name: [{"instanceType": instance_type, **row}] for name, row in zip(names, rows, strict=True)}
    data = organization(
        teams=[team(name) for name in names],
        groups=[group("gpu", instance_type, instances)],
        environment={"governance": {"allocations": allocations, "sharedPool": {"name": "pool"}}},
    )
    plan = derive(typed(data), "dev")
    return plan, next(each for each in plan.teams if each.is_shared_pool)


@pytest.mark.parametrize(
    ("instance_type", "instances", "rows", "left"),
    [
        ("ml.g5.12xlarge", 4, [{"count": 1}], {"count": 3}),
        ("ml.g5.12xlarge", 4, [{"accelerators": 4}], {"count": 3}),
        # Five teams share 80 GPUs.
        (
            "ml.p4d.24xlarge",
            10,
            [{"accelerators": each} for each in (20, 30, 10, 8, 8)],
            {"accelerators": 4, "v_cpu": 48, "memory_in_gib": 576},
        ),
        ("ml.c5.2xlarge", 2, [{"vCpu": 12}], {"v_cpu": 4, "memory_in_gib": 8}),
    ],
)
def test_the_shared_pool_takes_all_that_no_static_quota_needs_and_lends_it(instance_type, instances, rows, left):
    _, pool = pooled(instance_type, instances, rows)
    assert pool.quota_resources == (QuotaResource(instance_type, **left),)
    assert pool.lends
    assert not pool.borrows


@given(
    st.lists(
        st.one_of(
            st.fixed_dictionaries({"count": st.integers(1, 2)}),
            st.fixed_dictionaries({"accelerators": st.integers(1, 9)}, optional={"vCpu": st.integers(1, 96)}),
            st.fixed_dictionaries({"vCpu": st.integers(1, 96)}),
            st.fixed_dictionaries({"memoryInGiB": st.integers(1, 400)}),
            st.fixed_dictionaries(
                {
                    "acceleratorPartition": st.fixed_dictionaries(
                        {"type": st.just("mig-1g.5gb"), "count": st.integers(1, 9)}
                    )
                }
            ),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_with_the_shared_pool_quota_never_exceeds_what_fits_without_it(rows):
    plan, pool = pooled("ml.p4d.24xlarge", 6, rows)
    teams = [each for team in plan.teams if not team.is_shared_pool for each in team.quota_resources]
    if overruns(reserve((each, P4D) for each in teams), 6, P4D):
        return
    taken = reserve((each, P4D) for each in (*teams, *pool.quota_resources))
    assert not overruns(taken, 6, P4D)
    chips, vcpu, memory = 48 - taken[1], 6 * P4D.vcpu - taken[2], 6 * P4D.memory_gib - taken[3]
    partitioned = any(each.partition for each in teams)
    assert partitioned or chips < 1 or min(vcpu, memory) < 1 or not pool.quota_resources


def test_system_nodes_are_not_given_to_the_shared_pool():
    data = organization(
        groups=[group("gpu", "ml.g5.12xlarge", 4), group("system", "ml.m5.4xlarge", 2)],
        environment={"governance": {"sharedPool": {}}},
    )
    (pool,) = derive(typed(data), "dev").teams
    assert [quota_resource.instance_type for quota_resource in pool.quota_resources] == ["ml.g5.12xlarge"]


def test_karpenters_groups_add_to_the_maximum_only():
    data = organization(
        groups=[group("gpu", "ml.g5.12xlarge", 4), group("burst", "ml.g5.12xlarge", 0)],
        environment={
            "autoscaling": {
                "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
                "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 10}}],
            }
        },
    )
    assert derive(typed(data), "dev").capacity["ml.g5.12xlarge"] == TypeCapacity(4, 6, ("burst", "gpu"), ("pool",)), (
        "10 GPUs are two instances of four, and a rest that no instance fits"
    )


def test_a_flexible_group_guarantees_none_of_its_types():
    flexible = {"name": "any", "instanceTypes": ["ml.g5.12xlarge", "ml.g5.24xlarge"], "instanceCount": 3}
    capacity = derive(typed(organization(groups=[flexible])), "dev").capacity
    assert {name: known.permanent for name, known in capacity.items()} == {"ml.g5.12xlarge": 0, "ml.g5.24xlarge": 0}
    assert {known.maximum for known in capacity.values()} == {3}


def plan_of(*groups, **more):
    return derive(typed(organization(groups=list(groups), **more)), "dev")


@pytest.mark.parametrize(("stated", "vcpu"), [(None, 48), (1, 24), (2, 48)])
def test_what_is_not_stated_counts_as_two(stated, vcpu):
    given = {} if stated is None else {"threadsPerCore": stated}
    assert instances_of(plan_of(group("a", "ml.g5.12xlarge", 1, **given)))["ml.g5.12xlarge"].vcpu == vcpu


def test_one_thread_halves_the_vcpus_that_teams_may_reserve():
    allocations = {"nlp": [{"instanceType": "ml.g5.12xlarge", "vCpu": 120}]}

    def found(**more):
        gpu = group("gpu", "ml.g5.12xlarge", 4, **more)
        data = organization(groups=[gpu], teams=[team("nlp")], allocations=allocations)
        return {each.rule for each in findings(data)}

    assert "CAP001" not in found(threadsPerCore=2)
    assert "CAP001" in found(threadsPerCore=1), "4 × 24 vCPUs are left"


def test_of_two_groups_of_a_type_the_smaller_counts():
    plan = plan_of(group("a", "ml.g5.12xlarge", 1), group("b", "ml.g5.12xlarge", 1, threadsPerCore=1))
    assert instances_of(plan)["ml.g5.12xlarge"].vcpu == 24


def test_whole_instances_are_as_many_with_one_thread():
    allocations = {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 4}]}
    gpu = group("gpu", "ml.g5.12xlarge", 4, threadsPerCore=1)
    plan = plan_of(gpu, teams=[team("nlp")], allocations=allocations)
    (quota,) = quotas_of(plan)
    assert quota.capacity.permanent == 4
    assert "CAP001" not in {
        each.rule for each in findings(organization(groups=[gpu], teams=[team("nlp")], allocations=allocations))
    }


@pytest.mark.parametrize(
    ("limit", "amounts"),
    [
        ({"count": 2}, (2, 1)),
        ({"accelerators": 4}, (Fraction(1, 2), Fraction(1, 2))),
        ({"vCpu": 48}, (0, 0)),
        ({"acceleratorPartition": {"type": "mig-1g.5gb", "count": 14}}, (Fraction(1, 4), 0)),
    ],
)
def test_only_accelerators_of_a_kind_that_others_have_are_borrowed_of_a_type_that_has_them(limit, amounts):
    limits = [{"instanceType": "ml.p4d.24xlarge", **limit}]
    teams = [team("nlp", sharing={"strategy": "LendAndBorrow", "absoluteBorrowLimits": limits}), team("ads")]
    allocations = {name: [{"instanceType": "ml.p4d.24xlarge", "count": 1}] for name in ("nlp", "ads")}
    (quota,) = quotas_of(plan_of(group("gpu", "ml.p4d.24xlarge", 2), teams=teams, allocations=allocations))
    assert {(each.borrow_limit, each.borrowable) for each in quota.teams if each.team == "nlp"} == {amounts}


NAMES = ("ada", "bob", "eve")


def plan_of_file(counts, *, nodes=8, **more):
    rows = {name: [{"instanceType": "ml.g5.12xlarge", "count": count}] for name, count in counts.items() if count}
    data = organization(
        teams=[team(name) for name in NAMES], groups=[group("gpu", "ml.g5.12xlarge", nodes)], allocations=rows, **more
    )
    return derive(typed(data), "dev")


plans = st.one_of(
    st.none(),
    st.builds(
        plan_of_file, st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5), max_size=3), nodes=st.integers(0, 12)
    ),
)


def flipped(change):
    return Change(change.after, change.before)


@given(plans)
def test_a_plan_does_not_differ_from_itself(plan):
    found = diff(plan, plan, stack="acme-dev")
    assert not found.changed
    assert not any(part.changed for part in (*found.teams, *found.capacity, *found.policy.values()))


@given(plans, plans)
def test_the_way_back_is_the_way_there_turned_around(before, after):
    there, back = diff(before, after, stack="acme-dev"), diff(after, before, stack="acme-dev")
    assert [each.permanent for each in back.capacity] == [flipped(each.permanent) for each in there.capacity]
    for one, other in zip(there.teams, back.teams, strict=True):
        assert one.name == other.name
        assert [share.quota for share in other.shares] == [flipped(share.quota) for share in one.shares]


@given(plans, plans)
def test_every_amount_is_what_the_quota_table_says(before, after):
    difference = diff(before, after, stack="acme-dev")
    for side, plan in (("before", before), ("after", after)):
        amounts = {
            (team.name, share.instance_type): (getattr(share.quota, side), getattr(share.borrowable, side))
            for team in difference.teams
            for share in team.shares
            if getattr(share.quota, side) is not None
        }
        table = quotas_of(plan) if plan else ()
        assert amounts == {
            (share.team, quota.instance_type): (share.reserved, share.borrowable)
            for quota in table
            for share in quota.teams
        }


def test_a_team_that_only_may_borrow_less_changed_but_was_not_edited():
    found = diff(plan_of_file({"ada": 4, "bob": 2}), plan_of_file({"ada": 1, "bob": 2}), stack="acme-dev")
    by_name = {each.name: each for each in found.teams}
    assert by_name["ada"].edited
    (share,) = by_name["ada"].shares
    assert share.quota == Change(4, 1)
    assert share.lendable == Change(4, 1)


def test_a_stack_that_comes_has_nothing_before():
    found = diff(None, plan_of_file({"ada": 4}), stack="acme-dev")
    assert found.teams[0].present == Change(False, True)
    assert found.capacity[0].permanent == Change(None, 8)


def test_members_and_settings_of_a_team_are_compared():
    one, two = (
        {**organization(allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]})} for _ in range(2)
    )
    one["teams"] = [team("ada", members=["arn:aws:iam::123456789012:role/a"])]
    two["teams"] = [
        team(
            "ada", members=["arn:aws:iam::123456789012:role/b"], preemptTeamTasks="Never", sharing={"strategy": "Lend"}
        )
    ]
    (team_difference,) = diff(derive(typed(one), "dev"), derive(typed(two), "dev"), stack="acme-dev").teams
    assert team_difference.members_added == ("arn:aws:iam::123456789012:role/b",)
    assert team_difference.members_removed == ("arn:aws:iam::123456789012:role/a",)
    assert team_difference.preempt_team_tasks == Change("LowerPriority", "Never")
    assert team_difference.strategy == Change("LendAndBorrow", "Lend")
