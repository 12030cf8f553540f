"""`hpkit.Platform` in a program of a user's own, and the surface that such a program may use."""

import re
from importlib import resources

import pulumi
import pytest
from pulumi.runtime import mocks

import hpkit
import hpkit.hyperpod
import hpkit.program.run
from hpkit.plan.derive import derive
from hpkit.program.recording import record
from hpkit.program.recording.record import Answers, _Engine, _Monitor, answer_inline
from tests.program.cloud import ROOT

PAGE = (ROOT / "docs" / "guides" / "program.md").read_text(encoding="utf-8")


@pytest.fixture(params=["handson-dev", "topology-prod"])
def stack(request):
    return request.param


@pytest.fixture
def registered(stack, monkeypatch):
    """Return what the page's program registers in a stack, by URN, and its outputs."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(hpkit.program.run, "missing_charts", lambda _: ())
    engine = _Engine("us-west-2", Answers(caller="arn:aws:iam::123456789012:role/Admin"))
    monitor = _Monitor(engine)
    answer_inline()
    mocks.set_mocks(engine, project="acme", stack=stack, preview=False, monitor=monitor)
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}

    @pulumi.runtime.test
    def run():
        exec(program, names)  # noqa: S102 - the page's own
        platform = names["platform"]
        found = pulumi.Output.all(platform.cluster_arn, platform.eks_cluster_name, platform.teams)
        return found.apply(lambda outputs: names.update(outputs=outputs))

    run()
    return monitor.requests, names["outputs"]


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


def test_type_checkers_of_a_users_program_read_the_types():
    assert (resources.files(hpkit) / "py.typed").is_file()


def test_the_public_surface_is_this():
    assert hpkit.__all__ == ["Platform"]
    assert hpkit.hyperpod.__all__ == ["Cluster", "ClusterSchedulerConfig", "ComputeQuota", "Provider"]
    with pytest.raises(AttributeError, match="has no attribute"):
        _ = hpkit.Cluster
