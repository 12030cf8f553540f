"""`hpkit cluster check` on the local cloud, where only containers are simulated."""

import os
import re
import signal
import subprocess

import pytest

from tests.cli.invoke import hpkit
from tests.cli.test_validate import HPKIT
from tests.documents import document
from tests.program.cloud import ROOT
from tests.running import eventually, making

pytestmark = [pytest.mark.platform, pytest.mark.timeout(900)]


@pytest.fixture
def variables(live):
    keys = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_SESSION_TOKEN": ""}
    return {"AWS_ENDPOINT_URL": live.url, "AWS_EC2_METADATA_DISABLED": "true", **keys}


def left(live):
    """Return what a check created and didn't delete."""
    pods = [each["metadata"]["name"] for each in live.api.items("/api/v1/pods")]
    jobs = [each["metadata"]["name"] for each in live.api.items("/apis/batch/v1/jobs")]
    spaces = [each["metadata"]["name"] for each in live.api.items("/api/v1/namespaces")]
    return [name for name in (*pods, *jobs, *spaces) if re.match("hpkit-check|group-|all-reduce-", name)]


def test_a_live_stack_is_checked_and_nothing_is_left(live, variables):
    done = hpkit("cluster", "check", "--stack", "handson-dev", "--image", "torch", cwd=ROOT, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    head, *lines, summary = done.stdout.splitlines()
    assert "simulated, so not tested" in head
    assert [" ".join(line.split()[:3]) for line in lines] == [
        "group gpu ok",
        "group system ok",
        "team john ok",
        "team smith ok",
        "all-reduce gpu ok",
    ]
    assert summary == "handson-dev: 5 checks, 0 failed, 0 skipped"
    assert left(live) == []


@pytest.mark.nightly
def test_a_group_without_free_gpus_fails_with_the_schedulers_reason(live, variables):
    resources = {"limits": {"nvidia.com/gpu": 4}}
    pod = {
        "nodeSelector": {"sagemaker.amazonaws.com/instance-group-name": "gpu"},
        "containers": [{"name": "busy", "image": "busy", "resources": resources}],
    }
    folder = "/api/v1/namespaces/default/pods"
    with making(live.api) as make:
        for number in range(4):
            make(folder, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"busy-{number}"}, "spec": pod})
        eventually(lambda: all(each["spec"].get("nodeName") for each in live.api.items(folder)), "they're placed")
        words = ("cluster", "check", "--stack", "handson-dev", "--timeout", "25", "--format", "json")
        done = hpkit(*words, cwd=ROOT, **variables)
    assert done.returncode == 1
    results = {item["name"]: item for item in document(done.stdout)["items"]}
    assert re.match(r"not within 25 s: .*Insufficient nvidia.com/gpu", results["group gpu"]["detail"])
    assert (results["group gpu"]["status"], results["team smith"]["status"]) == ("failed", "ok")
    assert results["team smith"]["simulated"] == "image pull"
    assert left(live) == []


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_check_leaves_nothing(live, variables, number):
    command = [HPKIT, "cluster", "check", "--stack", "handson-dev"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **variables}, **pipes) as process:
        eventually(lambda: left(live) or process.poll() is not None, "it creates something")
        process.send_signal(number)
        _, stderr = process.communicate(timeout=300)
    assert process.returncode != 0
    assert "Traceback" not in stderr, stderr
    assert left(live) == []
