"""Many quotas with the real Pulumi engine: the live quotas equal the declared ones, and never exceed capacity."""

import pytest

from hpkit_local.aws.controllers import Controllers
from hpkit_local.aws.testing import running_endpoint
from hpkit_provider.resources.compute_quota.amounts import Measure, reserved_amounts, total
from tests.local.aws.conftest import Cloud
from tests.provider.builders import GOVERNANCE, TYPE, Project

pytestmark = [pytest.mark.nightly, pytest.mark.engine, pytest.mark.timeout(1800)]

TEAMS = 200
CAPACITY = 300
WHOLE = Measure(TYPE, "Count")


class ReservationLog(Controllers):
    """The reserved amounts, by measure, whenever the endpoint accepts or deletes a quota."""

    def __init__(self):
        self.live, self.moments = {}, []

    def quota_changed(self, quota, cluster):
        del cluster
        self.live[quota["Name"]] = reserved_amounts(quota["ComputeQuotaConfig"])
        self.moments.append(total(self.live.values()))

    def quota_deleted(self, quota, cluster):
        del cluster
        del self.live[quota["Name"]]
        self.moments.append(total(self.live.values()))

    def begin(self):
        """Reset the record, and count from now on."""
        self.moments.clear()


class Watched:
    """A project on an endpoint that records the sum at every moment."""

    def __init__(self, folder, endpoint, ledger, *, nodes):
        self.endpoint, self.ledger, self.cloud = endpoint, ledger, Cloud(endpoint)
        self.project = Project(folder, endpoint, self.cloud)
        self.project.spec["cluster"]["instance_groups"][0]["instanceCount"] = nodes
        self.declare({}, policy=None)
        self.project.up()
        self.cloud.eks.create_addon(clusterName="kube", addonName=GOVERNANCE)

    def declare(self, resources, **more):
        quotas = {
            team: {
                "compute_quota_config": {"computeQuotaResources": [{"instanceType": TYPE, **resource}]},
                "compute_quota_target": {"teamName": team, "fairShareWeight": 10},
            }
            for team, resource in resources.items()
        }
        self.project.spec = {**self.project.spec, "quotas": quotas, **more}

    def live(self):
        pages = self.cloud.sm.get_paginator("list_compute_quotas").paginate()
        entries = [entry for page in pages for entry in page["ComputeQuotaSummaries"]]
        assert {entry["Status"] for entry in entries} <= {"Created", "Updated"}
        return {entry["Name"]: entry["ComputeQuotaConfig"]["ComputeQuotaResources"][0] for entry in entries}

    def counts(self, key="Count"):
        return {name: resource[key] for name, resource in self.live().items() if key in resource}


@pytest.fixture
def watched(tmp_path, request):
    ledger = ReservationLog()
    with running_endpoint(controllers=ledger) as endpoint:
        yield Watched(tmp_path, endpoint, ledger, nodes=request.param)


@pytest.mark.parametrize("watched", [CAPACITY], indirect=True)
def test_two_hundred_quotas_converge_under_throttles_and_never_pass_the_capacity(watched):
    watched.endpoint.set_faults({"throttle": "0.2", "slow-update": "0.05@quota", "slow-create": "0.05@quota"})
    teams = [f"team-{number:03}" for number in range(TEAMS)]
    # The growing half is named first: it waits in all workers while the engine names the shrinking half.
    first = {team: 1 if index < TEAMS // 2 else 2 for index, team in enumerate(teams)}
    second = {team: 3 - count for team, count in first.items()}
    for declared in (first, second):
        watched.ledger.begin()
        watched.declare({team: {"count": count} for team, count in declared.items()})
        watched.project.up("--parallel", str(TEAMS))
        watched.endpoint.set_faults({"throttle": None})
        assert watched.counts() == declared
        watched.endpoint.set_faults({"throttle": "0.2"})
        sums = [live[WHOLE] for live in watched.ledger.moments]
        assert len(sums) >= TEAMS
        assert max(sums) == CAPACITY == sum(declared.values())


@pytest.mark.parametrize("watched", [8], indirect=True)
def test_capacity_that_is_named_after_the_growth_is_reported_at_preview(watched):
    project = watched.project
    watched.declare({"ada": {"count": 3}, "dee": {"count": 5}})
    project.up()
    watched.declare({"ada": {"count": 5}, "dee": {"count": 3}}, after={"dee": ["ada"]})
    project.write()
    said = project.run("preview").stdout
    assert f"The quota 'ada' doesn't fit (2 × {TYPE} too few): dee" in said
    assert "declare it before those that grow, or raise `--parallel`" in said
    project.run("config", "set", "hyperpod:capacityWaitSeconds", "1")
    failed = project.run("up", "--yes", "--skip-preview", check=False)
    assert failed.returncode != 0
    assert "The quota 'ada' doesn't fit, and no known change" in failed.stdout
    watched.declare({"dee": {"count": 3}, "ada": {"count": 5}}, after={"ada": ["dee"]})
    project.write()
    assert "doesn't fit" not in project.run("preview").stdout
    project.up()
    assert watched.counts() == {"ada": 5, "dee": 3}
    assert max(live[WHOLE] for live in watched.ledger.moments) == 8
