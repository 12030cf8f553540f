"""`hpkit job logs`, `exec` and `stop`: what they print, pass on, and ask."""

import base64
import json
from contextlib import contextmanager
from types import SimpleNamespace

import boto3
import pytest

from hpkit.cli import job_running
from tests.cli.invoke import hpkit
from tests.cluster.jobs.test_running import INDEX, NAME, FakeApi, job, pod
from tests.documents import document
from tests.program.cloud import ROOT

STACK = ("--stack", "handson-dev")


@pytest.fixture
def api(monkeypatch):
    """A job of john with ranks 0 and 1, of which the second hasn't started."""
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    pods = [
        pod("train-0-x", {NAME: "train", INDEX: "0"}),
        pod("train-1-x", {NAME: "train", INDEX: "1"}, state=waiting),
    ]
    fake = FakeApi(job(), pods=pods, logs={"train-0-x": ["1Z first", "2Z \x1b[31msecond"]})
    authority = {"data": base64.b64encode(b"ca").decode()}
    eks = {"name": "eks", "endpoint": "https://eks.test", "certificateAuthority": authority}

    @contextmanager
    def client(*_, **__):
        yield fake

    keys = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "any")
    session = boto3.Session(**keys, region_name="us-west-2")
    monkeypatch.setattr(job_running, "kubernetes_api", client)
    monkeypatch.setattr("hpkit.cli.aws_session.aws_session", lambda *_: session)
    monkeypatch.setattr("hpkit.cluster.live.read.find", lambda *_: SimpleNamespace(eks=eks))
    return fake


def test_logs_have_their_rank_and_what_is_no_log_is_on_standard_error(api):
    answer = hpkit("job", "logs", "train", *STACK, "--since", "2h", cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "rank 0 | first\nrank 0 | second\n"
    assert answer.stderr.splitlines() == [
        "Job train of john: 1 of 2 ranks running",
        "  rank 1 hasn't started: ContainerCreating",
    ]
    assert api.queries[-1]["sinceSeconds"] == "7200"
    lines = hpkit("job", "logs", "train", *STACK, "--format", "json", cwd=ROOT).stdout.splitlines()
    assert [(document(line)["rank"], document(line)["line"]) for line in lines] == [(0, "first"), (0, "\x1b[31msecond")]
    one = hpkit("job", "logs", "train", *STACK, "--rank", "3", cwd=ROOT)
    assert (one.returncode, one.stdout) == (1, "")
    assert "Job train of john has no pod of rank 3; it has 0, 1" in one.stderr
    assert "write a number with its unit" in hpkit("job", "logs", "train", "--since", "2", cwd=ROOT).stderr


def test_exec_runs_kubectl_in_rank_0_with_a_token_and_exits_as_it_does(api, tmp_path):
    del api
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(
        f'#!/bin/sh\ncp "${{1#--kubeconfig=}}" {tmp_path}/config\nprintf "%s\\n" "$@" > {tmp_path}/words\nexit 7\n'
    )
    kubectl.chmod(0o755)
    answer = hpkit("job", "exec", "train", *STACK, "--", "nvidia-smi", "-L", cwd=ROOT, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert answer.returncode == 7, answer.stderr
    _, *words = (tmp_path / "words").read_text().splitlines()
    assert " ".join(words) == "--namespace=hyperpod-ns-john exec -i train-0-x --container=main -- nvidia-smi -L"
    config = json.loads((tmp_path / "config").read_text())
    assert config["users"][0]["user"]["token"].startswith("k8s-aws-v1.")
    late = hpkit("job", "exec", "train", *STACK, "--rank", "1", "--", "ls", cwd=ROOT, PATH=str(tmp_path))
    assert (late.returncode, "rank 1 (train-1-x) doesn't run: ContainerCreating" in late.stderr) == (1, True)
    without = hpkit("job", "exec", "train", *STACK, "--", "ls", cwd=ROOT, PATH=str(tmp_path / "none"))
    assert "kubectl isn't installed" in without.stderr


def test_stop_says_what_it_deletes_and_asks_first(api):
    asked = hpkit("job", "stop", "train", *STACK, cwd=ROOT)
    assert asked.returncode == 1
    assert asked.stdout == "deletes Job train of john and its 2 pods (1 running), and nothing else\n"
    assert "to skip it, add --yes" in asked.stderr
    assert api.deleted == []
    done = hpkit("job", "stop", "train", *STACK, "--yes", "--format", "json", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "deleted Job train of john; its pods end within 30s" in done.stderr
    assert document(done.stdout)["items"] == [
        {"action": "delete", "target": "Job train of john", "done": True, "detail": "2 pods"}
    ]
    assert len(api.deleted) == 1
    child = job(name="part")
    child["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "train", "controller": True}]
    api.objects["/apis/batch/v1/namespaces/hyperpod-ns-john/jobs/part"] = child
    refused = hpkit("job", "stop", "part", *STACK, "--yes", cwd=ROOT)
    assert (refused.returncode, "is part of JobSet train; stop that instead" in refused.stderr) == (1, True)


def test_another_teams_job_is_refused_with_a_clear_message(api):
    del api
    for verb, more in (("logs", ()), ("exec", ("--", "ls")), ("stop", ("--yes",))):
        answer = hpkit("job", verb, "train", *STACK, "--team", "smith", *more, cwd=ROOT)
        assert answer.returncode == 1
        assert "jobs of smith can't be read: 403 Forbidden. Use a role of the team's members" in answer.stderr
