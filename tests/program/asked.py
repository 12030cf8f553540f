"""The AWS API operations that deploying each example stack calls, recorded on the local cloud.

They are called in `up`, an `up` that changes the stack, `refresh` and `destroy`. `iam/test_asked.py` compares the
deployer's policies with them; `tests/program/test_engine_stacks.py` compares them with the cloud. To record them again
after a change of the program or of its fake plugins:

    HPKIT_WRITE_ASKED=1 HPKIT_NIGHTLY=1 .venv/bin/pytest -n 0 tests/program/test_engine_stacks.py
"""

import json
import urllib.request
from collections.abc import Callable
from typing import TypeVar

from generate.examples import example_stacks
from hpkit.project import project_root
from hpkit_local.supervisor.local_cloud import LocalCloud

__all__ = ["Asked", "asked_by_stack", "recorded", "write"]

FILE = "tests/program/asked.txt"

Result = TypeVar("Result")


class Asked:
    """The operations that commands call on a local cloud; calls by the test itself don't count."""

    def __init__(self, instance: LocalCloud) -> None:
        self._url = f"http://127.0.0.1:{instance.ports()['aws']}/_hpkit/stats"
        self.operations: set[str] = set()

    def during(self, command: Callable[..., Result], *arguments: str) -> Result:
        """Run a command and record its calls as `service:Operation`."""
        before = self._counts()
        result = command(*arguments)
        self.operations |= {
            name.replace(".", ":", 1) for name, times in self._counts().items() if times > before.get(name, 0)
        }
        return result

    def _counts(self) -> dict[str, int]:
        with urllib.request.urlopen(self._url) as answer:  # noqa: S310 - on loopback, by HTTP
            counts: dict[str, int] = json.load(answer)["calls"]
        return counts


def asked_by_stack() -> dict[str, set[str]]:
    """Return the operations, as `service:Operation`, with the stacks that called them; `all` means all stacks."""
    lines = (project_root() / FILE).read_text(encoding="utf-8").splitlines()
    return {name: set(stacks) for name, *stacks in (line.split() for line in lines if not line.startswith("#"))}


def recorded(stack: str) -> set[str]:
    """Return the recorded operations of an example stack."""
    return {name for name, stacks in asked_by_stack().items() if stacks & {stack, "all"}}


def write(stack: str, operations: set[str]) -> None:
    """Record the operations of an example stack."""
    every = set(example_stacks())
    stacks_by_name = {name: every if "all" in stacks else stacks for name, stacks in asked_by_stack().items()}
    for name in stacks_by_name.keys() | operations:
        stacks = stacks_by_name.setdefault(name, set()) - {stack}
        stacks_by_name[name] = stacks | {stack} if name in operations else stacks
    shown = {
        name: "all" if stacks == every else " ".join(sorted(stacks))
        for name, stacks in stacks_by_name.items()
        if stacks
    }
    head = "# The AWS API operations that the example stacks call: see tests/program/asked.py.\n"
    text = head + "".join(f"{name} {stacks}\n" for name, stacks in sorted(shown.items()))
    (project_root() / FILE).write_text(text, encoding="utf-8")
