"""What an editor completes and shows for keys, from the JSON Schema that the first line of each file names."""

import json
import typing

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from generate.examples import example_files
from hpkit.catalog import instance_types
from hpkit.cli.organization.config import _explained, _fields, _yaml
from hpkit.config import read_text
from hpkit.config.schema.editor import VALUES, hint_of
from hpkit.config.schema.reference import _models, json_schema, takes
from tests.builders import findings, group, organization, plain

SCHEMA = json_schema()
MODELS = {model.__name__: model for model in _models()}
HINTS = {
    (name, field.alias or key): hint
    for name, model in MODELS.items()
    for key, field in model.model_fields.items()
    if (hint := hint_of(field)) is not None
}


def definition(model):
    """Return the JSON Schema of a section."""
    if model == "Organization":
        return SCHEMA
    found = SCHEMA["$defs"][model]
    return found if "properties" in found else found["anyOf"][1]


def properties():
    return [(name, key, schema) for name in MODELS for key, schema in definition(name)["properties"].items()]


def asks_for_text_or_number(annotation):
    """Return whether the user must choose a value: not for sections, lists of names, or Booleans."""
    shown, sections = takes(annotation)
    return not sections and "`" not in shown and shown != "true, false"


def named_types(schema):
    named = schema.get("type", [])
    return [named] if isinstance(named, str) else named


def field_of(model, key):
    return next(field for name, field in MODELS[model].model_fields.items() if key in (field.alias, name))


def test_titles_are_keys_as_people_write_them():
    assert [(name, key) for name, key, schema in properties() if schema["title"] != key] == []
    assert definition("InstanceGroup")["title"] == "Instance group"
    assert definition("NodePool")["title"] == "NodePool"


def test_every_key_that_takes_text_or_a_number_has_an_example():
    asked = {
        (name, field.alias or key)
        for name, model in MODELS.items()
        for key, field in model.model_fields.items()
        if asks_for_text_or_number(field.annotation)
    }
    assert asked - HINTS.keys() == set()


@pytest.mark.parametrize("model", MODELS)
def test_an_example_holds_for_the_schema_and_for_the_contract(model):
    for key, hint in ((key, hint) for (name, key), hint in HINTS.items() if name == model):
        schema = definition(model)["properties"][key]
        is_entry = "array" in schema.get("type", "") and not isinstance(hint.example, list)
        example = [hint.example] if is_entry else hint.example
        assert schema.get("examples") == [example] or str(hint.example) in schema["description"]
        Draft202012Validator({**schema, "$defs": SCHEMA["$defs"]}).validate(example)
        field = field_of(model, key)
        annotated = typing.Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        # As the reader returns it: lists are tuples.
        value = tuple(example) if isinstance(example, list) else example
        TypeAdapter(annotated).validate_python(value)


def test_every_number_says_its_unit():
    numbers = {(name, key) for name, key, schema in properties() if {"integer", "number"} & set(named_types(schema))}
    assert {(name, key) for name, key in numbers if not HINTS[name, key].unit} == set()


def test_every_list_of_names_is_used_and_none_is_empty():
    text = json.dumps(SCHEMA)
    keys = {hint.keys for hint in HINTS.values()}
    for name, values in VALUES.items():
        assert list(values())
        assert f'"#/$defs/{name}"' in text or name in keys


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("region",), "us-west-9"),
        (("eks", "version"), "1.99"),
        (("network", "endpoints"), ["something.new"]),
        (("addons",), {"my-own-addon": "v1"}),
        (("governance", "allocations"), {"a": [{"instanceType": "ml.p9.48xlarge", "count": 1, "future": True}]}),
    ],
)
def test_what_the_catalog_does_not_know_yet_is_not_red(path, value):
    data = organization()
    inner = data["environments"]["dev"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    Draft202012Validator(SCHEMA).validate(data)


def test_a_group_of_a_type_that_nodes_cannot_have_is_red_as_it_is_for_the_validator():
    data = organization(groups=[group("gpu", "ml.g5.13xlarge", 1)])
    assert not Draft202012Validator(SCHEMA).is_valid(data)
    assert "CLU003" in {finding.rule for finding in findings(data) if finding.severity == "error"}
    for each in instance_types():
        assert Draft202012Validator(SCHEMA).is_valid(organization(groups=[group("gpu", each.name, 1)])), each.name


def test_a_version_without_quotes_is_red():
    data = organization()
    data["environments"]["dev"]["eks"]["version"] = 1.35
    assert not Draft202012Validator(SCHEMA).is_valid(data)


@pytest.mark.parametrize("file", example_files(), ids=lambda file: file.stem)
def test_the_first_line_of_an_example_leads_to_the_schema(file):
    text = file.read_text(encoding="utf-8")
    first, _, where = text.partition("\n")[0].partition("$schema=")
    assert first == "# yaml-language-server: "
    Draft202012Validator(json.loads((file.parent / where).read_text())).validate(yaml.safe_load(text))


def test_required_keys_can_come_from_defaults_and_files_that_are_named_have_the_same_schema():
    whole, lacking = organization(), organization()
    del lacking["environments"]["dev"]["eks"]["version"], lacking["environments"]["dev"]["region"]
    accepts = Draft202012Validator(SCHEMA).is_valid
    assert accepts(whole)
    assert not accepts(lacking)
    assert accepts({**lacking, "defaults": "shared.yaml"})
    assert accepts({**lacking, "environmentDefaults": {"region": "us-west-2", "eks": {"version": "1.35"}}})
    assert not accepts({**whole, "environmentDefaults": {"eks": {"versoin": "1.35"}}})
    for null in ({"network": None}, {"addons": None}, {"addons": {"coredns": None}}, {"protect": None}):
        assert accepts({**lacking, "defaults": "shared.yaml", "environments": {"dev": null}})
    assert not accepts({**lacking, "defaults": "shared.yaml", "environments": {"dev": {"region": None}}})
    assert accepts({"teams": [{"name": "nlp"}]})
    assert not accepts({"organization": "acme"})
    assert not accepts({key: value for key, value in whole.items() if key != "organization"})


def test_each_key_is_explained_with_its_meaning_and_type_and_with_an_example_or_its_keys():
    for field in _fields():
        key = _explained(*field, SCHEMA)
        assert key.meaning, key.path
        assert key.type, key.path
        assert key.example is not None or key.keys, key.path
        assert key.limits or "integer" not in key.type, key.path
        if key.example is not None:
            own = definition(field[1].__name__)["properties"][field[0][-1]]
            value = plain(read_text(f"value: {_yaml(key.example)}".encode()).data["value"])
            Draft202012Validator({**own, "$defs": SCHEMA["$defs"]}).validate(value)
