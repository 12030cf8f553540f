"""A recording works with any number of teams."""

from hpkit.plan.derive import derive
from hpkit.program.recording import record
from tests import builders


def test_registrations_are_not_answered_inside_one_another():
    names = [f"team-{number}" for number in range(100)]
    data = builders.organization(
        teams=[builders.team(name) for name in names],
        groups=[builders.group("gpu", "ml.g5.12xlarge", len(names))],
        allocations={name: [{"instanceType": "ml.g5.12xlarge", "count": 1}] for name in names},
    )
    found = record(derive(builders.typed(data), "dev"))
    assert {each.name for each in found.all("index:ComputeQuota")} == set(names)
