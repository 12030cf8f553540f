"""Every NodePool that the file format accepts is also accepted by Karpenter's CRD."""

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hpkit.config import parse, read_text
from hpkit.config.models.autoscaling import Budget, Disruption, NodePool
from hpkit.plan.derive import derive_all
from hpkit.program.recording import record
from hpkit.project import load
from hpkit_local.kubernetes.api import crds_in
from hpkit_local.toolchain import tool_path
from tests.checks.test_fixtures import CASES
from tests.program.recorder import STACKS

pytestmark = pytest.mark.cluster


@cache
def schema():
    (crd,) = [each for each in crds_in(tool_path("karpenter-crds")) if each["spec"]["names"]["kind"] == "NodePool"]
    (version,) = [each for each in crd["spec"]["versions"] if each["name"] == "v1"]
    return version["schema"]["openAPIV3Schema"]


def at(*path):
    spec = schema()["properties"]["spec"]
    for step in path:
        spec = spec["items"] if step == "[]" else spec["properties"][step]
    return spec


def pattern_of(model, field):
    return next(each.pattern for each in model.model_fields[field].metadata if hasattr(each, "pattern"))


BUDGETS = ("disruption", "budgets", "[]")


@pytest.mark.parametrize(
    ("model", "field", "path"),
    [
        (Budget, "nodes", (*BUDGETS, "nodes")),
        (Budget, "schedule", (*BUDGETS, "schedule")),
        (Budget, "duration", (*BUDGETS, "duration")),
        (Disruption, "consolidate_after", ("disruption", "consolidateAfter")),
        (NodePool, "expire_after", ("template", "spec", "expireAfter")),
    ],
)
def test_a_text_that_the_contract_takes_has_the_form_of_the_crd(model, field, path):
    @settings(max_examples=20, deadline=None)
    @given(st.from_regex(pattern_of(model, field), fullmatch=True))
    def matches(text):
        assert re.search(at(*path)["pattern"], text)

    matches()


def test_words_and_numbers_are_those_of_the_crd():
    schemas = {"Disruption": Disruption, "Budget": Budget, "NodePool": NodePool}
    properties = {name: model.model_json_schema(by_alias=True)["properties"] for name, model in schemas.items()}
    # A newer Karpenter has more policies and reasons than the version that HyperPod is known to run.
    assert set(properties["Disruption"]["consolidationPolicy"]["enum"]) < set(
        at("disruption", "consolidationPolicy")["enum"]
    )
    assert set(properties["Budget"]["reasons"]["items"]["enum"]) < set(at(*BUDGETS, "reasons", "[]")["enum"])
    assert properties["Budget"]["reasons"]["maxItems"] == at(*BUDGETS, "reasons")["maxItems"]
    assert properties["Disruption"]["budgets"]["maxItems"] == at("disruption", "budgets")["maxItems"]
    template = ("template", "spec")
    assert properties["NodePool"]["requirements"]["maxItems"] == at(*template, "requirements")["maxItems"]
    labels = at("template", "metadata", "labels")
    assert properties["NodePool"]["labels"]["maxProperties"] == labels["maxProperties"]
    weight = properties["NodePool"]["weight"]["anyOf"][0]
    assert (weight["minimum"], weight["maximum"]) == (at("weight")["minimum"], at("weight")["maximum"])


def pools_of(plans):
    for plan in plans:
        yield from (each for each in record(plan).resources.values() if each.type.endswith(":NodePool"))


def refused(plans):
    found = list(pools_of(plans))
    crd = Draft202012Validator(at())
    return found, [each for pool in found for each in crd.iter_errors(as_sent(pool.inputs["spec"]))]


def as_sent(value):
    """Return inputs as they are in JSON; in a recording, every number is a float."""
    if isinstance(value, dict):
        return {key: as_sent(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_sent(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def test_the_crd_takes_the_node_pools_of_the_examples():
    found, errors = refused(derive_all(load(STACKS / "autoscale.yaml").parsed.organization).values())
    assert found
    assert errors == []


KARPENTER = [case for case in CASES if case.passes and case.rule.startswith("KAR")]


# Each run tests a quarter of them, because each is recorded; tests/local/controllers/test_cluster.py asks a real API
# server.
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if index % 4 == 0 else pytest.mark.nightly, id=f"{case.rule}-{case.name}")
        for index, case in enumerate(KARPENTER)
    ],
)
def test_the_crd_takes_the_node_pools_of_cases_that_pass(case):
    parsed = parse(read_text(case.text.encode()))
    _, errors = refused(derive_all(parsed.organization).values())
    assert errors == []
