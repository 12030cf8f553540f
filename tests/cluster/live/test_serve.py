"""`hpkit cluster status --serve`: only a browser with the printed address sees the page, and it's refreshed."""

import http.client
import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest

from hpkit.cli import status
from hpkit.cluster.live.server import PageServer
from hpkit.errors import ToolError
from hpkit.plan.derive import derive
from tests.builders import organization, typed
from tests.cluster.live.builders import observed, queue, task
from tests.cluster.live.test_pages import alone

EVERY = 2.0


@contextmanager
def serving(*pages, every=EVERY):
    """Serve pages one after the other, the last one repeatedly; yield the server and what was asked for."""
    asked = []

    def page():
        asked.append(time.monotonic())
        return pages[min(len(asked), len(pages)) - 1]

    with PageServer(page, every) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server, asked
        server.shutdown()


def ask(server, path=None, *, method="GET", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path or server.path, skip_host=True)
    for each in [server.hosts[0]] if host is None else host:
        connection.putheader("Host", each)
    connection.endheaders()
    response = connection.getresponse()
    return response.status, response.read().decode(), response.headers


def test_the_printed_address_shows_the_page_which_may_load_and_run_nothing():
    with serving("<p>one</p>") as (server, _):
        assert server.url == f"http://127.0.0.1:{server.server_port}{server.path}"
        assert len(server.path) > 40
        code, text, headers = ask(server)
        assert (code, text, headers["Content-Type"]) == (200, "<p>one</p>", "text/html; charset=utf-8")
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'unsafe-inline';")
        assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "no-referrer")
        assert (headers["X-Content-Type-Options"], headers["Refresh"]) == ("nosniff", "2")
        assert ask(server, host=[server.hosts[1]])[0] == 200


@pytest.mark.parametrize("path", ["/", "/{token}x", "/{shorter}", "/{token}?a=b", "/x/../{token}"])
def test_another_path_is_refused_without_reading_the_platform(path):
    with serving("secret") as (server, asked):
        token = server.path[1:]
        found = ask(server, path.format(token=token, shorter=token[:-1]))
        assert (found[0], "secret" in found[1], asked) == (404, False, [])


@pytest.mark.parametrize(
    "host", [["evil.example"], ["evil.example:{port}"], ["127.0.0.1"], [], ["127.0.0.1:{port}"] * 2]
)
def test_a_name_that_an_attacker_resolves_to_this_machine_is_refused(host):
    with serving("secret") as (server, asked):
        found = ask(server, host=[each.format(port=server.server_port) for each in host])
        assert (found[0], "secret" in found[1], asked) == (421, False, [])


@pytest.mark.parametrize("method", ["POST", "PUT", "OPTIONS", "HEAD"])
def test_another_method_is_refused(method):
    with serving("secret") as (server, asked):
        assert (ask(server, method=method)[0], asked) == (501, [])


def test_no_other_machine_can_connect():
    with serving("x") as (server, _):
        assert server.server_address[0] == "127.0.0.1"
        others = {each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
        for address in others:
            if not address.startswith("127."):
                with pytest.raises(OSError, match="refused"):
                    socket.create_connection((address, server.server_port), timeout=5)


def test_the_platform_is_read_at_most_once_in_an_interval_and_only_while_somebody_looks():
    with serving("one", "two", every=0.3) as (server, asked):
        assert [ask(server)[1] for _ in range(3)] == ["one"] * 3
        time.sleep(0.4)
        assert len(asked) == 1
        assert ask(server)[1] == "two"


def test_a_browser_shows_the_page_and_refreshes_it(tmp_path):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on the PATH")
    first, second = (f"<!doctype html><title>t</title><p>page {number}" for number in (1, 2))
    with serving(first, second, every=1) as (server, asked):
        options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}")
        browser = subprocess.Popen(
            [chromium, *options, "--remote-debugging-port=0", server.url],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 60
            while len(asked) < 3:
                assert time.monotonic() < deadline, asked
                time.sleep(0.1)
        finally:
            browser.kill()
            browser.wait()


def test_the_command_serves_the_queues_and_says_why_they_are_not_newer(monkeypatch, capsys):
    seen = observed(queues=(queue("john", 4), queue("smith", 4)), tasks=(task("smith", "<b>waits</b>", 1),))
    answers = iter([seen, ToolError("eks:DescribeCluster: Expired<b>Token</b>")])

    def read(*_, **__):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    pages = []

    def serve_forever(server):
        server.every = 0
        pages.extend(server.body().decode() for _ in range(1))
        raise KeyboardInterrupt

    monkeypatch.setattr("hpkit.cluster.live.read.read", read)
    monkeypatch.setattr(status, "aws_session", lambda *_: None)
    monkeypatch.setattr(PageServer, "serve_forever", serve_forever)
    status._serve(derive(typed(organization()), "dev"), None, 5.0)
    assert "is at http://127.0.0.1:" in capsys.readouterr().out
    cells = alone(pages[0]).cells
    assert {"john", "smith", "<b>waits</b>", "eks:DescribeCluster: Expired<b>Token</b>"} <= set(cells)


def test_a_platform_that_cannot_be_read_is_not_served(monkeypatch):
    def read(*_, **__):
        raise ToolError("no such cluster")

    monkeypatch.setattr("hpkit.cluster.live.read.read", read)
    monkeypatch.setattr(status, "aws_session", lambda *_: None)
    with pytest.raises(ToolError, match="no such cluster"):
        status._serve(derive(typed(organization()), "dev"), None, 5.0)
