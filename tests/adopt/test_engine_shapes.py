"""Adoption of live platforms with the real engine: nothing is created, changed or deleted without confirmation."""

import json

import pytest
import yaml

from tests.adopt.shapes import Maker, by_hand, console
from tests.program.cloud import ROOT, Live, Program
from tests.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]

STACK = "acme-prod"
STACKS = ("autoscale-dev", "enterprise-prod", "handson-dev")
INSTANCES = 4
QUIET = ("same", "read", "refresh")
# Admission policies contain the stack's name, which is a prefix in the registry of its teams.
NAMED_AFTER_THE_STACK = {"update": 4}


def adopted(shell, cluster):
    """Adopt a cluster as its page describes, and return the output of the last command."""
    where = ("--organization", "acme", "--environment", "prod", "--output", "stacks/acme.yaml")
    shell("hpkit", "aws", "adopt", "--cluster", cluster, *where)
    return shell("hpkit", "aws", "adopt", "run", "--stack", STACK).stdout


def counts(shell, verb, stack=STACK):
    """Return the number of resources per operation."""
    options = ["--yes", "--skip-preview"] if verb != "preview" else []
    output = shell("pulumi", verb, "--stack", stack, "--json", "--non-interactive", *options).stdout
    if verb == "preview":
        summary = json.loads(output)["changeSummary"]
    else:
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        (summary,) = [line["summaryEvent"]["resourceChanges"] for line in lines if "summaryEvent" in line]
    return {name: count for name, count in summary.items() if name not in QUIET}


def edited(repository, change):
    """Edit the organization file and its environment."""
    file = repository.folder / "stacks" / "acme.yaml"
    data = yaml.safe_load(file.read_text())
    change(data, data["environments"]["prod"])
    file.write_text(yaml.safe_dump(data, sort_keys=False))


def one_team_more(data, prod):
    """Give a new team an instance; take it from the first team if no instance is unallocated."""
    data["teams"].append({"name": "serving"})
    allocations = prod["governance"]["allocations"]
    if sum(rows[0]["count"] for rows in allocations.values()) == INSTANCES:
        allocations[min(allocations)][0]["count"] -= 1
    allocations["serving"] = [{"instanceType": "ml.g5.12xlarge", "count": 1}]


def quota_shifted(data, prod):
    del data
    allocations = prod["governance"]["allocations"]
    first, second = sorted(allocations)[:2]
    allocations[first][0]["count"] -= 1
    allocations[second][0]["count"] += 1


def lives_on(shell, repository, live, before, *, a_team_more, first=None):
    """Run the steps that follow an adoption, and return the platform to its old owner."""
    assert counts(shell, "preview") == counts(shell, "up") == (first or {})
    assert live.settled() == before, "an adoption touched something"
    edited(repository, one_team_more)
    assert counts(shell, "up") == a_team_more
    edited(repository, quota_shifted)
    assert counts(shell, "up") == {"update": 2}
    assert counts(shell, "refresh") == {}
    changed = live.settled()
    shell("pulumi", "stack", "export", "--stack", STACK, "--file", f"{STACK}.state.json")
    shell("pulumi", "stack", "rm", STACK, "--yes", "--force", "--preserve-config")
    assert shell("pulumi", "stack", "ls", "--json").stdout.strip() == "[]"
    assert live.settled() == changed, "handing back touched something"


@pytest.mark.parametrize(("shape", "imported"), [(console, 20), (by_hand, 19)])
def test_a_platform_that_others_made_is_adopted_lived_in_and_handed_back(shape, imported, shell, repository, live):
    shape(Maker(live))
    before = live.settled()
    said = adopted(shell, live.cluster()["ClusterName"])
    assert f"is adopted: {imported} resources, and the preview shows no changes" in said, said
    lives_on(shell, repository, live, before, a_team_more={"create": 1})


def made_and_forgotten(instance, repository, stack):
    """Deploy an example, and remove its stack from Pulumi, because two stacks never own the same resource."""
    for name in (f"{stack.rpartition('-')[0]}.yaml", f"Pulumi.{stack}.yaml"):
        (repository.folder / "stacks" / name).write_text((ROOT / "stacks" / name).read_text())
    made = Program(instance, stack, root=repository.folder)
    made.up()
    made.read("stack", "rm", "--yes", "--force", "--preserve-config")


@pytest.mark.parametrize("stack", STACKS)
def test_an_example_whose_state_is_lost_is_adopted_back_without_a_change(stack, instance, shell, repository):
    made_and_forgotten(instance, repository, stack)
    organization, environment = stack.split("-")
    file = repository.folder / "stacks" / f"{organization}.yaml"
    spec = yaml.safe_load(file.read_text())["environments"][environment]
    live = Live(instance, spec["region"])
    before = live.settled()
    where = ("--cluster", spec["cluster"]["name"], "--region", spec["region"], "--output", f"stacks/{file.name}")
    output = shell(
        "hpkit", "aws", "adopt", *where, "--organization", organization, "--environment", environment, "--force"
    ).stderr
    assert "doesn't exist yet" not in output, output
    output = shell("hpkit", "aws", "adopt", "run", "--stack", stack).stdout
    assert "resources, and the preview shows no changes" in output, output
    for verb in ("up", "refresh", "up"):
        assert counts(shell, verb, stack) == {}
    assert live.settled() == before, "an adoption touched something"


def test_a_platform_that_karpenter_fills_is_adopted_and_keeps_its_nodes(instance, shell, repository, live):
    made_and_forgotten(instance, repository, "autoscale-dev")
    added = [{"InstanceGroupName": "burst-a", "IncrementTargetCountBy": 2}]
    live.client("sagemaker").batch_add_cluster_nodes(ClusterName="autoscale", NodesToAdd=added)
    eventually(lambda: live.settled()["nodes"] == 5, "what is added joins the cluster")
    before = live.settled()
    assert {group["InstanceGroupName"]: group["CurrentCount"] for group in live.cluster()["InstanceGroups"]} == {
        "base": 2,
        "burst-a": 2,
        "burst-b": 0,
        "system": 1,
    }
    said = adopted(shell, "autoscale")
    assert "is adopted, with 4 differences; none deletes or replaces a resource" in said, said
    written = yaml.safe_load((repository.folder / "stacks" / "acme.yaml").read_text())
    groups = written["environments"]["prod"]["cluster"]["instanceGroups"]
    assert {group["name"]: group["instanceCount"] for group in groups}["burst-a"] == 0, "Karpenter's own count"
    assert counts(shell, "preview") == counts(shell, "up") == NAMED_AFTER_THE_STACK
    assert counts(shell, "refresh") == {}
    assert live.settled() == before, "an adoption touched something"
