"""`hpkit.Platform` in a program of a user's own, and the surface that such a program may use."""

import pulumi
import pytest
from pulumi.runtime import mocks

import hpkit
import hpkit.hyperpod
import hpkit.program.run
from hpkit.plan.derive import derive
from hpkit.program.recording import record
from hpkit.program.recording.record import Answers, _Engine, _Monitor
from tests.program.cloud import ROOT


@pytest.fixture
def registered(monkeypatch):
    """Return what a program with a platform registers, by URN, and the platform."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(hpkit.program.run, "missing_charts", lambda _: ())
    engine = _Engine("us-west-2", Answers(caller="arn:aws:iam::123456789012:role/Admin"))
    monitor = _Monitor(engine)
    mocks.set_mocks(engine, project="acme", stack="handson-dev", preview=False, monitor=monitor)
    made = []

    @pulumi.runtime.test
    def run():
        platform = hpkit.Platform(
            "handson-dev", organization="handson", environment="dev", opts=pulumi.ResourceOptions(protect=True)
        )
        made.append(platform)
        return pulumi.Output.all(platform.cluster_arn, platform.eks_cluster_name, platform.teams).apply(made.append)

    run()
    return monitor.requests, made[1]


def test_a_platform_has_the_programs_resources_below_it(registered):
    requests, _ = registered
    plan = derive(hpkit.program.run.load_stack("handson-dev").parsed.organization, "dev")
    alone = {urn.partition("::hpkit::")[2] for urn in record(plan, stack="handson-dev").resources}
    below = {urn.partition("::acme::")[2] for urn in requests}
    assert below == {"hpkit:index:Platform::handson-dev"} | {f"hpkit:index:Platform${urn}" for urn in alone}


def test_a_platform_has_typed_outputs(registered):
    _, (cluster, eks, teams) = registered
    assert cluster.startswith("arn:aws:sagemaker:us-west-2:")
    assert eks
    assert teams["john"]["queue"] == "hyperpod-ns-john-localqueue"


def test_the_public_surface_is_this():
    assert hpkit.__all__ == ["Platform"]
    assert hpkit.hyperpod.__all__ == ["Cluster", "ClusterSchedulerConfig", "ComputeQuota", "Provider"]
    with pytest.raises(AttributeError, match="has no attribute"):
        _ = hpkit.Cluster
