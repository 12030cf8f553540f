"""Requests of a web page to etcd: the real etcd, with the settings of the local cloud."""

import json
import socket
import ssl
import subprocess

import pytest
import urllib3

from hpkit_local.kubernetes.control_plane import etcd
from hpkit_local.toolchain import tool_path
from tests.running import eventually, free_ports, get_tools

# base64 of `key` and `value`, as etcd's JSON has them.
PUT = json.dumps({"key": "a2V5", "value": "dmFsdWU="})
PAGE = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    get_tools("etcd")
    folder, ports = tmp_path_factory.mktemp("etcd"), free_ports(("etcd", "etcd-peer", "etcd-metrics"))
    service = etcd(tool_path("etcd"), folder / "data", ports=ports)
    service.prepare()
    with (folder / "log").open("wb") as log, subprocess.Popen(service.command, stdout=log, stderr=log) as process:
        eventually(lambda: answers(service), "etcd is healthy")
        yield ports
        process.terminate()


def answers(service):
    try:
        return service.healthy()
    except ConnectionError:
        return False


def ask(port, method, path, headers, body=None):
    return urllib3.request(method, f"http://127.0.0.1:{port}{path}", headers=headers, body=body, retries=False)


def speak(context, address, text):
    """Send text over TLS and wait for a response; where the connection ends depends on the TLS version."""
    with socket.create_connection(address) as plain, context.wrap_socket(plain) as connection:
        connection.sendall(text.encode())
        return connection.recv(1)


@pytest.mark.parametrize("path", ["/members", "/raft", "/version"])
def test_a_page_cannot_speak_as_another_member_of_etcd(ports, path):
    """A page can set any header for its own name, including raft message headers (etcd, rafthttp)."""
    with pytest.raises(urllib3.exceptions.ProtocolError):
        ask(ports["etcd-peer"], "POST", path, {"Host": "evil.example"})
    address = ("127.0.0.1", ports["etcd-peer"])
    context = ssl.create_default_context()
    # A browser that trusts the instance still has no client certificate for it.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(ssl.SSLError, match=r"alert (certificate required|bad certificate)"):
        speak(context, address, f"GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n")


@pytest.mark.parametrize("part", ["etcd", "etcd-metrics"])
@pytest.mark.parametrize("path", ["/v3/kv/put", "/v3/kv/range", "/v3/kv/deleterange", "/v2/keys/key"])
def test_a_page_cannot_write_or_read_objects_in_etcd(ports, part, path):
    """A text/plain request is sent without a preflight request (Fetch standard, CORS-safelisted request-header)."""
    assert ask(ports[part], "POST", path, PAGE, PUT).status == 404
    assert ask(ports[part], "POST", path, {}, PUT).status == 404


@pytest.mark.parametrize("path", ["/version", "/metrics"])
def test_a_page_whose_name_resolves_to_loopback_cannot_read_from_etcd(ports, path):
    assert ask(ports["etcd"], "GET", path, {"Host": "evil.example"}).status == 421


def test_no_origin_may_read_what_etcd_answers(ports):
    answer = ask(ports["etcd"], "GET", "/version", PAGE)
    assert answer.headers.get("Access-Control-Allow-Origin") is None
