"""What differs between the inputs of then and now, and what of it the API server can only take in a new object."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpkit.catalog import immutable_of_objects
from hpkit_local.plugins.kubernetes.objects import AUTONAMED, annotation, metadata_of
from hpkit_provider.engine.values import Props, is_unknown

__all__ = ["Change", "changes", "deletes_first", "replaces"]


@dataclass(frozen=True)
class Change:
    """One property that differs; `keys` is the path, list indexes included."""

    keys: tuple[str | int, ...]
    kind: str  # ADD, DELETE or UPDATE

    @property
    def path(self) -> str:
        """The path as Pulumi writes it."""
        text = ""
        for key in self.keys:
            if isinstance(key, int):
                text += f"[{key}]"
            elif key.isidentifier():
                text += f".{key}" if text else key
            else:
                text += f'["{key}"]'
        return text

    @property
    def plain(self) -> str:
        """The path without indexes, as the catalog names fields."""
        return ".".join(key for key in self.keys if isinstance(key, str))


def changes(old: Any, new: Any, keys: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """Yield what differs, as deep as it can be named."""
    if is_unknown(old) or is_unknown(new):
        yield Change(keys, "UPDATE")
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key.startswith("__"):
                continue
            if key not in old or key not in new:
                yield Change((*keys, key), "ADD" if key in new else "DELETE")
            else:
                yield from changes(old[key], new[key], (*keys, key))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            if index >= len(old) or index >= len(new):
                yield Change((*keys, index), "ADD" if index < len(new) else "DELETE")
            else:
                yield from changes(old[index], new[index], (*keys, index))
    elif old != new:
        yield Change(keys, "UPDATE")


def replaces(change: Change, old: Props, new: Props, *, patch: bool) -> bool:
    """Whether the change takes a new object; a patch changes any field of one that others own."""
    plain = change.plain
    group, kind = _group(old.get("apiVersion")), str(old.get("kind", ""))
    if not patch and plain == "apiVersion":
        return group != _group(new.get("apiVersion"))  # another version of a group shows the same object
    return plain == "kind" or _under(plain, immutable_of_objects(group, "*" if patch else kind))


def deletes_first(old: Props, new: Props) -> bool:
    """Whether the old object must be gone before the new one can be: they have one name."""
    before, after = metadata_of(old), metadata_of(new)
    if annotation(new, AUTONAMED.rpartition("/")[2]) == "true":
        return False
    same = [before.get(key) == after.get(key) for key in ("name", "namespace")]
    return all(same) and old.get("kind") == new.get("kind")


def _group(api_version: Any) -> str:
    text = str(api_version or "")
    return text.partition("/")[0] if "/" in text else ""


def _under(plain: str, fields: tuple[str, ...]) -> bool:
    # A change above a field (the whole `spec` added or removed) touches it too.
    return any(plain == name or plain.startswith(f"{name}.") or name.startswith(f"{plain}.") for name in fields)
