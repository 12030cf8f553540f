"""What the review reports when owners on the shared file system, or root's permissions, change."""

import pytest

from hpkit.changes.review.access_risks import access_risks
from hpkit.plan.derive import derive
from tests.builders import organization, team, typed

ROWS = [{"instanceType": "ml.g5.12xlarge", "count": 1}]


def plan(user_ids=None, **lustre):
    nlp = team("nlp", **({"userIds": user_ids} if user_ids else {}))
    wanted = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 2400, "teams": True, **lustre}
    data = organization(teams=[nlp], allocations={"nlp": ROWS}, environment={"storage": {"lustre": wanted}})
    return derive(typed(data), "dev")


def risks(before, after):
    return {risk.code: risk.message for risk in access_risks(before, after)}


def test_a_change_of_user_ids_makes_files_inaccessible():
    found = risks(plan({"first": 20000}), plan({"first": 30000}))
    assert set(found) == {"user-ids"}
    assert found["user-ids"].startswith("userIds 20000–20999 → 30000–30999: files of the old ids become inaccessible")


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ({}, {"rootSquash": {}}, "root on clients becomes user 65534"),
        ({"rootSquash": {}}, {}, "root on every client is root on the file system again"),
        ({"rootSquash": {}}, {"rootSquash": {"noSquashNids": ["10.0.1.6@tcp"]}}, "noSquashNids (10.0.1.6@tcp)"),
    ],
)
def test_a_change_of_root_squash_is_a_risk_of_its_own(before, after, part):
    found = risks(plan(**before), plan(**after))
    assert set(found) == {"root-squash"}
    assert part in found["root-squash"]


def test_another_team_moves_no_ids():
    assert risks(plan(), plan()) == {}
