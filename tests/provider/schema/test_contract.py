"""Every request that is built from valid inputs is valid for botocore's model of the API."""

import dataclasses

import pytest
from botocore.validate import ParamValidator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpkit_provider.schema.check import _value
from hpkit_provider.schema.field import Behavior
from hpkit_provider.schema.field_table import RESOURCES, from_api, service_model, table, to_api

PATTERNED = {
    "arn:aws[a-z\\-]*:iam": "arn:aws:iam::123456789012:role/node",
    "arn:aws[a-z\\-]*:eks": "arn:aws:eks:us-west-2:123456789012:cluster/kube",
    "training-plan": "arn:aws:sagemaker:us-west-2:123456789012:training-plan/abcdefghijkl",
    "arn:aws[a-z\\-]*:sagemaker": "arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghij12",
    "(https|s3)": "s3://sagemaker-x/y",
    "(ami-": "ami-0123456789abcdef0",
    "[0-9]+\\.[0-9]+": "1.2.3",
    "((fs|fc)i?-": "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
    "/[a-zA-Z0-9._/-]+": "/data",
}


def texts(spec):
    if spec.enum:
        return st.sampled_from(spec.enum)
    for start, example in PATTERNED.items():
        if start in spec.pattern:
            return st.just(example)
    return st.sampled_from(["abc", "abcd", "x1"]).filter(lambda text: len(text) >= (spec.minimum or 0))


def values(spec):
    low = int(spec.minimum or 0)
    if spec.kind == "timestamp":
        return st.just("2027-01-31T00:00:00Z")
    if spec.union:
        return st.one_of(*(values(m).map(lambda value, name=m.name: {name: value}) for m in spec.members))
    if spec.kind == "object":
        needed = {m.name: values(m) for m in spec.members if m.required}
        maybe = {m.name: values(m) for m in spec.members if not m.required}
        return st.fixed_dictionaries(needed, optional=maybe)
    if spec.kind == "list":
        return st.lists(values(spec.item), min_size=low, max_size=max(low, 2))
    if spec.kind == "map":
        return st.dictionaries(texts(spec.key), values(spec.item), max_size=2)
    if spec.kind == "boolean":
        return st.booleans()
    if spec.kind in ("integer", "number"):
        return st.integers(low, int(min(spec.maximum or 100, 10_000)))
    return texts(spec)


@pytest.mark.parametrize("name", sorted(name for name, resource in RESOURCES.items() if resource.operation))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_requests_fit_the_model_and_come_back_as_inputs(name, data):
    inputs = data.draw(values(table(name)))
    # The resource's own properties, in addition to the API's members.
    for own in RESOURCES[name].extra:
        inputs.pop(own.name, None)
    assert list(_value(table(name), inputs, "")) == []
    request = to_api(table(name), inputs)
    shape = service_model().operation_model(RESOURCES[name].operation).input_shape
    report = ParamValidator().validate(request, shape)
    assert not report.has_errors(), report.generate_report()
    assert from_api(table(name), request) == inputs


def declared_paths(resource):
    """Yield every path that a resource's declarations name, with the declaration."""
    for what in ("replacing", "omitted", "required", "identities", "behaviors"):
        for path in getattr(resource, what):
            yield path, what


@pytest.mark.parametrize("name", sorted(name for name, resource in RESOURCES.items() if resource.operation))
def test_whatever_is_declared_of_a_path_is_of_one_that_the_model_has(name):
    root = service_model().operation_model(RESOURCES[name].operation).input_shape
    for path, what in declared_paths(RESOURCES[name]):
        shape = root
        for step in path.split("."):
            shape = shape.member if shape.type_name == "list" else shape
            known = {member[:1].lower() + member[1:]: inner for member, inner in shape.members.items()}
            assert step in known, f"{what} of {name}: {path}"
            shape = known[step]


@pytest.mark.parametrize("name", sorted(RESOURCES))
def test_a_behavior_is_that_of_the_field_at_its_path_alone(name):
    found = {path: behavior(field) for path, field in fields(table(name), "") if behavior(field) != Behavior()}
    assert found == dict(RESOURCES[name].behaviors)


@pytest.mark.parametrize("name", sorted(RESOURCES))
def test_what_is_watched_has_a_value_to_compare_with(name):
    for path, declared in RESOURCES[name].behaviors.items():
        assert not declared.watched or (declared.default, declared.reset_to) != (None, None), path


def behavior(field):
    return Behavior(**{each.name: getattr(field, each.name) for each in dataclasses.fields(Behavior)})


def fields(spec, above):
    """Yield the members at any depth; entries of lists and maps have the list's path and an index."""
    for field in spec.members:
        path = f"{above}.{field.name}" if above else field.name
        yield path, field
        yield from fields(field, path)
        if field.item:
            yield f"{path}[]", field.item
            yield from fields(field.item, path)
