"""Start, stop, kill and restart, with the real parts."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

import botocore.session
import pytest

from hpkit.errors import ToolError
from hpkit_local.aws.testing import client
from hpkit_local.kubernetes.api import Api, RefusedError
from hpkit_local.processes import ports
from hpkit_local.processes.ports import free_ports
from hpkit_local.processes.process import Identity
from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.running import eventually

TRUST = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",'
    ' "Principal": {"Service": "eks.amazonaws.com"}}]}'
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def taken(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    "part", ["aws", "kube-apiserver", *(pytest.param(part, marks=pytest.mark.nightly) for part in ("etcd", "kueue"))]
)
def test_a_killed_part_comes_back_on_its_port(running, part):
    before = running.state().parts[part]
    ports = running.ports()
    os.kill(before.pid, signal.SIGKILL)
    eventually(lambda: running.state().parts[part].restarts > before.restarts, "the death is seen")
    eventually(lambda: running.state().ready, "all parts are healthy again")
    assert running.state().parts[part].pid != before.pid
    assert running.ports() == ports, "clients keep their addresses"


def test_kueues_own_webhook_refuses_a_borrow_limit_without_a_cohort(api):
    resources = [{"name": "cpu", "nominalQuota": 1, "borrowingLimit": 1}]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "ml.c5.2xlarge", "resources": resources}]}]
    spec = {"namespaceSelector": {}, "resourceGroups": groups}
    document = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "invalid"}}
    with pytest.raises(RefusedError, match="must be nil when cohort"):
        api.apply("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/invalid", {**document, "spec": spec})


NAMESPACES = "/api/v1/namespaces"


def boot_again(instance, stranger):
    """Simulate a reboot in the record of processes: a different boot ID, and process IDs of other programs."""
    record = instance.folder / "run.json"
    content = json.loads(record.read_text())
    for each in (content["supervisor"], *content["parts"].values()):
        each["started"] = f"11111111-2222-3333-4444-555555555555/{each['started'].rpartition('/')[2]}"
        each["pid"] = stranger
    record.write_text(json.dumps(content))


def hold(named):
    """Return a port's name and what listens on it from now on; None if another program has it."""
    name, port = named
    with contextlib.suppress(OSError):
        return name, socket.create_server(("127.0.0.1", port))
    return None


@pytest.mark.nightly
def test_after_a_reboot_a_start_goes_on_with_everything_and_touches_no_stranger(tools, tmp_path):
    instance = Instance.named("reboot", root=tmp_path)
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
    try:
        first = control.start(instance, say=print)
        before = instance.ports()
        admin = Api.of_kubeconfig(instance.kubeconfig, field_manager="tests")
        admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}})
        admin.close()
        client(f"http://127.0.0.1:{before['aws']}", "iam").create_role(RoleName="kept", AssumeRolePolicyDocument=TRUST)
        for each in first.processes():
            os.kill(each.pid, signal.SIGKILL)
        eventually(lambda: not [each for each in first.processes() if each.alive()], "all are dead at once")
        boot_again(instance, stranger.pid)
        assert control.running(instance) is None
        # After the boot, this or another program took the port first.
        name, held = next(each for each in map(hold, before.items()) if each is not None)
        with held:
            control.start(instance, say=print)
            after = instance.ports()
        assert after[name] != before[name]
        assert stranger.poll() is None, "a number from another boot is nobody we know"
        admin = Api.of_kubeconfig(instance.kubeconfig, field_manager="tests")
        assert admin.read(f"{NAMESPACES}/kept")["metadata"]["name"] == "kept"
        admin.close()
        roles = client(f"http://127.0.0.1:{after['aws']}", "iam").list_roles()["Roles"]
        assert "kept" in {role["RoleName"] for role in roles}
    finally:
        stranger.kill()
        stranger.wait()
        control.reset(instance)


def test_ports_stay_and_are_held_until_they_are_let_go(tmp_path, monkeypatch):
    instance = Instance.named("ports", root=tmp_path)
    instance.claim_ports().close()
    before = instance.ports()
    with instance.claim_ports():
        assert instance.ports() == before
        monkeypatch.setattr(ports, "_below_those_of_the_kernel", lambda: range(before["aws"], before["aws"] + 1))
        with pytest.raises(OSError, match="no loopback port is free"):
            free_ports(("another",))
        # A service listens on a port that its supervisor reserved.
        with socket.create_server(("127.0.0.1", before["aws"])):
            assert instance.ports_of_others().keys() == {"aws"}
    assert free_ports(("another",)) == {"another": before["aws"]}


