"""The start of a plugin's process, which every resource waits for, so it does only what is necessary."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

__all__ = ["begin"]

# A plugin uses a few modules deep in these packages. The packages' `__init__` modules load much more, which takes
# longer than all of the plugin's own modules. Empty folders replace them.
_MERE_FOLDERS = ("pulumi", "pulumi.runtime", "kubernetes")


def begin(module: str, servicer: str) -> int:
    """Load a servicer by the name of its module and class, and serve until the engine ends the process."""
    # Looking for garbage among modules while they load takes a third of the time, and finds none.
    gc.disable()
    for package in _MERE_FOLDERS:
        _load_as_folder(package)
    servicer_class = getattr(import_module(module), servicer)
    run = import_module("hpkit_provider.engine.plugin_server").run
    gc.freeze()
    gc.enable()
    code: int = run(servicer_class, sys.argv[1:])
    return code


def _load_as_folder(name: str) -> None:
    """Let a package's modules be imported without importing the package, which might not be installed."""
    top, *inner = name.split(".")
    root = list(sys.modules[top].__path__) if inner else (found := find_spec(top)) and found.submodule_search_locations
    if root:
        package = ModuleType(name)
        package.__path__ = [str(Path(each, *inner)) for each in root]
        sys.modules[name] = package
