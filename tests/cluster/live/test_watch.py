"""`hpkit cluster status --watch`: each read shows a page, and a failed read keeps the previous page."""

import io
import sys
import time

import pytest

from hpkit.cli.cluster import status
from hpkit.errors import ToolError
from hpkit.plan.derive import derive
from tests.builders import organization, typed
from tests.cluster.live.builders import observed, queue


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def watch(monkeypatch):
    """Return a terminal's output for several reads, of which the last is ended with Ctrl-C."""

    def run(*answers):
        left = iter([*answers, KeyboardInterrupt()])

        def read(*_, **__):
            answer = next(left)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        terminal = Terminal()
        monkeypatch.setattr("hpkit.cluster.live.read.read", read)
        monkeypatch.setattr(status, "aws_session", lambda *_: None)
        monkeypatch.setattr(time, "sleep", lambda _: None)
        monkeypatch.setattr(sys, "stdout", terminal)
        status._watch(derive(typed(organization()), "dev"), None, "text", 5.0)
        return terminal.getvalue()

    return run


def page(used):
    return observed(queues=(queue("smith", 4, used=used),))


def test_each_read_is_a_page_and_a_failure_is_above_the_last_one(watch):
    shown = watch(page(3), ToolError("eks:DescribeCluster: Expired\x1b[2JToken"), page(1))
    first, _, rest = shown.partition("not read: eks:DescribeCluster: Expired")
    assert "12:00:00 UTC, every 5 s; Ctrl-C to stop" in first
    assert "smith" in first
    failed, _, again = rest.partition("12:00:00 UTC")
    assert "smith" in failed
    assert "\x1b[2JToken" not in failed
    assert "smith" in again
    assert shown.endswith("\x1b[?25h\x1b[?1049l"), "the terminal is as it was"


def test_without_a_terminal_it_says_what_to_do_instead(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with pytest.raises(
        status.click.UsageError, match="requires a terminal; elsewhere, run `hpkit cluster status --format json`"
    ):
        status._watch(derive(typed(organization()), "dev"), None, "text", 5.0)
