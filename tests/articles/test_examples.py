"""The manifests in docs/examples, and the example stacks from the articles."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hpkit.catalog import instance_type
from hpkit.cluster.jobs.check import check, read_manifests
from hpkit.config import parse, read_text
from hpkit.plan.derive import derive_all
from hpkit.project import load_stack
from tests.builders import findings, organization

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PUBLISHED = Path(__file__).with_name("as_published.yaml")
QUEUE, RANK = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
# The example stack of each manifest.
STACKS = {
    "fsdp-john": "handson-dev",
    "fsdp-smith": "handson-dev",
    "keda-authentication": "autoscale-dev",
    "keda-cloudwatch": "autoscale-dev",
    "keda-prometheus": "autoscale-dev",
    "keda-sqs": "autoscale-dev",
    "server": "autoscale-dev",
    "topology-affinity": "topology-prod",
    "topology-preferred": "topology-prod",
    "topology-required": "topology-prod",
    "topology-unconstrained": "topology-prod",
}


def manifests(name):
    return list(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")))


def plan_of(stack):
    (plan,) = load_stack(stack).plans.values()
    return plan


def test_every_sample_has_a_stack():
    assert {file.stem for file in EXAMPLES.glob("*.yaml")} == STACKS.keys()


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_job_of_a_tutorial_can_run_unless_its_first_line_denies_it(file):
    text = file.read_text(encoding="utf-8")
    plan = plan_of("topology-prod" if file.parent.name == "topology" else f"{file.parent.name}-dev")
    found = list(check(read_manifests(file.name, text), plan))
    assert [each.severity for each in found] == (
        ["error"] if "waits without end" in text or "Karpenter adds" in text else []
    )


@pytest.mark.parametrize("name", STACKS)
def test_every_sample_names_queues_and_classes_that_its_stack_has(name):
    plan = plan_of(STACKS[name])
    namespaces = {team.namespace: team for team in plan.teams}
    classes = {f"{each.name}-priority" for each in plan.policy.priority_classes}
    for document in manifests(name):
        namespace = document["metadata"].get("namespace")
        if namespace is None:
            assert document["kind"] == "ClusterTriggerAuthentication"
            continue
        labels = document["metadata"].get("labels", {})
        assert namespace in namespaces
        assert labels.get(QUEUE, f"{namespace}-localqueue") == namespaces[namespace].local_queue
        assert {labels[RANK]} <= classes if RANK in labels else True
        if document["kind"] in ("Deployment", "ScaledObject"):
            assert "inference" in namespaces[namespace].spec.workloads
        template = document["spec"].get("template")
        if template is not None:
            assert template["metadata"]["labels"][QUEUE] == labels[QUEUE], "the pods are counted too"


def test_check_says_of_the_published_manifest_what_would_not_be_let_in():
    plan = plan_of("handson-dev")
    found = list(check(read_manifests("fsdp.yaml", PUBLISHED.read_text(encoding="utf-8")), plan))
    assert [(each.check, each.severity) for each in found] == [
        ("queue", "error"),
        ("pod-security", "error"),
        ("pod-security", "error"),
        ("team-limits", "error"),
    ]
    for team in ("john", "smith"):
        text = (EXAMPLES / f"fsdp-{team}.yaml").read_text(encoding="utf-8")
        assert list(check(read_manifests("fsdp.yaml", text), plan)) == []


def test_the_scaled_objects_scale_the_server_of_the_samples():
    (server,) = manifests("server")
    for name in ("keda-cloudwatch", "keda-prometheus", "keda-sqs"):
        (manifest,) = manifests(name)
        (authentication,) = manifests("keda-authentication")
        (trigger,) = manifest["spec"]["triggers"]
        assert manifest["spec"]["scaleTargetRef"]["name"] == server["metadata"]["name"]
        assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]


def test_the_samples_of_topology_ask_for_types_with_layers():
    reserved = {each.instance_type for team in plan_of("topology-prod").teams for each in team.quota_resources}
    assert all(instance_type(name).network_layers == 3 for name in reserved)
    assert instance_type("ml.g5.12xlarge").network_layers == 0


@pytest.mark.parametrize(("stack", "teams", "gpus"), [("enterprise-prod", 5, 80), ("startup-dev", 3, 15)])
def test_the_sample_organizations_are_of_the_articles_size(stack, teams, gpus):
    plan = plan_of(stack)
    assert len([team for team in plan.teams if not team.is_shared_pool]) == teams
    assert (
        sum((instance_type(name).accelerators or 0) * known.permanent for name, known in plan.capacity.items()) == gpus
    )
    if stack == "startup-dev":
        assert len({team.spec.fair_share_weight for team in plan.teams}) == 1
        assert {team.spec.preempt_team_tasks for team in plan.teams} == {"LowerPriority"}
    else:
        assert {"DontLend", "LendAndBorrow"} <= {team.spec.sharing.strategy for team in plan.teams}


def test_a_script_that_gets_sigterm_saves_its_step_and_goes_on_and_one_that_is_killed_goes_on_from_its_last(tmp_path):
    environment = {**os.environ, "CHECKPOINTS": str(tmp_path / "run"), "SECONDS_PER_STEP": "0.05"}

    def start():
        script = [sys.executable, EXAMPLES / "resume.py"]
        return subprocess.Popen(script, env=environment, stdout=subprocess.PIPE, text=True)

    def steps(text):
        return [int(line.removeprefix("step ")) for line in text.splitlines()]

    first = start()
    assert first.stdout.readline() == "step 1\n"
    first.send_signal(signal.SIGTERM)
    done = [1, *steps(first.communicate(timeout=300)[0])]
    assert (first.returncode, done) == (143, [*range(1, len(done) + 1)])
    # This step has no checkpoint yet.
    second = start()
    assert second.stdout.readline() == f"step {len(done) + 1}\n"
    second.kill()
    second.communicate()
    third = start()
    assert steps(third.communicate(timeout=300)[0]) == [*range(len(done) + 1, 11)]
    assert third.returncode == 0


def test_a_team_shares_otherwise_in_one_environment():
    data = organization(
        teams=[{"name": "ada", "fairShareWeight": 50, "members": ["arn:aws:iam::123456789012:role/ada"]}],
        allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 4}]},
    )
    data["environments"]["dev"]["governance"]["overrides"] = {
        "ada": {"fairShareWeight": 7, "sharing": {"strategy": "Lend"}, "preemptTeamTasks": "Never"}
    }
    assert [each.rule for each in findings(data)] == []
    parsed = parse(read_text(yaml.safe_dump(data).encode()))
    (plan,) = derive_all(parsed.organization).values()
    (ada,) = plan.teams
    assert (ada.spec.fair_share_weight, ada.spec.sharing.strategy, ada.spec.preempt_team_tasks) == (7, "Lend", "Never")
    assert ada.spec.members == ("arn:aws:iam::123456789012:role/ada",)
