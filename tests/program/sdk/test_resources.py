"""The typed classes pass exactly the properties in the plugin's schema to the engine."""

import inspect

import pulumi
import pytest

from hpkit.program import sdk as resources
from hpkit.program.recording.record import answer_inline
from hpkit_provider.schema.package import package_schema

SCHEMA = package_schema()["resources"]
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


@pytest.mark.parametrize("token", SCHEMA)
def test_a_class_has_an_argument_for_every_input_and_a_property_for_every_output(token):
    body = SCHEMA[token]
    cls = getattr(resources, token.rpartition(":")[2])
    parameters = inspect.signature(cls.__init__).parameters
    arguments = [name for name in parameters if name not in ("self", "resource_name", "opts")]
    assert len(arguments) == len(body["inputProperties"])
    required = [name for name in arguments if parameters[name].default is inspect.Parameter.empty]
    assert len(required) == len(body["requiredInputs"])
    outputs = set(body["properties"]) - set(body["inputProperties"])
    properties = [name for name, member in inspect.getmembers(cls) if isinstance(member, property)]
    assert len([name for name in properties if name not in ("id", "urn")]) >= len(outputs)
    for name in arguments:
        assert f"{name}:" in cls.__init__.__doc__
