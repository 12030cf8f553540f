"""A process that the supervisor keeps running."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Service"]


def _nothing() -> None:
    return None


@dataclass(frozen=True)
class Service:
    """One child process: it starts when all services that it `needs` are healthy.

    `prepare` runs before every start. It can raise OSError if something that it needs has disappeared. `healthy`
    returns within a second or two, and raises OSError while the service can't be reached.
    """

    name: str
    command: tuple[str, ...]
    healthy: Callable[[], bool]
    needs: tuple[str, ...] = ()
    prepare: Callable[[], None] = _nothing
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
