"""The description of a team: its quota, its lenders, and what limits it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpkit.errors import SelectionError
from hpkit.explain import explain_team, team_text
from hpkit.plan.derive import derive, quotas_of
from tests.builders import findings, group, organization, team, typed

GPU = "ml.g5.12xlarge"
NO_IDLE = {"clusterPolicy": {"idleResourceSharing": "Disabled"}}


def borrows(limit, **more):
    return {"sharing": {"strategy": "LendAndBorrow", "borrowLimit": limit}, **more}


def plan_of(counts, settings=None, *, instances=4, **more):
    teams = [team(name, **(settings or {}).get(name, {})) for name in counts]
    allocations = {name: [{"instanceType": GPU, "count": count}] for name, count in counts.items()}
    more.setdefault("top", NO_IDLE)
    data = organization(teams=teams, groups=[group("gpu", GPU, instances)], allocations=allocations, **more)
    return derive(typed(data), "dev")


def said(plan, name):
    return "\n".join(line for _, lines in team_text(explain_team(plan, name)) for line in lines)


def test_a_team_has_its_quota_and_the_groups_under_it_are_named():
    (part,) = explain_team(plan_of({"a": 3, "b": 1}), "a").types
    assert (part.reserved, part.accelerators, part.quota.capacity.groups) == (3, 12, ("gpu",))
    assert "Has 3 instances (12 accelerators) of 4 that always run, in group gpu." in said(
        plan_of({"a": 3, "b": 1}), "a"
    )


def of_allocation(*rows, groups=None):
    data = organization(teams=[team("a")], groups=groups or [group("gpu", GPU, 4)], allocations={"a": list(rows)})
    return derive(typed(data), "dev")


def test_groups_that_karpenter_fills_do_not_always_stand():
    burst = group("burst", GPU, 0)
    plan = plan_of(
        {"a": 1}, environment={"cluster": {"name": "acme", "instanceGroups": [group("base", GPU, 1), burst]}}
    )
    assert "of 1 that always run, in group base. Its jobs always get this capacity" in said(plan, "a")


def test_jobs_of_more_quota_than_stands_are_promised_nothing():
    text = said(plan_of({"a": 3, "b": 2}), "a")
    assert "Has 3 instances (12 accelerators) of 4 that always run, in group gpu; all teams together reserve 5," in text
    assert "always get this capacity" not in text


def test_parts_of_unlike_resources_reserve_no_more_than_stands():
    parts = {"a": [{"accelerators": 8, "vCpu": 1, "memoryInGiB": 1}], "b": [{"accelerators": 8, "vCpu": 190}]}
    allocations = {name: [{"instanceType": GPU, **row} for row in rows] for name, rows in parts.items()}
    data = organization(teams=[team("a"), team("b")], groups=[group("gpu", GPU, 4)], allocations=allocations)
    assert [each for each in findings(data) if each.severity == "error"] == []
    text = said(derive(typed(data), "dev"), "b")
    assert "on the 4 that always run" in text
    assert "all teams together reserve" not in text


@pytest.mark.parametrize(
    ("row", "has"),
    [
        ({"accelerators": 12, "vCpu": 1}, "Has 12 accelerators, 1 vCPU, 576 GiB of memory on the 4 that always"),
        ({"vCpu": 48, "memoryInGiB": 1}, "Has 48 vCPU, 1 GiB of memory on the 4 that always"),
        ({"vCpu": 48}, "Has 1 instance of 4 that always run, in group gpu. Its jobs always"),
        ({"accelerators": 4}, "Has 1 instance (4 accelerators) of 4 that always run, in group gpu. Its jobs"),
    ],
)
def test_quota_of_unlike_parts_of_an_instance_is_not_called_instances(row, has):
    assert has in said(of_allocation({"instanceType": GPU, **row}), "a")


def test_a_limit_that_others_cannot_fill_says_so():
    plan = plan_of({"a": 3, "b": 1}, {"a": borrows(100)})
    (part,) = explain_team(plan, "a").types
    assert (part.borrow_limit, part.borrowable, part.bound) == (3, 1, "lenders")
    assert "Others lend no more, although its limit, 100% of 3 = 3, allows" in said(plan, "a")


def test_the_services_default_limit_is_said_to_be_one():
    plan = plan_of({"a": 2, "b": 2})
    assert explain_team(plan, "a").types[0].bound == "limit"
    assert "This is its limit, 50% of 2 = 1 (the service's default)" in said(plan, "a")


def test_a_limit_in_instances_is_named_by_its_key():
    limits = {"strategy": "LendAndBorrow", "absoluteBorrowLimits": [{"instanceType": GPU, "count": 1}]}
    plan = plan_of({"a": 2, "b": 2}, {"a": {"sharing": limits}})
    assert explain_team(plan, "a").types[0].percent is None
    assert "its limit, 1 (absoluteBorrowLimits)" in said(plan, "a")


@pytest.mark.parametrize(
    ("strategy", "lends", "borrowing"),
    [
        ("DontLend", "Lends none (strategy DontLend): its unused instances stay idle.", "(strategy DontLend)"),
        ("Lend", "Lends up to 2 instances when idle (at most 1 to b).", "(strategy Lend)"),
    ],
)
def test_a_strategy_that_does_not_borrow_is_the_reason(strategy, lends, borrowing):
    plan = plan_of({"a": 2, "b": 2}, {"a": {"sharing": {"strategy": strategy}}})
    text = said(plan, "a")
    assert lends in text
    assert f"Borrows none {borrowing}." in text
    assert "its fairShareWeight has no effect" in text


def test_nobody_holds_more_of_a_team_than_it_has():
    plan = plan_of({"a": 1, "b": 2, "c": 1}, {"c": borrows(500)})
    assert [(each.team, each.instances) for each in explain_team(plan, "a").types[0].borrowers] == [("b", 1), ("c", 1)]


def test_nobody_borrows_from_a_team_that_keeps_its_own():
    plan = plan_of({"a": 2, "b": 2}, {"a": {"sharing": {"strategy": "DontLend"}}})
    (part,) = explain_team(plan, "b").types
    assert (part.lenders, part.borrowable) == ((), 0)
    assert "no other team lends this type." in said(plan, "b")


def test_what_no_team_reserved_is_lent_where_the_policy_says_so():
    plan = plan_of({"a": 2}, {"a": borrows(100)}, top={"clusterPolicy": {"idleResourceSharing": "Enabled"}})
    assert explain_team(plan, "a").types[0].idle == 2
    assert "of 2 that others lend when idle (2 that no team reserved)" in said(plan, "a")
    assert explain_team(plan_of({"a": 2}), "a").types[0].idle == 0


def test_elastic_quota_names_the_node_pool_and_how_far_it_goes():
    data = organization(
        teams=[team("a")],
        groups=[group("base", "ml.g5.8xlarge", 1), group("burst", "ml.g5.8xlarge", 0)],
        allocations={"a": [{"instanceType": "ml.g5.8xlarge", "count": 8, "elastic": True}]},
        environment={
            "autoscaling": {
                "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
                "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 16}}],
            }
        },
    )
    text = said(derive(typed(data), "dev"), "a")
    assert "Has 8 instances that rely on Karpenter (elastic): NodePool pool adds nodes when jobs wait," in text
    assert "up to 17 in total" in text
    data["environments"]["dev"]["governance"]["allocations"] = {
        "a": [{"instanceType": GPU, "count": 1, "elastic": True}]
    }
    assert "Has 1 instance that relies on Karpenter" in said(derive(typed(data), "dev"), "a")


def test_weights_are_said_beside_those_of_teams_that_want_the_same():
    settings = {name: borrows(100, fairShareWeight=weight) for name, weight in {"a": 50, "b": 100, "c": 0}.items()}
    plan = plan_of({"a": 1, "b": 1, "c": 1, "d": 1}, {**settings, "d": {"sharing": {"strategy": "Lend"}}})
    assert [(each.team, each.fair_share_weight) for each in explain_team(plan, "a").rivals] == [("b", 100), ("c", 0)]
    text = said(plan, "a")
    assert (
        "want more instances than are idle, b gets about twice as many as a; c gets only what the others leave" in text
    )
    assert (
        "If no other team wants the instances, each team can borrow up to its own limit, regardless of weights" in text
    )
    assert "may borrow more" not in text, "what it may borrow is a limit, which `hpkit quota` shows"
    assert "With weight 0, it's served after b and a" in said(plan, "c")


def test_weights_count_nothing_without_fair_share():
    plan = plan_of({"a": 2, "b": 2}, top={"clusterPolicy": {**NO_IDLE["clusterPolicy"], "fairShare": "Disabled"}})
    assert "Fair share is Disabled" in said(plan, "a")


def test_priorities_are_said_with_the_label_that_a_job_carries():
    classes = [{"name": "low", "weight": 1}, {"name": "high", "weight": 9}]
    policy = {"taskPrioritization": "Rank", "priorityClasses": classes}
    plan = plan_of({"a": 2, "b": 2}, {"a": {"preemptTeamTasks": "Never"}}, top={"clusterPolicy": policy})
    text = said(plan, "a")
    assert "highest first: high (9), low (1)" in text
    assert "with a label such as `kueue.x-k8s.io/priority-class: high-priority`." in text
    assert "no job stops another (preemptTeamTasks Never)" in text
    assert "a job of a higher class stops a job of a lower class" in said(plan, "b")
    assert "Oldest first" in said(plan_of({"a": 1}), "a")


def test_the_shared_pool_is_said_to_be_one():
    data = organization(teams=[team("a")], allocations={"a": [{"instanceType": GPU, "count": 1}]}, top=NO_IDLE)
    data["environments"]["dev"]["governance"]["sharedPool"] = {"name": "shared"}
    plan = derive(typed(data), "dev")
    text = said(plan, "shared")
    assert text.startswith("The shared pool")
    assert "its jobs" not in text.partition("Lends")[0]
    assert "Weight" not in text
    assert [(each.team, each.instances) for each in explain_team(plan, "a").types[0].lenders] == [("shared", 3)]


def test_a_team_without_quota_here_is_told_from_one_that_nobody_knows():
    plan = plan_of({"john": 1})
    with pytest.raises(SelectionError, match="acme-dev has no team jhon; did you mean john"):
        explain_team(plan, "jhon", ("john", "smith"))
    with pytest.raises(SelectionError, match=r"under environments\.dev\.governance\.allocations"):
        explain_team(plan, "smith", ("john", "smith"))
    with pytest.raises(SelectionError, match="hpkit quota --stack acme-dev"):
        explain_team(plan, "zzz")


def test_an_empty_allocation_is_said_to_be_one():
    data = organization(teams=[team("a")], allocations={"a": []})
    assert "an empty list" in said(derive(typed(data), "dev"), "a")


def test_a_thousand_teams_are_counted_where_they_cannot_be_listed():
    plan = plan_of({f"team-{number}": 1 for number in range(1000)}, instances=1000)
    explained = explain_team(plan, "team-7")
    assert len(explained.types[0].lenders) == 999
    text = said(plan, "team-7")
    assert "and 994 more" in text
    assert len(text) < 3000


@settings(max_examples=25)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 500))
def test_the_arithmetic_is_that_of_quota(counts, limit):
    names = {f"t{number}": count for number, count in enumerate(counts)}
    plan = plan_of(names, {"t0": borrows(limit)}, instances=50)
    (quota,) = quotas_of(plan)
    for name in names:
        (part,) = explain_team(plan, name).types
        own = next(share for share in quota.teams if share.team == name)
        assert (part.reserved, part.borrowable, part.lendable) == (own.reserved, own.borrowable, own.lendable)
        lent = sum(peer.instances for peer in part.lenders) + part.idle
        assert part.borrowable == min(part.borrow_limit, lent)
        assert (part.bound == "limit") == (0 < part.borrow_limit <= lent)


def test_when_a_job_is_evicted_because_its_pods_do_not_start_is_explained():
    assert "Gang scheduling is off" in said(plan_of({"a": 1}), "a")
    strategy = {"backoffLimitCount": 1, "backoffBaseSeconds": 30, "backoffMaxSeconds": 90}
    gang = {"enable": True, "recoveryTimeout": "0s", "blockAdmission": True, "requeuingStrategy": strategy}
    environment = {"governance": {"allocations": {"a": [{"instanceType": GPU, "count": 1}]}, "gangScheduling": gang}}
    text = said(plan_of({"a": 1}, environment=environment), "a")
    assert "a job is evicted if not all of its pods are ready 5m after admission" in text
    assert "after 30 seconds. Each further time, it waits twice as long, at most 90 seconds. Kueue" in text
    assert "retries it at most 1 time, and then deactivates it" in text
    assert "waits without a limit" in text
    assert "Jobs of all teams are admitted one by one" in text


def test_what_roles_can_submit_is_what_the_teams_workloads_include():
    plan = plan_of({"john": 2}, {"john": {"workloads": ["inference"]}})
    (_, (_, submitted)), *_ = team_text(explain_team(plan, "john"))
    assert submitted == "Roles that can submit Deployments: john."
