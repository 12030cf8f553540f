"""The forwarder relays bytes only for admitted clients, over real sockets."""

import socket
import threading
from contextlib import contextmanager

import pytest

from hpkit_local.kubernetes.forwarder import Forwarder
from tests.running import HANGS, held_port


class Echo(threading.Thread):
    """A server that echoes its input, and counts its connections."""

    def __init__(self):
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = self.server.getsockname()
        self.connections = 0
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    @staticmethod
    def answer(connection):
        with connection:
            while sent := connection.recv(4096):
                connection.sendall(sent)


@pytest.fixture
def echo():
    made = Echo()
    yield made
    made.server.shutdown(socket.SHUT_RDWR)
    made.server.close()


@contextmanager
def forwarder(target, admits):
    made = Forwarder(target, admits=admits)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=HANGS)


def is_disconnected(client):
    """Read until the connection ends; a disconnected client receives nothing more."""
    try:
        return client.recv(10) == b""
    except ConnectionResetError:
        return True


def test_who_is_admitted_is_answered(echo):
    with forwarder(echo.address, lambda: True) as made, connected(made.port) as client:
        for text in (b"one", b"two"):
            client.sendall(text)
            assert client.recv(10) == text


def test_who_is_not_admitted_is_disconnected_and_the_target_hears_nothing(echo):
    with forwarder(echo.address, lambda: False) as made, connected(made.port) as client:
        assert is_disconnected(client)
    assert echo.connections == 0


def test_who_is_admitted_no_more_is_disconnected_when_he_sends_something(echo):
    admitted = [True]
    with forwarder(echo.address, lambda: admitted[0]) as made, connected(made.port) as client:
        client.sendall(b"one")
        assert client.recv(10) == b"one"
        admitted[0] = False
        client.sendall(b"two")
        assert is_disconnected(client)


def test_a_target_that_is_away_disconnects():
    with (
        held_port() as port,
        forwarder(("127.0.0.1", port), lambda: True) as made,
        connected(made.port) as client,
    ):
        assert is_disconnected(client)


def test_its_end_ends_connections_and_gives_the_port_back(echo):
    with forwarder(echo.address, lambda: True) as made:
        client = connected(made.port)
        client.sendall(b"one")
        assert client.recv(10) == b"one"
    with client:
        assert is_disconnected(client)
    with socket.create_server(("127.0.0.1", made.port)):
        pass
