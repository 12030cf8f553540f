"""The pack as a separate process, called with the engine's protocol for all resources of hpkit's program."""

import re
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2 as proto
from pulumi.runtime.proto import analyzer_pb2_grpc
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from tests.policies.test_own_stacks import settings_of
from tests.program.recorder import recorded

pytestmark = pytest.mark.timeout(900)

PACK = Path(__file__).parents[2] / "policies"
MADE = re.compile(r"arn:aws:made:|arn:aws:sagemaker:.*cluster/abc|-id$|\.example$")


@pytest.fixture(scope="module")
def pack():
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:0", str(PACK)]
    with subprocess.Popen(command, cwd=PACK, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = process.stdout.readline().strip()
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield analyzer_pb2_grpc.AnalyzerStub(channel)
        finally:
            process.kill()


def first_preview(value):
    """Return inputs as they are before anything is created: outputs of resources are unknown."""
    if isinstance(value, dict):
        return {key: first_preview(each) for key, each in value.items()}
    if isinstance(value, list):
        return [first_preview(each) for each in value]
    return UNKNOWN_STRING_VALUE if isinstance(value, str) and MADE.search(value) else value


def as_is(value):
    return value


def struct(data):
    return json_format.ParseDict(data, struct_pb2.Struct())


def configure(pack, stack):
    """Configure like the engine: the defaults of the schemas, overridden by the organization's file."""
    given = settings_of(stack)
    request = proto.ConfigureAnalyzerRequest()
    for policy in pack.GetAnalyzerInfo(empty_pb2.Empty()).policies:
        schema = json_format.MessageToDict(policy.configSchema).get("properties", {})
        settings = {name: each["default"] for name, each in schema.items()} | given.get(policy.name, {})
        request.policyConfig[policy.name].enforcementLevel = policy.enforcementLevel
        request.policyConfig[policy.name].properties.CopyFrom(struct(settings))
    pack.Configure(request)


def fields(resource, program, visible):
    providers = program.named("providers:aws") | program.named("providers:hyperpod")
    provider = next((one for one in providers.values() if resource.provider.startswith(one.urn)), None)
    return {
        "type": resource.type,
        "properties": struct(visible(resource.inputs)),
        "urn": resource.urn,
        "name": resource.name,
        "options": proto.AnalyzerResourceOptions(protect=resource.protect),
        "provider": proto.AnalyzerProviderResource(
            type=provider.type, urn=provider.urn, name=provider.name, properties=struct(provider.inputs)
        )
        if provider
        else None,
    }


def ask(pack, program, visible):
    """Return every diagnostic of a program: for each resource, then for the stack."""
    diagnostics = []
    for each in program.resources.values():
        diagnostics += pack.Analyze(proto.AnalyzeRequest(**fields(each, program, visible))).diagnostics
    together = proto.AnalyzeStackRequest(
        resources=[
            proto.AnalyzerResource(
                **fields(resource, program, visible),
                dependencies=resource.after,
                propertyDependencies={
                    name: proto.AnalyzerPropertyDependencies(urns=resource.after) for name in resource.inputs
                },
            )
            for resource in program.resources.values()
        ]
    )
    return [*diagnostics, *pack.AnalyzeStack(together).diagnostics]


@pytest.mark.parametrize("visible", [first_preview, as_is])
@pytest.mark.parametrize("stack", ["enterprise-prod", "autoscale-dev"])
def test_the_kits_own_stacks_pass_before_and_after_they_are_made(pack, stack, visible):
    configure(pack, stack)
    mandatory = proto.EnforcementLevel.Value("MANDATORY")
    said = ask(pack, recorded(stack), visible)
    assert [each.message for each in said if each.enforcementLevel == mandatory] == []
    undecided = {each.policyName for each in said if "can't run policy" in each.message}
    assert "quota-fits-capacity" not in undecided, "quotas are compared before the cluster has an ARN"
    assert ("bucket-tls-only" in undecided) is (visible is first_preview), "its document names the bucket's ARN"
    assert visible is first_preview or not undecided, undecided


def test_a_provider_in_a_region_that_is_not_allowed_is_reported_resource_by_resource(pack):
    configure(pack, "topology-prod")
    program = recorded("enterprise-prod")
    said = [each for each in ask(pack, program, as_is) if each.policyName == "regions-allowed"]
    assert len(said) > 20
    assert all("us-east-1" in each.message for each in said)
