"""`hpkit.Platform` in a user's own program, and the API that such a program may use."""

import re
from contextlib import nullcontext
from importlib import resources
from types import SimpleNamespace

import pulumi
import pytest
from pulumi.runtime import mocks

import hpkit
import hpkit.hyperpod
import hpkit.program.run
from hpkit.plan.derive import derive
from hpkit.program.components.common import outputs
from hpkit.program.recording import record
from hpkit.program.recording.record import Answers, _Engine, _Monitor, answer_inline
from tests.program.cloud import ROOT

PAGE = (ROOT / "docs" / "guides" / "program.md").read_text(encoding="utf-8")


@pytest.fixture(params=["handson-dev", "topology-prod"])
def stack(request):
    return request.param


def program_of(page):
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return program


def program_with(*options):
    """Return the page's program with an `aws` provider and other options for the platform."""
    outputs = ", ".join((*options, 'providers=[aws.Provider("ours", region="us-west-2")]'))
    changed = f"environment=environment, opts=pulumi.ResourceOptions({outputs}))"
    return program_of(PAGE).replace("environment=environment)", changed)


@pytest.fixture
def run(stack, monkeypatch):
    """Return a function that runs a program in a stack, and returns its resources by URN and the platform's outputs."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(hpkit.program.run, "missing_charts", lambda _: ())
    engine = _Engine("us-west-2", Answers(caller="arn:aws:iam::123456789012:role/Admin"))
    monitor = _Monitor(engine)
    answer_inline()
    mocks.set_mocks(engine, project="acme", stack=stack, preview=False, monitor=monitor)

    def run(program):
        names = {}

        @pulumi.runtime.test
        def test():
            exec(program, names)  # noqa: S102 - the page's own
            platform = names["platform"]
            found = pulumi.Output.all(platform.cluster_arn, platform.eks_cluster_name, platform.teams)
            return found.apply(lambda outputs: names.update(outputs=outputs))

        test()
        return monitor.requests, names["outputs"]

    return run


@pytest.fixture
def registered(run):
    return run(program_of(PAGE))


def test_a_platform_has_the_resources_of_its_stack_below_it(stack, registered):
    requests, _ = registered
    plan = derive(hpkit.program.run.load_stack(stack).parsed.organization, stack.rpartition("-")[2])
    alone = {urn.partition("::hpkit::")[2] for urn in record(plan, stack=stack).resources}
    below = {urn.partition("::acme::")[2] for urn in requests}
    own = {f"hpkit:index:Platform::{stack}", "aws:sns/topic:Topic::notices"}
    assert below == own | {f"hpkit:index:Platform${urn}" for urn in alone}


@pytest.mark.parametrize("stack", ["handson-dev"])
def test_a_platform_has_typed_outputs(registered):
    _, (cluster, eks, teams) = registered
    assert cluster.startswith("arn:aws:sagemaker:us-west-2:")
    assert eks
    assert teams["john"]["queue"] == "hyperpod-ns-john-localqueue"


@pytest.mark.parametrize("stack", ["handson-dev"])
def test_a_platform_of_another_environment_is_refused(monkeypatch, stack):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(pulumi, "get_stack", lambda: stack)
    with pytest.raises(
        pulumi.RunError, match=r"handson-dev is for dev of handson, but hpkit\.Platform gets prod of topo"
    ):
        hpkit.Platform("other", organization="topology", environment="prod")


@pytest.mark.parametrize("stack", ["handson-dev"])
def test_a_platform_uses_the_aws_provider_and_the_options_that_it_gets(stack, run):
    requests, _ = run(program_with("protect=True"))
    plan = derive(hpkit.program.run.load_stack(stack).parsed.organization, "dev")
    below = {urn: each for urn, each in requests.items() if "Platform$" in urn and each.custom}
    ours = {urn for urn, each in below.items() if "::ours::" in each.provider}
    assert ours == {urn for urn, each in below.items() if each.type.startswith("aws:")}
    (vpc,) = (urn for urn in ours if urn.endswith("::vpc"))
    assert dict(below[vpc].object["tags"]).items() >= plan.tags.items()
    assert below[vpc].protect


@pytest.mark.parametrize(
    ("caller", "zones", "passed", "message"),
    [
        ("arn:aws:sts::123456789012:assumed-role/Admin/other-session", ["a"], "aws", None),
        ("arn:aws:sts::123456789012:assumed-role/Other/session", ["a"], "aws", "stack's configuration leads to"),
        ("arn:aws:sts::210987654321:assumed-role/Admin/session", ["a"], "aws", "stack's configuration leads to"),
        ("arn:aws:sts::123456789012:assumed-role/Admin/session", ["b"], "aws", "Set its region to us-west-2"),
        ("arn:aws:sts::123456789012:assumed-role/Admin/session", ["a"], "hyperpod", "holds the stack's guards"),
    ],
)
def test_a_provider_that_disagrees_with_the_stack_is_refused(monkeypatch, caller, zones, passed, message):
    monkeypatch.setattr(outputs.aws, "get_caller_identity", lambda **_: SimpleNamespace(arn=caller))
    provider = object.__new__(pulumi.ProviderResource)
    provider._type, provider.package = "aws", "aws"
    parent = SimpleNamespace(get_provider=lambda member: provider if member.startswith(f"{passed}:") else None)
    plan = SimpleNamespace(stack="acme-dev", spec=SimpleNamespace(region="us-west-2"))
    own = "arn:aws:iam::123456789012:role/Admin"
    context = nullcontext() if message is None else pytest.raises(pulumi.RunError, match=message)
    with context:
        assert outputs.given_provider(parent, plan, own, ["a"], lambda _: zones) is provider


def test_type_checkers_of_a_users_program_read_the_types():
    assert (resources.files(hpkit) / "py.typed").is_file()


def test_the_public_surface_is_this():
    assert hpkit.__all__ == ["Platform"]
    assert hpkit.hyperpod.__all__ == ["Cluster", "ClusterSchedulerConfig", "ComputeQuota", "Provider"]
    with pytest.raises(AttributeError, match="has no attribute"):
        _ = hpkit.Cluster
