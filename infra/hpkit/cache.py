"""The cache folder for downloads and builds, shared by all projects of a user."""

import os
from pathlib import Path

__all__ = ["cache_root"]


def cache_root() -> Path:
    """Return the folder: HPKIT_CACHE, or hpkit in XDG_CACHE_HOME, or ~/.cache/hpkit."""
    own = os.environ.get("HPKIT_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification requires ignoring a relative XDG_CACHE_HOME.
    base = Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache"
    return base / "hpkit"
