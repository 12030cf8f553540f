"""Threads per core: the value in the API request, and the resulting vCPUs for quotas."""

import pytest

from hpkit.plan.derive import derive, instances_of, quotas_of
from tests.builders import findings, group, organization, team, typed


def plan_of(*groups, **more):
    return derive(typed(organization(groups=list(groups), **more)), "dev")


@pytest.mark.parametrize(
    ("stated", "vcpu"),
    [
        (None, 48),
        (1, 24),
        (2, 48),
    ],
)
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
    assert quota.capacity.guaranteed == 4
    assert "CAP001" not in {
        each.rule for each in findings(organization(groups=[gpu], teams=[team("nlp")], allocations=allocations))
    }
