"""Add-ons: a version alone, or a map with its configuration."""

import jsonschema
import pytest

from hpkit.config.schema.reference import json_schema
from tests.builders import findings, organization, rules, typed


def addons(**named):
    return organization(environment={"addons": named})


@pytest.mark.parametrize("written", ["v1.11.4-eksbuild.2", {"version": "v1.11.4-eksbuild.2"}])
def test_text_alone_is_the_version(written):
    data = addons(coredns=written)
    found = typed(data).environments["dev"].addons["coredns"]
    assert (found.version, found.configuration_values) == ("v1.11.4-eksbuild.2", {})
    jsonschema.validate(data, json_schema())


def test_configuration_is_kept_as_json_has_it():
    data = addons(coredns={"configurationValues": {"replicaCount": 3, "tolerations": [{"key": "system"}]}})
    found = typed(data).environments["dev"].addons["coredns"]
    assert found.configuration_values == {"replicaCount": 3, "tolerations": [{"key": "system"}]}


def test_a_version_without_quotes_is_told_apart():
    (finding,) = findings(addons(coredns=1.3))
    assert finding.rule == "CFG002"
    assert "quotes" in finding.message


def test_an_unknown_key_is_named_with_the_nearest():
    assert rules(addons(coredns={"versoin": "v1.13.1-eksbuild.1"})) == {"CFG001"}
