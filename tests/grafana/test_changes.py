"""The changes that `apply` would make, computed from the workspace's contents without I/O."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hpkit.grafana.alerts import STACK_LABEL
from hpkit.grafana.changes import Found, changes, differences
from hpkit.grafana.desired import KINDS, Desired, GrafanaObject
from tests.grafana.builders import wanted_of

NOTHING = Desired((), None)
OWN_ROUTE = {"receiver": "grafana-default-email", "routes": []}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def made(wanted, policy=OWN_ROUTE):
    """Return a complete workspace, with the fields that Grafana adds."""
    objects = {
        (dashboard_object.kind, dashboard_object.uid): replace(
            dashboard_object, body={**dashboard_object.body, "version": 3, "id": 7, "provenance": "api"}
        )
        for dashboard_object in wanted.objects
    }
    routes = [wanted.route, *policy["routes"]] if wanted.route else policy["routes"]
    return Found(objects, {**policy, "routes": routes})


def lines(wanted, found):
    return [str(each) for each in changes(wanted, found, stack="acme-dev")]


def test_what_is_there_needs_no_change():
    wanted = wanted_of()
    assert lines(wanted, made(wanted)) == []


def test_an_empty_workspace_gets_everything_and_the_branch_before_the_rules():
    wanted = wanted_of()
    steps = changes(wanted, Found({}, OWN_ROUTE), stack="acme-dev")
    kinds = [each.kind for each in steps]
    assert len(steps) == len(wanted.objects) + 1
    assert kinds.index("contact point") < kinds.index("notification policy") < kinds.index("alert rule")
    assert kinds[:2] == ["data source", "folder"]


def test_what_was_edited_is_named_by_its_path():
    wanted = wanted_of()
    live = made(wanted)
    key = next(key for key in live.objects if key[0] == "alert rule")
    edited = {**live.objects[key].body, "for": "1h", "labels": {"severity": "info"}}
    objects = {**live.objects, key: replace(live.objects[key], body=edited)}
    title = live.objects[key].title
    assert lines(wanted, replace(live, objects=objects)) == [
        f"~ alert rule {title}: for, labels.severity, labels.{STACK_LABEL}"
    ]


def test_what_is_wanted_no_more_goes_rules_first_and_the_folder_late():
    wanted = wanted_of()
    steps = changes(NOTHING, made(wanted), stack="acme-dev")
    assert {each.action for each in steps} == {"delete"}
    kinds = list(dict.fromkeys(each.kind for each in steps))
    assert kinds == ["alert rule", "notification policy", "contact point", "dashboard", "folder", "data source"]


def test_branches_of_others_stay_as_they_are_and_in_their_order():
    others = [
        {"receiver": "pager", "object_matchers": [["severity", "=", "critical"]]},
        {"receiver": "hpkit acme-prod", "object_matchers": [[STACK_LABEL, "=", "acme-prod"]]},
    ]
    policy = {**OWN_ROUTE, "provenance": "api", "routes": others}
    wanted = wanted_of()
    (step,) = [
        each for each in changes(wanted, Found({}, policy), stack="acme-dev") if each.kind == "notification policy"
    ]
    assert step.body == {**policy, "routes": [wanted.route, *others]}
    (gone,) = [
        each for each in changes(NOTHING, made(wanted, policy), stack="acme-dev") if each.kind == "notification policy"
    ]
    assert gone.body == policy


def test_a_branch_that_is_there_twice_is_put_right():
    wanted = wanted_of()
    found = made(wanted, {**OWN_ROUTE, "routes": [wanted.route]})
    assert lines(wanted, found) == ["~ notification policy branch of acme-dev"]


def test_many_differences_are_counted():
    body = {str(number): number for number in range(7)}
    wanted = Desired((GrafanaObject("dashboard", "u", "t", body),), None)
    found = Found({("dashboard", "u"): GrafanaObject("dashboard", "u", "t", {})}, {})
    assert lines(wanted, found) == ["~ dashboard t: 0, 1, 2, 3, 4, and 2 more"]


@given(json_values)
def test_nothing_differs_from_itself(value):
    assert list(differences(value, value)) == []


@given(st.dictionaries(st.text(max_size=3), json_values, max_size=4), st.text(min_size=4, max_size=5))
def test_what_grafana_adds_is_no_difference_and_what_it_lacks_is(value, key):
    assert list(differences(value, {**value, key: 1})) == []
    assert list(differences({**value, key: 1}, value)) == [key]


def test_every_kind_has_its_place():
    assert {each.kind for each in wanted_of().objects} == set(KINDS)
