"""The simulator as machine code, in place of its sources, where mypyc made it of them (`hpkit doctor --fix`).

It is kept under the hash of the sources: whoever changes one of these runs the sources until they are compiled anew.
HPKIT_COMPILED=0 leaves it aside.
"""

import hashlib
import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from typing import Final

from hpkit.cache import cache_root

__all__ = ["MODULES", "ROOT", "SIMULATOR", "is_used", "machine_code", "version"]

SIMULATOR: Final = "simulator"
MODULES: Final = (
    *(f"hpkit.whatif.{name}" for name in ("assign", "cycle", "fair", "placement", "preempt", "queue", "simulator")),
    *("hpkit.whatif.tree", "hpkit.whatif.turn"),
    *("hpkit.simulate.meters", "hpkit.simulate.run"),
)
ROOT: Final = Path(__file__).parents[1]


def source_of(module: str) -> Path:
    """Return the source file of a module of `MODULES`."""
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


@cache
def version() -> str:
    """Return what tells one machine code from another: the hash of its sources, and which Python runs it."""
    found = hashlib.sha256()
    for module in MODULES:
        text = source_of(module).read_bytes()
        found.update(f"{module} {len(text)}\n".encode() + text)
    return f"{found.hexdigest()[:8]}-cp{sys.version_info.major}{sys.version_info.minor}"


def machine_code(package: str) -> list[str]:
    """Return where a package's modules are looked for before its own folder: nowhere, unless they were compiled."""
    folder = _loaded()
    return [] if folder is None else [str(folder.joinpath(*package.split(".")))]


def is_used() -> bool:
    """Return whether the simulator runs as machine code here."""
    return _loaded() is not None


@cache
def _loaded() -> Path | None:
    """Return the folder of the machine code, after what its modules share was loaded; None if it cannot be used."""
    kept = cache_root() / "tools" / SIMULATOR
    if os.environ.get("HPKIT_COMPILED") == "0" or not kept.is_dir():
        return None
    folder = kept / version() / "files"
    try:
        for file in folder.glob("*__mypyc.*"):
            name = file.name.partition(".")[0]
            spec = importlib.util.spec_from_file_location(name, file)
            if spec is None or spec.loader is None:
                return None
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return folder
    except (ImportError, OSError):
        # Of another platform or C library, as where machines share a home.
        return None
    return None
