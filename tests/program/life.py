"""The life of an example stack on the real engine and the local cloud: up, jobs, no drift, a change, destroy."""

import json
import os

import pytest

from hpkit.catalog import find_instance_type
from hpkit.errors import ToolError
from hpkit.program.recording import record
from hpkit.project import load_stack
from tests.program.asked import Asked, recorded
from tests.program.asked import write as write_asked
from tests.program.cloud import NODE_CLASSES, NODE_POOLS, Live, Program, change_every_part
from tests.program.states import differences as differences_of_states
from tests.running import eventually

__all__ = ["live_through"]


def live_through(stack, instance, repository):
    """Run a stack through its life and check each step; return the types of the created resources."""
    organization, data, environment = environment_of(repository, stack)
    live = Live(instance, environment["region"])
    before = live.everything()
    program = Program(instance, stack, root=repository.folder)
    asked = Asked(instance)
    asked.during(program.up)
    exported = json.loads(program.read("stack", "export"))
    teams = environment["governance"]["allocations"]
    assert set(live.quotas()) >= set(teams)
    # No wait is needed: the operation that restarted Kueue has waited.
    run_jobs(live, teams)
    (plan,) = load_stack(stack).plans.values()
    assert list(differences_of_states(exported, record(plan))) == []
    again = program.up("--json")
    assert_unchanged(again.stdout)
    assert_unchanged(asked.during(program.run, "refresh", "--yes", "--skip-preview", "--json").stdout)
    if environment.get("autoscaling"):
        assert_autoscaling_is_ready(live, environment["autoscaling"])
    if environment.get("protect"):
        with pytest.raises(ToolError, match="set `protect: false` in its environment"):
            program.destroy()
        assert live.cluster()["ClusterStatus"] == "InService"
    change_every_part(data, environment)
    environment["protect"] = False
    repository.write(organization, data)
    asked.during(program.up)
    asked.during(program.destroy)
    assert program.resources() == []
    if os.environ.get("HPKIT_WRITE_ASKED"):
        write_asked(stack, asked.operations)
    differing = sorted(asked.operations ^ recorded(stack))
    assert not differing, f"{differing}: record anew, see tests/program/asked.py"
    eventually(lambda: differences(before, live.everything()) == {}, lambda: differences(before, live.everything()))
    return {each["type"] for each in exported["deployment"]["resources"]}


def environment_of(repository, stack):
    """Return the organization and the environment of the stack."""
    organization, _, environment = stack.rpartition("-")
    data = repository.read(organization)
    return organization, data, data["environments"][environment]


def run_jobs(live, teams):
    """Run a small job in each team on one of its instance types, and wait until all are complete."""
    for team, rows in teams.items():
        instance_type = find_instance_type(rows[0]["instanceType"])
        limits = {instance_type.accelerator_resource: "1"} if instance_type.accelerators else {}
        resources = {"requests": {"cpu": "100m", "memory": "64Mi", **limits}, "limits": limits}
        container = {"name": "main", "image": "train", "resources": resources}
        pod = {
            "restartPolicy": "Never",
            "containers": [container],
            "nodeSelector": {"node.kubernetes.io/instance-type": instance_type.name},
        }
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "small", "labels": queue_of(team)},
            "spec": {
                "template": {
                    "metadata": {"labels": queue_of(team), "annotations": {"hpkit.local/run": "1s"}},
                    "spec": pod,
                }
            },
        }
        live.api.create(f"/apis/batch/v1/namespaces/hyperpod-ns-{team}/jobs", job)

    def late():
        found = {team: live.api.read(f"/apis/batch/v1/namespaces/hyperpod-ns-{team}/jobs/small") for team in teams}
        return {team: job.get("status") for team, job in found.items() if not job.get("status", {}).get("succeeded")}

    eventually(lambda: not late(), late)
    for team in teams:
        live.api.delete(f"/apis/batch/v1/namespaces/hyperpod-ns-{team}/jobs/small")


def queue_of(team):
    return {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue"}


def assert_unchanged(events):
    """Fail unless the events of a Pulumi run only contain unchanged resources."""
    lines = [json.loads(line) for line in events.splitlines() if line.startswith("{")]
    (counts,) = [line["summaryEvent"]["resourceChanges"] for line in lines if "summaryEvent" in line]
    steps = [line["resOutputsEvent"]["metadata"] for line in lines if "resOutputsEvent" in line]
    changed = [step for step in steps if step["op"] not in ("same", "read", "refresh") or step.get("detailedDiff")]
    assert counts.keys() <= {"same", "read"}, (counts, changed)


def assert_autoscaling_is_ready(live, wanted):
    for folder, names in ((NODE_POOLS, wanted["nodePools"]), (NODE_CLASSES, wanted["nodeClasses"])):
        states = {each["metadata"]["name"]: ready(each) for each in live.api.items(folder)}
        assert states == {each["name"]: "True" for each in names}
    (node_class,) = live.api.items(NODE_CLASSES)
    assert {group["name"] for group in node_class["status"]["instanceGroups"]} == {"burst-a", "burst-b"}


def ready(found):
    return next(each["status"] for each in found["status"]["conditions"] if each["type"] == "Ready")


def differences(before, after):
    return {
        kind: sorted(set(before.get(kind, [])) ^ set(after.get(kind, [])))
        for kind in {**before, **after}
        if before.get(kind) != after.get(kind)
    }
