"""What `hpkit job check --live` promises comes true: random manifests of members on a real API server and Kueue.

Without an error, a job that starts now runs within seconds, and one that waits doesn't; with an error, none runs.
"""

import random
import time

import pytest

from hpkit.cluster.jobs.check import check, read_manifests
from hpkit.cluster.jobs.forecast import predict_all, tasks_of
from hpkit.cluster.jobs.server import Server
from hpkit.cluster.live.kubernetes import Kubernetes
from tests.cluster.field.test_state import FAIR, FOLDERS, PLAN, World, deployment, job, made
from tests.cluster.jobs.builders import text_of
from tests.conftest import NIGHTLY
from tests.security.members import member, tried

pytestmark = [pytest.mark.platform, pytest.mark.timeout(1800)]

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def selected(key, values, operator="In"):
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def apart(name):
    term = {"labelSelector": {"matchLabels": {"own": name}}, "topologyKey": HOST}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(name, key):
    selector = {"matchLabels": {"own": name}}
    return {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        ]
    }


def volume(source):
    return {"volumes": [{"name": "v", **source}]}


def places(rng, name):
    """Return a random part of a pod's spec that decides where it can run; most pods have none."""
    types = ["ml.g5.12xlarge", "ml.m5.4xlarge"]
    return rng.choice(
        [
            *[{}] * 20,
            *({"nodeSelector": {"node.kubernetes.io/instance-type": each}} for each in types),
            {"nodeSelector": {ZONE: rng.choice(["us-west-2a", "us-west-2b"])}},
            {"nodeSelector": {"kubernetes.io/arch": rng.choice(["amd64", "arm64"])}},
            {"nodeSelector": {"sagemaker.amazonaws.com/instance-group-name": rng.choice(["gpu", "system"])}},
            {"nodeSelector": {"kubernetes.io/os": rng.choice(["linux", "windows"])}},
            {"nodeSelector": {HOST: "nowhere"}},
            {"nodeSelector": {"sagemaker.amazonaws.com/node-health-status": rng.choice(["Schedulable", "Unknown"])}},
            selected(ZONE, ["us-west-2a"], rng.choice(["In", "NotIn"])),
            selected("node.kubernetes.io/instance-type", types[:1], rng.choice(["In", "NotIn"])),
            apart(name),
            spread(name, rng.choice([HOST, ZONE, "rack"])),
            {"schedulingGates": [{"name": "example.com/wait"}]},
            {"os": {"name": rng.choice(["linux", "windows"])}},
            {"tolerations": [{"key": rng.choice(["nvidia.com/gpu", "any"]), "operator": "Exists"}]},
            {"schedulerName": rng.choice(["default-scheduler", "volcano"])},
            {"preemptionPolicy": "Never"},
            {"hostname": "a", "subdomain": "b", "activeDeadlineSeconds": 9000},
            volume({"persistentVolumeClaim": {"claimName": "missing"}}),
            volume({"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}),
            volume({"ephemeral": {"volumeClaimTemplate": {"spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}),
        ]
    )  # fmt: skip


def amounts(rng):
    requests = {"cpu": rng.choice(["1", "1", "1", "8", "40"]), "memory": rng.choice(["1Gi", "16Gi", "150Gi"])}
    limits = rng.choice(
        [{}, {}, {"memory": requests["memory"]}, {"ephemeral-storage": "10Gi"}, {"hugepages-2Mi": "2Mi"}]
    )
    gpus = rng.choice([0, 1, 2, 3, 4, 4])
    return {"requests": requests, "limits": {**limits, **({"nvidia.com/gpu": gpus} if gpus else {})}}


def drawn(rng, name):
    """Return a random job of a random team."""
    team, pods = rng.choice(["john", "smith"]), rng.choice([1, 1, 2, 3, 4])
    build = rng.choice([job, job, deployment])
    document = build(team, name, pods)
    template = document["spec"]["template"]
    template["metadata"]["labels"]["own"] = name
    spec = template["spec"]
    spec |= places(rng, name)
    spec["containers"][0]["resources"] = amounts(rng)
    first = {
        "name": "first",
        "image": "first",
        "resources": {"requests": {"cpu": rng.choice(["1", "30"]), "memory": "1Gi"}},
    }
    spec["initContainers"] = rng.choice([[], [], [first], [{**first, "restartPolicy": "Always"}]])
    if rng.random() < 0.05:
        spec["resources"] = {"requests": {"cpu": "47", "memory": "160Gi"}}
    if build is job:
        document["spec"] |= rng.choice(
            [{}, {}, {"completionMode": "Indexed"}, {"suspend": True}, {"completions": pods + 2}]
        )
        if pods > 2 and rng.random() < 0.3:
            document["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "2"}
        if pods == 1 and rng.random() < 0.3:
            labels = {**template["metadata"]["labels"]}
            return made("Pod", team, name, spec, "v1", labels=labels, annotations={"hpkit.local/run": "9h"})
        if rng.random() < 0.1:
            del document["metadata"]["labels"]
    else:
        document["spec"]["paused"] = rng.random() < 0.1
    return document


@pytest.fixture(scope="module")
def world(clouds):
    cloud = World(clouds.handson())
    with cloud.client:
        yield cloud
        cloud.clean("john", "smith")


@pytest.fixture(scope="module")
def members(clouds):
    return {team: member(clouds.handson(), team) for team in ("john", "smith")}


def is_running(world, document):
    """Return whether as many pods of a job run as must."""
    team = document["metadata"]["namespace"].removeprefix("hyperpod-ns-")
    pods = world.pods(team, labels=f"own={document['metadata']['name']}")
    ready = sum(
        any((each["type"], each["status"]) == ("Ready", "True") for each in pod["status"].get("conditions", ()))
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
    )
    least = document["metadata"].get("annotations", {}).get("kueue.x-k8s.io/job-min-parallelism")
    spec = document["spec"]
    return ready >= int(least or spec.get("parallelism", spec.get("replicas", 1)))


def test_what_is_promised_of_random_jobs_comes_true(world, members):
    seed = int(time.time()) if NIGHTLY else 7
    rng, wrong, fates = random.Random(seed), [], []  # noqa: S311 - no secret
    end = time.monotonic() + (600 if NIGHTLY else 15)
    while time.monotonic() < end:
        document = drawn(rng, f"r{len(fates)}")
        name, namespace = document["metadata"]["name"], document["metadata"]["namespace"]
        api = members[namespace.removeprefix("hyperpod-ns-")]
        found = list(check(read_manifests("f", text_of(document)), PLAN, (), Server(Kubernetes(api._client))))
        is_wrong = any(each.severity == "error" for each in found)
        observed = world.jobs().observed
        forecasts = list(predict_all(observed, tasks_of([document], PLAN, observed), fair_sharing=FAIR))
        starts = not is_wrong and bool(forecasts) and {each.fate for each in forecasts} <= {"now", "borrowing"}
        folder = FOLDERS[document["kind"]].format(namespace)
        rejected = tried(api.create, folder, document)
        fates.append("errors" if is_wrong else "starts" if starts else "waits")
        story = (seed, document, [each.message for each in found], [each.reason for each in forecasts], rejected)
        if rejected:
            wrong += [] if is_wrong else [story]
            continue
        path = f"{folder}/{name}"
        world.paths.append(path)
        # Enough for Kueue, the controllers and the scheduler to start what they will.
        deadline = time.monotonic() + (30 if starts else 4)
        while not (runs := is_running(world, document)) and time.monotonic() < deadline:
            time.sleep(0.2)
        # Nothing tells a member whether such a scheduler runs, so nothing is promised.
        is_open = any("unless an administrator" in each.message for each in found)
        is_open |= "unknown" in {each.fate for each in forecasts}
        if runs != starts and not is_open:
            wrong.append((*story, world.reason(name)))
        if not starts or rng.random() < 0.5:
            world.paths.remove(path)
            world.live.api.delete(path)
            time.sleep(1)
    print(seed, {each: fates.count(each) for each in fates})
    assert not wrong, "\n\n".join(map(str, wrong))
    assert {"errors", "starts"} <= {*fates}
