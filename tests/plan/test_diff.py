"""Differences between two plans: both sides use the same arithmetic, and no difference is invented."""

from hypothesis import given
from hypothesis import strategies as st

from hpkit.changes.plan_diff import Change, diff
from hpkit.plan.derive import derive, quotas_of
from tests.builders import group, organization, team, typed

NAMES = ("ada", "bob", "eve")


def plan_of_file(counts, *, nodes=8, **more):
    rows = {name: [{"instanceType": "ml.g5.12xlarge", "count": count}] for name, count in counts.items() if count}
    data = organization(
        teams=[team(name) for name in NAMES],
        groups=[group("gpu", "ml.g5.12xlarge", nodes)],
        allocations=rows,
        **more,
    )
    return derive(typed(data), "dev")


plans = st.one_of(
    st.none(),
    st.builds(
        plan_of_file,
        st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5), max_size=3),
        nodes=st.integers(0, 12),
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
        assert [share.guarantee for share in other.shares] == [flipped(share.guarantee) for share in one.shares]


@given(plans, plans)
def test_every_amount_is_what_the_quota_table_says(before, after):
    difference = diff(before, after, stack="acme-dev")
    for side, plan in (("before", before), ("after", after)):
        amounts = {
            (team.name, share.instance_type): (getattr(share.guarantee, side), getattr(share.borrowable, side))
            for team in difference.teams
            for share in team.shares
            if getattr(share.guarantee, side) is not None
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
    assert share.guarantee == Change(4, 1)
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