def test_ports_are_below_those_that_the_kernel_gives_to_connections(tmp_path, monkeypatch):
    kernel = tmp_path / "ip_local_port_range"
    monkeypatch.setattr(ports, "_RANGE", kernel)
    for text, last in (("20000 60999", 19_999), ("1024 65535", 32_767), ("", 32_767)):
        kernel.write_text(text)
        assert all(10_000 <= port <= last for port in free_ports("abcdefgh").values()), text


@pytest.mark.nightly
def test_a_port_that_another_program_takes_before_its_part_listens_is_replaced_by_another(tools, tmp_path):
    instance = Instance.named("raced", root=tmp_path)
    messages, others = [], []

    def say(line):
        messages.append(line)
        if line == "etcd: healthy" and not others:
            with contextlib.suppress(OSError):
                others.append(socket.create_server(("127.0.0.1", instance.ports()["kueue-webhook"])))

    try:
        # Kueue listens after the API server responds, which starts after etcd, so there is nearly always time.
        while not others:
            control.stop(instance)
            state = control.start(instance, say=say)
        assert state.ready
        port = others[0].getsockname()[1]
        assert any(
            f"port {port} (kueue-webhook)" in line for line in messages if line.startswith("another program took ")
        )
        assert instance.ports()["kueue-webhook"] != port
    finally:
        for other in others:
            other.close()
        control.reset(instance)


def test_a_start_that_is_ended_from_elsewhere_is_not_begun_anew_though_a_port_is_taken(tools, tmp_path):
    instance = Instance.named("ended", root=tmp_path)
    supervisors, others = [], []

    def say(line):
        if (running := instance.running()) is None:
            # It was killed at the previous line, which the starter hasn't noticed yet.
            return
        supervisors.append(running.supervisor)
        os.kill(running.supervisor.pid, signal.SIGKILL)
        eventually(lambda: others.extend(filter(None, map(hold, instance.ports().items()))) or others, "one is free")

    try:
        with pytest.raises(ToolError, match="the supervisor ended"):
            control.start(instance, say=say)
        assert len({supervisor.pid for supervisor in supervisors}) == 1
        assert control.running(instance) is None
    finally:
        for _, other in others:
            other.close()
        control.reset(instance)


def test_the_region_is_that_of_the_stack_that_is_up(tmp_path):
    instance = Instance.named("regional", root=tmp_path)
    instance.claim_ports().close()
    assert control.environment(instance, tools=())["AWS_REGION"] == "us-west-2"
    folder = instance.state_folder / ".pulumi" / "stacks" / "hpkit"
    folder.mkdir(parents=True)
    provider = {"type": "pulumi:providers:aws", "custom": True, "inputs": {"region": "eu-west-1"}}
    resources = [provider, {"type": "aws:ec2/vpc:Vpc", "custom": True}]
    (folder / "acme-dev.json").write_text(json.dumps({"checkpoint": {"latest": {"resources": resources}}}))
    there = control.environment(instance, tools=())
    assert (there["AWS_REGION"], there["AWS_DEFAULT_REGION"]) == ("eu-west-1", "eu-west-1")


def test_what_the_shell_has_for_an_account_reaches_nothing_by_an_instance(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of an account")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", "https://api.sagemaker.us-west-2.amazonaws.com")
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    instance = Instance.named("alone", root=tmp_path)
    instance.claim_ports().close()
    there = control.environment(instance, tools=())
    for name, value in there.items():
        monkeypatch.setenv(name, value)
    session = botocore.session.Session()
    assert session.create_client("sagemaker").meta.endpoint_url == there["AWS_ENDPOINT_URL"]
    assert not session.get_credentials().token
    shell = control.shell_environment(instance)
    assert set(shell) == {*control.VARIABLES, *control.service_endpoints(os.environ)}, "and all of it can be taken back"


@pytest.mark.nightly
def test_starting_and_stopping_from_one_process_leaves_no_zombie_and_no_warning(tools, tmp_path):
    code = """
import sys
import time
from pathlib import Path
import psutil
from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
ended, left = (Instance.named(name, root=Path(sys.argv[1])) for name in ("ended", "left"))
state = control.start(ended, say=print)
control.stop(ended)
zombie = state.supervisor.pid
while psutil.pid_exists(zombie):
    time.sleep(0.02)
print("reaped")
control.start(left, say=print)
"""
    try:
        answer = subprocess.run(
            [sys.executable, "-W", "always", "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=200
        )
        assert (answer.returncode, answer.stderr) == (0, "")
        assert "reaped" in answer.stdout
        assert control.running(Instance.named("left", root=tmp_path)).ready, "it goes on without its starter"
    finally:
        control.reset(Instance.named("left", root=tmp_path))


def test_a_process_number_used_again_is_not_taken_for_the_process_that_had_it():
    assert Identity(os.getpid(), "another start").alive() is False
