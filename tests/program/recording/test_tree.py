"""Recordings of programs, and the tree of resources with the names that AWS will show."""

import subprocess
import sys

import pytest

from generate.examples import example_stacks
from hpkit.plan.derive import derive
from hpkit.program.recording import UNKNOWN_ACCOUNT, Answers, record, tree_of
from tests import builders
from tests.builders import group, organization, team
from tests.program.recorder import STACKS, recorded, recorded_from


def flat(node):
    yield node
    for child in node.children:
        yield from flat(child)


def shown(program):
    return [node for node in flat(tree_of(program)) if node.kind]


@pytest.mark.parametrize("stack", example_stacks())
def test_every_resource_is_shown_once_and_counted(stack):
    program = recorded(stack)
    made = [
        each for each in program.resources.values() if each.custom and not each.type.startswith("pulumi:providers:")
    ]
    kinds = sorted(each.type.rpartition(":")[2] for each in made)
    assert sorted(node.kind.rpartition(".")[2] for node in shown(program)) == kinds
    assert tree_of(program).resources == len(made)


def test_what_is_said_of_a_platform_is_what_its_file_says():
    data = organization(
        teams=[team("nlp", members=["arn:aws:iam::123456789012:role/nlp"])],
        groups=[group("gpu", "ml.g5.12xlarge", 4), group("burst", "ml.g5.8xlarge", 0)],
        environment={
            "storage": {"lustre": {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200}},
            "observability": {"cloudwatch": True, "prometheus": True, "grafana": True},
            "autoscaling": {
                "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
                "nodePools": [{"name": "serving", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 8}}],
            },
            "governance": {
                "allocations": {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 2}]},
                "quotaNames": {"nlp": "language"},
            },
        },
    )
    nodes = {(node.kind, node.name): node for node in shown(recorded_from(data))}
    assert nodes["ec2.Vpc", "acme-dev"].detail == "10.192.0.0/16"
    assert "1200 GiB" in nodes["fsx.LustreFileSystem", "acme-dev"].detail
    assert nodes["kubernetes.NodePool", "serving"].detail == "ml.g5.8xlarge; nvidia.com/gpu 8"
    (cluster,) = [node for (kind, _), node in nodes.items() if kind == "hyperpod.Cluster"]
    assert [(part.name, part.detail) for part in cluster.children] == [
        ("burst", "Karpenter × ml.g5.8xlarge in us-west-2a"),
        ("gpu", "4 × ml.g5.12xlarge in us-west-2a"),
    ]
    quota = nodes["hyperpod.ComputeQuota", "language"]
    assert [(part.name, part.detail) for part in quota.children] == [("ml.g5.12xlarge", "2 instances")]
    assert nodes["eks.AccessEntry", "arn:aws:iam::123456789012:role/nlp"].detail == "data scientist of nlp"


def test_what_is_there_already_is_not_shown():
    data = organization(
        groups=[group("gpu", "ml.g5.12xlarge", 4, lifecycleScript="s3://live/run.sh")],
        environment={"storage": {"existing": {"bucket": "live"}}},
    )
    assert "s3.Bucket" not in {node.kind for node in shown(recorded_from(data))}


def test_an_account_that_nobody_named_stays_open_and_cuts_no_name():
    plan = recorded_from(organization(environment={"account": None})).plan
    there = record(plan, Answers(account="123456789012"))
    unnamed = record(plan, Answers(account=UNKNOWN_ACCOUNT))
    names = [[node.name for node in shown(each) if node.kind == "s3.Bucket"] for each in (there, unnamed)]
    assert names[0] == [name.replace(UNKNOWN_ACCOUNT, "123456789012") for name in names[1]]
    assert UNKNOWN_ACCOUNT in names[1][0]


def test_resources_that_only_tie_others_together_are_known_as_such():
    wiring = {node.kind for node in shown(recorded_from(organization())) if node.wiring}
    assert {"ec2.Route", "s3.BucketPolicy", "hyperpod.ChangeGuard"} <= wiring
    assert not wiring & {"ec2.Vpc", "hyperpod.Cluster", "eks.Addon", "iam.Role"}


def test_a_role_in_two_teams_is_one_access_entry_that_names_both():
    role = "arn:aws:iam::123456789012:role/both"
    data = organization(
        teams=[team("ada", members=[role]), team("bob", members=[role])],
        allocations={name: [{"instanceType": "ml.g5.12xlarge", "count": 1}] for name in ("ada", "bob")},
    )
    entries = {node.name: node.detail for node in shown(recorded_from(data)) if node.kind == "eks.AccessEntry"}
    assert entries[role] == "data scientist of ada, bob"


PROGRAM = """
import asyncio, sys
from pathlib import Path
from hpkit.plan.derive import derive
from hpkit.project import load
from hpkit.program.recording import record

asyncio.run(asyncio.sleep(0))
print(len(record(derive(load(Path(sys.argv[1])).parsed.organization, "dev")).resources))
"""


@pytest.mark.slow
def test_a_program_is_recorded_where_asyncio_left_no_event_loop():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(STACKS / "handson.yaml")], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 50


def test_registrations_are_not_answered_inside_one_another():
    names = [f"team-{number}" for number in range(100)]
    data = builders.organization(
        teams=[builders.team(name) for name in names],
        groups=[builders.group("gpu", "ml.g5.12xlarge", len(names))],
        allocations={name: [{"instanceType": "ml.g5.12xlarge", "count": 1}] for name in names},
    )
    found = record(derive(builders.typed(data), "dev"))
    assert {each.name for each in found.all("index:ComputeQuota")} == set(names)
