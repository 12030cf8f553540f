"""A job that `hpkit job new --checkpoint` writes is preempted on the local cloud, and resumes from its checkpoints.

Kubernetes, Kueue, the training operator and the training script are real. kwok runs no containers, so the test is the
kubelet: it starts the command of each running pod, ends it as a kubelet does, and then removes the pod.
"""

import json
import os
import signal
import subprocess
import sys

import pytest
import yaml

from hpkit.kueue.configuration import JOB_RESOURCES
from tests.cli.invoke import hpkit
from tests.program.cloud import ROOT, Live
from tests.running import eventually
from tests.security.kinds import templates_in

pytestmark = [pytest.mark.platform, pytest.mark.nightly, pytest.mark.timeout(900)]

SCRIPT = ROOT / "docs" / "examples" / "resume.py"
BUCKET = "checkpoints-of-smith"
JOBS = {"job": "Job", "pytorchjob": "PyTorchJob"}


class Kubelet:
    """The processes of a namespace's pods by UID, and the seconds that each ended pod had."""

    def __init__(self, live, namespace):
        self.live, self.pods = live, f"/api/v1/namespaces/{namespace}/pods"
        self.processes, self.grace = {}, {}

    def sync(self):
        """Start and end processes as the pods require; return the UIDs of the pods that run."""
        for pod in self.live.api.items(self.pods):
            uid, process = pod["metadata"]["uid"], self.processes.get(pod["metadata"]["uid"])
            if "deletionTimestamp" in pod["metadata"]:
                self._end(pod, process)
            elif pod.get("status", {}).get("phase") == "Running" and process is None:
                self.processes[uid] = self._start(pod)
        return {uid for uid, process in self.processes.items() if process.poll() is None and uid not in self.grace}

    def _start(self, pod):
        (container,) = pod["spec"]["containers"]
        assert container["command"] == ["python", "train.py"]
        annotations = pod["metadata"]["annotations"]
        variables = {
            variable["name"]: variable.get("value")
            or annotations[variable["valueFrom"]["fieldRef"]["fieldPath"].split("'")[1]]
            for variable in container["env"]
        }
        own = {"AWS_ENDPOINT_URL": self.live.url, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
        own |= {"AWS_DEFAULT_REGION": self.live.region, "STEPS": "100000", "SECONDS_PER_STEP": "0.2"}
        return subprocess.Popen(
            [sys.executable, SCRIPT], env={**os.environ, **variables, **own}, stdout=subprocess.PIPE
        )

    def _end(self, pod, process):
        uid = pod["metadata"]["uid"]
        if uid not in self.grace:
            self.grace[uid] = pod["metadata"]["deletionGracePeriodSeconds"]
            process.send_signal(signal.SIGTERM)
        elif process.poll() is not None:
            self.live.api.delete(f"{self.pods}/{pod['metadata']['name']}")

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def live(instance):
    return Live(instance)


@pytest.fixture
def kubelet(live):
    s3 = live.client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": live.region})
    kubelet = Kubelet(live, "hyperpod-ns-smith")
    yield kubelet
    kubelet.close()
    for each in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        s3.delete_object(Bucket=BUCKET, Key=each["Key"])
    s3.delete_bucket(Bucket=BUCKET)


@pytest.fixture
def submit(live):
    """Create a job of a team as `hpkit job new` writes it, for a day on the local cloud; return its path."""
    paths = []

    def create(team, *words):
        written = hpkit("job", "new", "--stack", "handson-dev", "--team", team, "--instance-type", "ml.g5.12xlarge",
                        *words, cwd=ROOT)  # fmt: skip
        assert written.returncode == 0, written.stderr
        document = next(yaml.safe_load_all(written.stdout))
        for template in templates_in(document):
            template["metadata"]["annotations"] = {"hpkit.local/run": "24h"}
            if "--checkpoint" in words:
                template["metadata"]["annotations"]["hpkit.local/ignore-sigterm"] = "true"
        version, plural = JOB_RESOURCES[document["kind"]]
        folder = f"/apis/{version}/namespaces/hyperpod-ns-{team}/{plural}"
        paths.append(f"{folder}/train")
        live.api.create(folder, document)
        return paths[-1]

    yield create
    for path in paths:
        if live.api.find(path) is not None:
            live.api.delete(path)
    for team in ("john", "smith"):
        pods = f"/api/v1/namespaces/hyperpod-ns-{team}/pods"
        for pod in live.api.items(pods, metadata_only=True):
            live.api.delete(f"{pods}/{pod['metadata']['name']}")
        eventually(lambda pods=pods: not live.api.items(pods), "its pods end")


@pytest.mark.parametrize("kind", JOBS)
def test_a_job_on_borrowed_instances_saves_when_they_are_reclaimed_and_resumes_when_they_are_free(
    live, operator, kubelet, submit, kind
):
    submit("smith", "--kind", kind, "--count", "2", "--checkpoint", f"s3://{BUCKET}/{kind}")
    eventually(lambda: len(kubelet.sync()) == 2, lambda: live.api.items(kubelet.pods))
    first = dict(kubelet.processes)
    assert [process.stdout.readline() for process in first.values()] == [b"step 1\n"] * 2
    john = submit("john", "--count", "3")
    eventually(lambda: not kubelet.sync(), "its processes end")
    assert [*kubelet.grace.values()] == [120, 120]
    assert [process.wait() for process in first.values()] == [143, 143]
    steps = {process.stdout.read().split()[-1] if process.poll() else None for process in first.values()}
    saved = [
        json.loads(live.client("s3").get_object(Bucket=BUCKET, Key=f"{kind}/rank-{rank}.json")["Body"].read())["step"]
        for rank in (0, 1)
    ]
    assert {str(step).encode() for step in saved} == steps

    def runs_again():
        pods = live.api.items("/api/v1/namespaces/hyperpod-ns-john/pods")
        kubelet.sync()
        return [each.get("status", {}).get("phase") for each in pods] == ["Running"] * 3

    eventually(runs_again, "john has his instances")
    live.api.delete(john)
    eventually(lambda: len(kubelet.sync()) == 2, lambda: live.api.items(kubelet.pods))
    second = [process for uid, process in kubelet.processes.items() if uid not in first]
    assert sorted(int(process.stdout.readline().split()[1]) for process in second) == sorted(n + 1 for n in saved)
