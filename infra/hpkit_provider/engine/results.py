"""A plugin's results of Check and Diff, by property."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from pulumi.runtime.proto import provider_pb2

from hpkit.catalog import Difference
from hpkit.text.printable import printable, printable_lines
from hpkit_provider.engine.values import Props, to_struct

__all__ = ["CheckFailure", "PropertyChange", "check_response", "diff_response", "property_changes", "read_response"]


@dataclass(frozen=True)
class CheckFailure:
    """One thing that is wrong with the inputs."""

    path: str
    reason: str


@dataclass(frozen=True)
class PropertyChange:
    """One property that differs; input: it is one of the program's inputs."""

    path: str
    kind: str  # add, delete or update
    replaces: bool = False
    input: bool = True


def property_changes(differences: Iterable[Difference]) -> list[PropertyChange]:
    """Return differences as the engine shows them: an object that one side lacks is one change."""
    changes: dict[tuple[str, str], bool] = {}
    for each in differences:
        key = (_path(each.keys), each.kind)
        changes[key] = changes.get(key, False) or each.replaces
    return [PropertyChange(path, kind, replaces) for (path, kind), replaces in changes.items()]


def check_response(inputs: Any, failures: Iterable[CheckFailure]) -> Any:
    """Return the answer to Check or CheckConfig."""
    shown = [
        provider_pb2.CheckFailure(property=printable(fail.path), reason=printable_lines(fail.reason))
        for fail in failures
    ]
    return provider_pb2.CheckResponse(inputs=inputs, failures=shown)


def read_response(resource_id: str, state: Any, inputs: Props) -> Any:
    """Return the answer to Read about an existing resource."""
    return provider_pb2.ReadResponse(id=resource_id, properties=state, inputs=to_struct(inputs))


def diff_response(changes: Collection[PropertyChange], *, deletes_first: bool) -> Any:
    """Return the answer to Diff; deletes_first: the old one must be gone before the new one can be."""
    replaces = sorted({change.path for change in changes if change.replaces})
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if changes else provider_pb2.DiffResponse.DIFF_NONE,
        replaces=replaces,
        deleteBeforeReplace=bool(replaces) and deletes_first,
        diffs=sorted({change.path.partition(".")[0].partition("[")[0] for change in changes}),
        detailedDiff={change.path: _property_diff(change) for change in changes},
        hasDetailedDiff=True,
    )


def _property_diff(change: PropertyChange) -> Any:
    kind = change.kind.upper() + ("_REPLACE" if change.replaces else "")
    return provider_pb2.PropertyDiff(kind=provider_pb2.PropertyDiff.Kind.Value(kind), inputDiff=change.input)


def _path(keys: Iterable[str | int]) -> str:
    """Return a path as Pulumi writes it."""
    text = ""
    for key in keys:
        if isinstance(key, int):
            text += f"[{key}]"
        elif key.isidentifier():
            text += f".{key}" if text else key
        else:
            text += f'["{key}"]'
    return text
