"""What the program does because of how the official plugin `aws` works, which the fake follows."""

import json
import sys

import pytest

from hpkit.plan.principals import RELEASES_POLICY
from tests.builders import group, organization
from tests.program import aws_parts
from tests.program.cloud import ROOT, Program, Repository
from tests.program.test_engine_recovery import recover, state_file

# By day, recordings show these options, and the fake plugin's tests what they do.
pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(900)]

VIEWER = "arn:aws:iam::123456789012:role/PlatformViewer"
ADA, BEN, GROUP = (f"9447d8c8-{number}001-7012-9c33-2f0a6d0a1b2c" for number in (1, 2, 3))
SCALING = {
    "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
    "nodePools": [{"name": "burst", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 8}}],
}


def described(*, keda=False, users=(ADA, BEN)):
    """Return an organization with a viewer, a file system and users of Grafana."""
    environment = {
        "autoscaling": {**SCALING, **({"keda": {}} if keda else {})},
        "observability": {"grafana": True, "grafanaRoles": {"EDITOR": {"userIds": list(users), "groupIds": [GROUP]}}},
        "storage": {"lustre": {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200}},
    }
    data = organization(
        groups=[group("gpu", "ml.g5.12xlarge", 4), group("burst", "ml.g5.8xlarge", 0)], environment=environment
    )
    dev = data["environments"]["dev"]
    dev["eks"]["viewers"] = [VIEWER]
    dev["protect"] = False
    return data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    repository = Repository(tmp_path_factory.mktemp("repository"))
    program = "from tests.program.aws_parts import run\nrun()\n"
    (repository.folder / "infra" / "__main__.py").write_text(program, encoding="utf-8")
    return repository


@pytest.fixture(scope="module")
def parts(instance, folder):
    folder.write("acme", described())
    program = Program(instance, "acme-dev", root=folder.folder)
    program.environment["PYTHONPATH"] = str(ROOT)
    program.up()
    yield program
    program.destroy()
    program.remove()


def gateways(live):
    """Return the subnet of each NAT gateway by the ID of its address."""
    found = live.client("ec2").describe_nat_gateways()["NatGateways"]
    return {
        each["NatGatewayAddresses"][0]["AllocationId"]: each["SubnetId"]
        for each in found
        if each["State"] == "available"
    }


def test_an_edit_keeps_viewers_access_and_addresses_and_people_who_leave_lose_their_role(parts, folder, live):
    before = gateways(live)
    folder.write("acme", described(keda=True, users=[BEN]))
    parts.environment["ZONES"] = "ba"
    assert parts.up_steps()["NatGateway:nat"] == "replace"
    assert gateways(live).keys() == before.keys()
    assert gateways(live) != before
    which = {"clusterName": "acme-dev", "principalArn": VIEWER}
    (policy,) = live.client("eks").list_associated_access_policies(**which)["associatedAccessPolicies"]
    assert policy["policyArn"].endswith(RELEASES_POLICY)
    assert "keda" in policy["accessScope"]["namespaces"]
    (workspace,) = live.client("grafana").list_workspaces()["workspaces"]
    found = live.client("grafana").list_permissions(workspaceId=workspace["id"])["permissions"]
    assert {each["user"]["id"]: each["role"] for each in found} == {BEN: "EDITOR", GROUP: "EDITOR"}


KILLED = ("aws:eks/cluster:Cluster", "aws:fsx/lustreFileSystem:LustreFileSystem")


def test_recovering_a_cluster_and_a_file_system_replaces_neither(parts, monkeypatch):
    """Take both out of the state, as if `up` had been killed while they were created."""
    file = state_file(parts)
    state = json.loads(file.read_text(encoding="utf-8"))
    latest = state["checkpoint"]["latest"]
    killed = [each for each in latest["resources"] if each["type"] in KILLED]
    urns = {each["urn"] for each in killed}
    assert len(urns) == len(KILLED)
    latest["resources"] = [each for each in latest["resources"] if each["urn"] not in urns]
    for each in latest["resources"]:
        each["dependencies"] = [urn for urn in each.get("dependencies") or () if urn not in urns]
        each["propertyDependencies"] = {
            name: [urn for urn in found or () if urn not in urns]
            for name, found in (each.get("propertyDependencies") or {}).items()
        }
    unfinished = [{key: value for key, value in each.items() if key not in ("id", "outputs")} for each in killed]
    latest["pending_operations"] = [{"type": "creating", "resource": each} for each in unfinished]
    file.write_text(json.dumps(state), encoding="utf-8")
    # `recover` compares the state with what the program registers.
    monkeypatch.setattr(sys.modules["hpkit.program.recording.record"], "build", aws_parts.build)
    assert all(recover(parts))
    # The edit before leaves no difference either.
    assert parts.preview("--refresh") == {}
