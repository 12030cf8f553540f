"""The roles that are members of a team in one environment."""

import pytest

from hpkit.plan.access import groups_of
from hpkit.plan.derive import derive
from tests.builders import organization, team, typed

DEV, PROD = "123456789012", "210987654321"


def role(name, account=DEV):
    return f"arn:aws:iam::{account}:role/{name}"


def members(*roles, account=DEV, override=None):
    """Return the members of a team with these roles, in an environment of an account."""
    data = organization(
        teams=[team("ada", members=list(roles))],
        allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]},
    )
    environment = data["environments"]["dev"]
    environment.pop("account", None)
    if account is not None:
        environment["account"] = account
    if override is not None:
        environment["governance"]["overrides"] = {"ada": override}
    plan = derive(typed(data), "dev")
    (planned,) = plan.teams
    assert tuple(groups_of(plan)) == planned.spec.members
    return planned.spec.members


@pytest.mark.parametrize(
    ("account", "admitted"),
    [
        (DEV, (role("ada"),)),
        (PROD, (role("ada", PROD),)),
        (None, (role("ada"), role("ada", PROD))),
        ("333333333333", ()),
    ],
)
def test_an_environment_with_an_account_admits_only_roles_of_that_account(account, admitted):
    assert members(role("ada"), role("ada", PROD), account=account) == admitted


def test_members_of_an_override_replace_those_of_the_team():
    assert members(role("ada"), override={"members": [role("lead")]}) == (role("lead"),)


def test_an_override_with_an_empty_list_admits_nobody():
    assert members(role("ada"), override={"members": []}) == ()


def test_an_override_without_members_keeps_those_of_the_team():
    assert members(role("ada"), override={"fairShareWeight": 7}) == (role("ada"),)


def test_an_override_cannot_admit_a_role_of_another_account():
    assert members(role("ada"), override={"members": [role("ada", PROD)]}) == ()


def test_a_role_that_is_made_is_a_member_unless_an_override_names_the_members():
    made = role("acme-dev-us-west-2-team-ada")
    data = organization(
        teams=[team("ada", members=[role("ada")], memberRole={"permissionSets": ["DataScientist"]})],
        allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]},
    )
    data["environments"]["dev"]["account"] = DEV
    for override, expected in (
        ({}, (role("ada"), made)),
        ({"members": []}, ()),
        ({"members": [], "memberRole": {"principals": [role("lead")]}}, (made,)),
    ):
        data["environments"]["dev"]["governance"]["overrides"] = {"ada": override}
        (planned,) = derive(typed(data), "dev").teams
        assert planned.spec.members == expected
