"""The resource classes pass exactly the properties of the plugin's tables to the engine."""

import pulumi
import pytest

from hpkit.program import sdk as resources
from hpkit.program.recording.record import answer_inline
from hpkit_provider.schema.field_table import RESOURCES, table
from hpkit_provider.schema.settings import SETTINGS

ARN = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghijkl"


class Recorder(pulumi.runtime.Mocks):
    """Records registrations, and responds with the outputs of a service that has just created the resource."""

    def __init__(self):
        self.registered = []

    def new_resource(self, args):
        self.registered.append(args)
        return f"{args.name}-id", {
            **args.inputs,
            "computeQuotaArn": "arn:made",
            "clusterArn": args.inputs.get("clusterArn", ARN),
        }

    def call(self, args):
        raise AssertionError(f"nothing should be called, {args.token} was")


@pytest.fixture
def engine():
    recorder = Recorder()
    answer_inline()
    pulumi.runtime.set_mocks(recorder, project="hpkit", stack="test", preview=False)
    return recorder


def test_a_quota_reaches_the_engine_in_the_apis_names(engine):
    made = []

    @pulumi.runtime.test
    def program():
        quota = resources.ComputeQuota(
            "john",
            name="john",
            cluster_arn=ARN,
            compute_quota_config={
                "computeQuotaResources": [{"instanceType": "ml.g5.12xlarge", "count": 3}],
                "resourceSharingConfig": {"strategy": "LendAndBorrow", "borrowLimit": 50},
            },
            compute_quota_target={"teamName": "john", "fairShareWeight": 0},
        )
        return quota.compute_quota_arn.apply(made.append)

    program()
    assert made == ["arn:made"]
    (seen,) = engine.registered
    assert seen.typ == "hyperpod:index:ComputeQuota"
    assert seen.inputs == {
        "name": "john",
        "clusterArn": ARN,
        "computeQuotaConfig": {
            "computeQuotaResources": [{"instanceType": "ml.g5.12xlarge", "count": 3}],
            "resourceSharingConfig": {"strategy": "LendAndBorrow", "borrowLimit": 50},
        },
        "computeQuotaTarget": {"teamName": "john", "fairShareWeight": 0},
    }, "what is not stated is not sent"


@pytest.mark.parametrize("name", RESOURCES)
def test_a_class_has_a_keyword_for_every_input_and_an_attribute_for_every_output(name, engine):
    inputs, resource = table(name).members, getattr(resources, name)
    keywords = getattr(resources, f"_{name}Inputs")
    hints, required = keywords.__annotations__, keywords.__required_keys__

    @pulumi.runtime.test
    def program():
        resource("every", **dict.fromkeys(hints, "x"))
        resource("required", **dict.fromkeys(required, "x"))

    program()
    every, least = engine.registered
    assert every.typ == RESOURCES[name].token
    assert set(every.inputs) == {each.name for each in inputs}
    assert set(least.inputs) == {each.name for each in inputs if each.required}
    attributes = {value.key for value in vars(resource).values() if hasattr(value, "key")}
    assert attributes == {each.name for each in RESOURCES[name].outputs}


def test_the_provider_has_a_keyword_for_every_setting():
    assert {resources._key(name) for name in resources._ProviderInputs.__annotations__} == set(SETTINGS)
