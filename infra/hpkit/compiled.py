"""The simulator as machine code, in place of its sources, where mypyc made it of them (`hpkit doctor --fix`).

It is kept under the hash of the sources, and of what they import: whoever changes one of these runs the sources until
they are compiled anew.
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

__all__ = ["IMPORTED", "MODULES", "ROOT", "SIMULATOR", "is_used", "machine_code", "version"]

SIMULATOR: Final = "simulator"
MODULES: Final = (
    *(f"hpkit.whatif.{name}" for name in ("assign", "cycle", "fair", "placement", "preempt", "queue", "simulator")),
    *("hpkit.whatif.tree", "hpkit.whatif.turn"),
    *("hpkit.simulate.ledger", "hpkit.simulate.meters", "hpkit.simulate.run"),
)
# What these import beside themselves: machine code has their types built in.
IMPORTED: Final = (
    *("hpkit.catalog", "hpkit.catalog.instances", "hpkit.catalog.prices", "hpkit.errors", "hpkit.plan.model"),
    *("hpkit.scenario.read", "hpkit.scenario.workloads"),
    *("hpkit.simulate.notable", "hpkit.simulate.quotas", "hpkit.simulate.report"),
    *("hpkit.whatif", "hpkit.whatif.check", "hpkit.whatif.model", "hpkit.whatif.organization", "hpkit.whatif.topology"),
)
ROOT: Final = Path(__file__).parents[1]


@cache
def version() -> str:
    """Return what tells one machine code from another: the hash of its sources, and which Python runs it."""
    found = hashlib.sha256()
    for module in (*MODULES, *IMPORTED):
        path = ROOT.joinpath(*module.split("."))
        text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_bytes()
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
    shared = next(folder.glob("*__mypyc.*"), None)
    if shared is None:
        return None
    name = shared.name.partition(".")[0]
    spec = importlib.util.spec_from_file_location(name, shared)
    if spec is None or spec.loader is None:
        return None
    try:
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except (ImportError, OSError):
        # Of another platform or C library, as where machines share a home.
        return None
    return folder
