"""How the process of a plugin begins: every resource waits for it, so nothing is done that could be left out."""

from __future__ import annotations

import gc
import sys
from importlib import import_module

__all__ = ["begin"]


def begin(module: str, servicer: str) -> int:
    """Load a servicer by the name of its module and class, and serve until the engine ends the process."""
    # Looking for garbage among modules while they load takes a third of the time, and finds none.
    gc.disable()
    servicer_class = getattr(import_module(module), servicer)
    run = import_module("provider.engine.plugin_server").run
    gc.freeze()
    gc.enable()
    code: int = run(servicer_class, sys.argv[1:])
    return code
