"""The validator's findings in custom resources; tests/local/controllers sends the same to an API server."""

import pytest

from hpkit.catalog import node_pool_schema
from hpkit.checks.custom_resources import violations
from tests.checks.node_pool_specs import SPECS, spec


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_is_taken_or_refused_as_by_an_api_server(name):
    value, refusal = SPECS[name]
    assert bool(violations(node_pool_schema(), value)) == bool(refusal)


def test_a_violation_says_where_and_what_to_do():
    (found,) = violations(node_pool_schema(), spec(weight=101))
    assert (found.path, found.message) == (("weight",), "is 101; the maximum is 100")
    assert found.fix == "Use `100` or less."


def test_rules_are_asked_once_the_structure_is_right():
    wrong = spec(replicas=1, weight=101)
    assert [each.rule for each in violations(node_pool_schema(), wrong)] == [""]
    assert violations(node_pool_schema(), spec(replicas=1, weight=1))[0].rule


def test_a_list_that_is_a_map_has_each_key_once():
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "integer"}}},
    }
    assert not violations(schema, [{"name": "a", "value": 1}, {"name": "b", "value": 1}])
    (found,) = violations(schema, [{"name": "a", "value": 1}, {"name": "a", "value": 2}])
    assert found.path == (1,)
