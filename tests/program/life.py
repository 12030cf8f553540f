"""The life of an example stack on the real engine and the local cloud: up, jobs, no drift, a change, destroy.

If HPKIT_MIRROR names the folder with the chart of HyperPod's dependencies, the chart is installed too.
"""

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
from tests.running import eventually, get_tools
from tests.security.members import member

__all__ = ["live_through"]

# The field with the replicas, the roles, and the version, for one framework of each operator in the chart.
FRAMEWORKS = {
    "PyTorchJob": ("pytorchReplicaSpecs", ("Worker",), "v1"),
    "MPIJob": ("mpiReplicaSpecs", ("Launcher", "Worker"), "v2beta1"),
}


def live_through(stack, instance, repository):
    """Run a stack through its life and check each step; return the types of the created resources."""
    organization, data, environment = environment_of(repository, stack)
    live = Live(instance, environment["region"])
    before = live.everything()
    program = Program(instance, stack, root=repository.folder)
    mirror = os.environ.get("HPKIT_TESTS_MIRROR")
    if mirror is not None:
        get_tools("training-operator", "mpi-operator")
        program.environment["HPKIT_MIRROR"] = mirror
    asked = Asked(instance)
    asked.during(program.up)
    exported = json.loads(program.read("stack", "export"))
    teams = environment["governance"]["allocations"]
    assert set(live.quotas()) >= set(teams)
    # No wait is needed: the operation that restarted Kueue has waited.
    run_jobs(live, teams)
    if mirror is not None:
        assert_chart_runs(live, instance, next(iter(teams)))
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


def assert_chart_runs(live, instance, team):
    """Wait until the chart's workloads run; its operators run jobs of a member, with their own permissions."""

    def late():
        wanted = [("daemonsets", "desiredNumberScheduled", "numberReady"), ("deployments", "replicas", "readyReplicas")]
        return [
            item["metadata"]["name"]
            for plural, desired, ready in wanted
            for item in live.api.items(f"/apis/apps/v1/{plural}")
            if item["status"].get(desired, 0) != item["status"].get(ready, 0)
        ]

    eventually(lambda: not late(), late)
    names = {each["metadata"]["name"] for each in live.api.items("/apis/apps/v1/daemonsets")}
    assert "health-monitoring-agent" in names
    for kind in FRAMEWORKS:
        run_framework_job(live, member(instance, team), team, kind)


def run_framework_job(live, scientist, team, kind):
    """Run a job of a framework as a member of a team, and wait until its operator from the chart reports its end."""
    field, roles, version = FRAMEWORKS[kind]
    container = {
        "name": "pytorch",
        "image": "train",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    metadata = {"labels": queue_of(team), "annotations": {"hpkit.local/run": "1s"}}
    role = {
        "replicas": 1,
        "restartPolicy": "Never",
        "template": {"metadata": metadata, "spec": {"containers": [container]}},
    }
    job = {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": kind,
        "metadata": {"name": "small", "labels": queue_of(team)},
        "spec": {"runPolicy": {"cleanPodPolicy": "Running"}, field: dict.fromkeys(roles, role)},
    }
    namespace = f"namespaces/hyperpod-ns-{team}"
    folder = f"/apis/kubeflow.org/{version}/{namespace}/{kind.lower()}s"
    scientist.create(folder, job)

    def done():
        conditions = live.api.read(f"{folder}/small").get("status", {}).get("conditions") or []
        return any(each["type"] == "Succeeded" and each["status"] == "True" for each in conditions)

    def pods():
        return live.api.items(f"/api/v1/{namespace}/pods", labels="training.kubeflow.org/job-name=small")

    eventually(done, lambda: live.api.read(f"{folder}/small").get("status"))
    (workload,) = live.api.items(f"/apis/kueue.x-k8s.io/v1beta2/{namespace}/workloads")
    admitted = {each["type"]: each["status"] for each in workload["status"]["conditions"]}["Admitted"]
    assert (workload["metadata"]["ownerReferences"][0]["kind"], admitted) == (kind, "True")
    scientist.delete(f"{folder}/small")
    eventually(lambda: not pods(), pods)


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
