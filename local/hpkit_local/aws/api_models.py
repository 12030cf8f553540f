"""botocore's models of the APIs, read once for all sessions of a process.

By default, each session has its own loader. That loader searches four hundred folders for a service and then reads
megabytes. All loaders read the same files of the installed package, so they can share the result.
"""

from __future__ import annotations

import botocore.session
from botocore import loaders

__all__ = ["share"]

_Key = tuple[object, ...]
_known: dict[_Key, object] = {}
_new_loader = loaders.create_loader


def share() -> None:
    """Let all new sessions use what one of them has read."""
    botocore.session.create_loader = _create_loader


class _Known(dict[_Key, object]):
    """The data of one loader: shared with all loaders, except for the models of S3, which botocore's clients modify."""

    def __contains__(self, key: object) -> bool:
        return key in _known or super().__contains__(key)

    def __getitem__(self, key: _Key) -> object:
        return _known[key] if key in _known else super().__getitem__(key)

    def __setitem__(self, key: _Key, value: object) -> None:
        if any(str(part).startswith("s3") for part in key):
            super().__setitem__(key, value)
        else:
            _known[key] = value


def _create_loader(search_path_string: str | None = None) -> loaders.Loader:
    loader = _new_loader(search_path_string)
    if not search_path_string:
        loader._cache = _Known()  # noqa: SLF001 - where botocore's own decorator keeps what it read
    return loader
