"""Which AWS API calls a deployment makes for each type of resource; they stand in data/calls.yaml, with sources."""

from dataclasses import dataclass
from functools import cache

from hpkit.program.iam.template import read

__all__ = ["TypeCalls", "always", "calls"]


@dataclass(frozen=True, slots=True)
class TypeCalls:
    """The calls of one type: operations of `api`, and IAM actions that services need from the caller.

    calls are those seen on the local cloud, more those that the released plugin's source (`source`) adds.
    """

    api: str
    calls: tuple[str, ...]
    more: tuple[str, ...]
    service: tuple[str, ...]
    source: str

    def operations(self) -> set[str]:
        """Return all of its API operations as `api:Operation`."""
        return {f"{self.api}:{operation}" for operation in (*self.calls, *self.more)}


@cache
def calls() -> dict[str, TypeCalls]:
    """Return the calls of each type, by its token."""
    return {
        token: TypeCalls(
            entry["api"],
            tuple(entry["calls"]),
            tuple(entry.get("more", ())),
            tuple(entry.get("service", ())),
            entry["source"],
        )
        for token, entry in read("calls")["types"].items()
    }


def always() -> frozenset[str]:
    """Return what the program asks before it registers anything, as `api:Operation`."""
    return frozenset(read("calls")["always"])
