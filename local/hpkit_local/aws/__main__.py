"""Entry of the endpoint: `python -m hpkit_local.aws`."""

import gc
import sys
from importlib import import_module

if __name__ == "__main__":
    # Every start of a local cloud waits for this process. Garbage collection while modules load takes half of that time
    # and frees nothing, because loaded modules stay.
    gc.disable()
    command = import_module("hpkit_local.aws.command")
    gc.freeze()
    gc.enable()
    sys.exit(command.main())
