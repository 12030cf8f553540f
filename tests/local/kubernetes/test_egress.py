"""The proxy through which an API server reaches Services: its responses over real sockets."""

import json
import socket
import ssl
from contextlib import closing, contextmanager, suppress

import pytest

from hpkit_local.kubernetes.egress import Egress, front_proxy, write_selection
from hpkit_local.kubernetes.pki import authority, signed
from tests.running import HANGS


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    return front_proxy(tmp_path_factory.mktemp("front-proxy"))


@pytest.fixture
def egress(front):
    @contextmanager
    def running(locate):
        made = Egress(0, front=front, locate=locate)
        made.start()
        try:
            yield made.port
        finally:
            made.stop()

    return running


@pytest.fixture
def connected(front):
    def connect(port, pair=front.client):
        context = ssl.create_default_context(cafile=front.authority.certificate)
        context.load_cert_chain(pair.certificate, pair.key)
        connection = socket.create_connection(("127.0.0.1", port), timeout=HANGS)
        return context.wrap_socket(connection, server_hostname="127.0.0.1")

    return connect


@pytest.fixture
def asked(connected):
    """Return the response to a request's head, and the connection."""

    def ask(port, head):
        connection = connected(port)
        connection.sendall(head)
        return connection.recv(4096), connection

    return ask


def unknown(host, port):
    raise LookupError(f"there is no\nService {host}")


def test_bytes_pass_to_what_serves_there_and_back(egress, asked):
    named = []
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def locate(host, port):
            named.append((host, port))
            return server.getsockname()[1]

        with egress(locate) as port:
            answer, caller = asked(port, b"CONNECT keda.keda.svc:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            behind, _ = server.accept()
            with caller, behind:
                assert (answer, named) == (b"HTTP/1.1 200 Connection established\r\n\r\n", [("keda.keda.svc", 443)])
                caller.sendall(b"there")
                assert behind.recv(10) == b"there"
                behind.sendall(b"back")
                assert caller.recv(10) == b"back"
                behind.close()
                assert caller.recv(10) == b"", "who is behind it has ended"


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"CONNECT 10.0.0.7:443 HTTP/1.1\r\n\r\n", b"there is no Service 10.0.0.7"),
        (b"GET http://10.0.0.7/ HTTP/1.1\r\n\r\n", b"GET is not known"),
        (b"CONNECT 10.0.0.7:https HTTP/1.1\r\n\r\n", b"invalid literal"),
        (b"\r\n\r\n", b"is not known"),
    ],
)
def test_who_cannot_be_connected_is_told_why_in_one_line(egress, asked, head, reason):
    with egress(unknown) as port:
        answer, caller = asked(port, head)
        with caller:
            status, _, rest = answer.partition(b"\r\n")
            assert (status.startswith(b"HTTP/1.1 502 "), reason in status, rest.strip()) == (
                True,
                True,
                b"Content-Length: 0",
            )


def test_a_caller_that_leaves_in_the_middle_of_its_head_disturbs_nobody(egress, asked, connected):
    with egress(unknown) as port:
        connected(port).close()
        answer, caller = asked(port, b"CONNECT a:1 HTTP/1.1\r\n\r\n")
        with caller:
            assert answer.startswith(b"HTTP/1.1 502 there is no Service a")


def test_who_is_not_the_api_server_is_not_heard(egress, connected, tmp_path):
    other = signed(tmp_path, "other", issuer=authority(tmp_path, "other-ca"))
    received = b""
    with egress(unknown) as port, suppress(OSError), connected(port, other) as caller:
        caller.sendall(b"CONNECT a:1 HTTP/1.1\r\n\r\n")
        received = caller.recv(10)
    assert received == b""


def test_the_selection_sends_what_is_for_services_to_the_proxy_and_nothing_else(front, tmp_path):
    write_selection(tmp_path / "egress.json", port=1234, front=front)
    (selection,) = json.loads((tmp_path / "egress.json").read_text())["egressSelections"]
    assert selection["name"] == "cluster"
    transport = selection["connection"]["transport"]["tcp"]
    assert transport["url"] == "https://127.0.0.1:1234"
    assert transport["tlsConfig"]["clientCert"] == str(front.client.certificate)
