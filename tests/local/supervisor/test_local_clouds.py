"""Start, stop, kill and restart, with the real parts."""

import json
import os
import signal
import socket

import botocore.session
import pytest

from hpkit_local import processes
from hpkit_local.supervisor import control
from hpkit_local.supervisor.local_cloud import LocalCloud
from tests.running import eventually, free_ports

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "part", ["kube-apiserver", *(pytest.param(part, marks=pytest.mark.nightly) for part in ("aws", "etcd", "kueue"))]
)
def test_a_killed_part_comes_back_on_its_port(running, part):
    before = running.state().parts[part]
    ports = running.ports()
    os.kill(before.pid, signal.SIGKILL)
    eventually(lambda: running.state().parts[part].restarts > before.restarts, "the death is seen")
    eventually(lambda: running.state().ready, "all parts are healthy again")
    assert running.state().parts[part].pid != before.pid
    assert running.ports() == ports, "clients keep their addresses"


def test_ports_stay_and_are_held_until_they_are_let_go(tmp_path, monkeypatch):
    instance = LocalCloud.named("ports", root=tmp_path)
    instance.claim_ports().close()
    before = instance.ports()
    with instance.claim_ports():
        assert instance.ports() == before
        monkeypatch.setattr(processes, "_below_those_of_the_kernel", lambda: range(before["aws"], before["aws"] + 1))
        with pytest.raises(OSError, match="no loopback port is free"):
            free_ports(("another",))
        # A service listens on a port that its supervisor reserved.
        with socket.create_server(("127.0.0.1", before["aws"])):
            assert instance.ports_of_others().keys() == {"aws"}
    assert free_ports(("another",)) == {"another": before["aws"]}


def test_no_other_user_opens_the_folder_of_an_instance(tmp_path):
    instance = LocalCloud.named("private", root=tmp_path)
    instance.claim_ports().close()
    assert instance.folder.stat().st_mode & 0o777 == 0o700
    instance.folder.chmod(0o755)
    instance.claim_ports().close()
    assert instance.folder.stat().st_mode & 0o777 == 0o700, "an existing folder too"


def test_ports_are_below_those_that_the_kernel_gives_to_connections(tmp_path, monkeypatch):
    kernel = tmp_path / "ip_local_port_range"
    monkeypatch.setattr(processes, "_RANGE", kernel)
    for text, last in (("20000 60999", 19_999), ("1024 65535", 32_767), ("", 32_767)):
        kernel.write_text(text)
        assert all(10_000 <= port <= last for port in free_ports("abcdefgh").values()), text


def test_the_region_is_that_of_the_stack_that_is_up(tmp_path):
    instance = LocalCloud.named("regional", root=tmp_path)
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
    instance = LocalCloud.named("alone", root=tmp_path)
    instance.claim_ports().close()
    there = control.environment(instance, tools=())
    for name, value in there.items():
        monkeypatch.setenv(name, value)
    session = botocore.session.Session()
    assert session.create_client("sagemaker").meta.endpoint_url == there["AWS_ENDPOINT_URL"]
    assert not session.get_credentials().token
    shell = control.shell_environment(instance)
    assert set(shell) == {*control.VARIABLES, *control.service_endpoints(os.environ)}, "and all of it can be taken back"
