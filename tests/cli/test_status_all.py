"""`hpkit cluster status --all`: one row per stack, even if other stacks can't be read."""

import json
import threading

import pytest

from hpkit.cli import status_all
from hpkit.errors import ToolError
from tests.cli.invoke import hpkit
from tests.cluster.live.builders import node, observed, queue, task
from tests.cluster.live.test_status import platform
from tests.documents import document
from tests.examples import copy_project

SEEN = observed(
    nodes=(node("n0"),),
    queues=(queue("john", 8, used=4), queue("smith", 4)),
    tasks=(task("john", "train", 4, runs=True), task("smith", "huge", 6)),
    platform=platform(),
)


@pytest.fixture
def project(tmp_path):
    copy_project(tmp_path)
    for file in (tmp_path / "stacks").glob("*.yaml"):
        if not {"handson", "startup", "topology"} & {*file.name.replace(".", "-").split("-")}:
            file.unlink()
    return tmp_path


@pytest.fixture
def sessions(monkeypatch):
    """Replace each session with the profile's name; return the cluster names and sessions of all reads."""
    read, together = [], threading.Barrier(3)

    def answer(session, *, cluster, **_):
        # Each read waits until all have started.
        together.wait(60)
        read.append((cluster, session))
        if cluster == "startup":
            raise ToolError("no cluster is named startup in us-west-2")
        return SEEN

    monkeypatch.setattr(status_all, "aws_session", lambda profile, _: profile)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr("hpkit.cluster.live.read.read", answer)
    return read


def test_a_stack_that_cannot_be_read_is_a_row_with_its_reason(project, sessions):
    answer = hpkit("cluster", "status", "--all", cwd=project)
    assert answer.returncode == 0, answer.stderr
    rows = {line.split()[0]: " ".join(line.split()) for line in answer.stdout.splitlines() if "-" in line}
    assert rows["startup-dev"].startswith("startup-dev us-west-2 not read no cluster is named startup")
    assert rows["handson-dev"].startswith("handson-dev us-west-2 InService ")
    assert "difference" in rows["handson-dev"]
    assert len(sessions) == 3
    items = {
        item["stack"]: item
        for item in document(hpkit("cluster", "status", "--all", "--format", "json", cwd=project).stdout)["items"]
    }
    assert items["startup-dev"]["status"] is None
    assert items["startup-dev"]["unknown"] == ["no cluster is named startup in us-west-2"]
    assert (items["handson-dev"]["runningTasks"], items["handson-dev"]["waitingTasks"]) == (1, 1)


def test_each_stack_is_read_with_the_profile_of_its_settings_unless_one_is_named(project, sessions):
    settings = project / "stacks" / "Pulumi.topology-prod.yaml"
    settings.write_text(settings.read_text() + "  aws:profile: prod\n")
    hpkit("cluster", "status", "--all", cwd=project)
    assert dict(sessions) == {"handson": None, "startup": None, "topology": "prod"}
    sessions.clear()
    hpkit("cluster", "status", "--all", "--profile", "ops", cwd=project)
    assert {profile for _, profile in sessions} == {"ops"}


def test_on_the_local_cloud_each_stack_is_read_on_the_instance_that_has_it(project, monkeypatch):
    here, endpoints = "http://127.0.0.1:1", {}

    def instance_of(_root, stack, environment):
        if stack == "startup-dev":
            raise ToolError("no running instance of the local cloud has the stack startup-dev")
        return {**environment, "AWS_ENDPOINT_URL": here if stack == "handson-dev" else "http://127.0.0.1:2"}

    def answer(session, *, cluster, **_):
        endpoints[cluster] = session.client("sagemaker").meta.endpoint_url, session.client("sts").meta.endpoint_url
        return SEEN

    for name, value in (("AWS_ENDPOINT_URL", here), ("AWS_ACCESS_KEY_ID", "local"), ("AWS_SECRET_ACCESS_KEY", "local")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(status_all, "extension", lambda _: instance_of)
    monkeypatch.setattr("hpkit.cluster.live.read.read", answer)
    answered = hpkit("cluster", "status", "--all", "--format", "json", cwd=project)
    assert endpoints == {"handson": (here, here), "topology": ("http://127.0.0.1:2",) * 2}
    items = {each["stack"]: each for each in json.loads(answered.stdout)["items"]}
    assert items["startup-dev"]["unknown"] == ["no running instance of the local cloud has the stack startup-dev"]


def test_if_no_stack_can_be_read_the_command_fails(project, monkeypatch):
    def refuse(*_):
        raise ToolError("the token expired")

    monkeypatch.setattr(status_all, "aws_session", refuse)
    answer = hpkit("cluster", "status", "--all", "--format", "json", cwd=project)
    assert answer.returncode == 1
    assert {row["unknown"][0] for row in json.loads(answer.stdout)["items"]} == {"the token expired"}


@pytest.mark.parametrize("more", [("--stack", "handson-dev"), ("--watch",), ("--format", "html")])
def test_all_stacks_is_no_form_of_one_stack(project, more):
    assert hpkit("cluster", "status", "--all", *more, cwd=project).returncode == 2
