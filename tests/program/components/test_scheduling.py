"""What a run reports about Kueue's configuration in the cluster."""

import pulumi
import pytest

from hpkit.plan.derive import derive
from hpkit.program.components.scheduling.kueue_configuration import _configured
from tests.builders import organization, typed

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n"


@pytest.mark.parametrize(
    ("text", "gang", "level", "begins"),
    [
        (f"{HEAD}waitForPodsReady: {{enable: true}}\n", None, "warn", "gang scheduling is on (timeout 5m"),
        (HEAD, {"enable": True}, "info", "gang scheduling is off, but on in the file. This run sets it as in the file"),
    ],
)
def test_a_run_says_that_it_undoes_what_the_console_changed(monkeypatch, text, gang, level, begins):
    messages = []
    for name in ("warn", "info"):
        monkeypatch.setattr(pulumi.log, name, lambda message, name=name: messages.append((name, message)))
    data = organization()
    data["environments"]["dev"]["governance"] |= {"gangScheduling": gang} if gang else {}
    plan = derive(typed(data), "dev")
    after = _configured(text, plan)
    ((found, message),) = messages
    assert (found, message[: len(begins)]) == (level, begins)
    assert "set `governance.gangScheduling` in the file" in message
    messages.clear()
    assert (_configured(after, plan), messages) == (after, [])
