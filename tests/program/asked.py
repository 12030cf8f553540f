"""Which AWS API operations deploying each example stack asks for, recorded on the local cloud."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hpkit_local.supervisor.instance import Instance

__all__ = ["FOLDER", "Asked", "recorded", "text_of"]

FOLDER = Path(__file__).parent / "asked"
Result = TypeVar("Result")


class Asked:
    """The operations that commands asked an instance for; what a test asks between them does not count."""

    def __init__(self, instance: Instance) -> None:
        self._url = f"http://127.0.0.1:{instance.ports()['aws']}/_hpkit/stats"
        self.operations: set[str] = set()

    def during(self, command: Callable[..., Result], *arguments: str) -> Result:
        """Run a command and keep what it asks for, as `service:Operation`."""
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


def text_of(operations: set[str]) -> str:
    """Return the file of a stack: one operation per line."""
    return "".join(f"{each}\n" for each in sorted(operations))


def recorded(stack: str) -> set[str]:
    """Return the operations that the file of an example stack names."""
    return set((FOLDER / f"{stack}.txt").read_text(encoding="utf-8").split())
