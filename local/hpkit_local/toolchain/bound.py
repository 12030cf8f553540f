"""`python bound.py PARENT COMMAND…`: become a command that is interrupted when PARENT dies (on Linux).

A killed bootstrap then leaves no build behind that would run at the same time as the next one.
"""

import ctypes
import os
import signal
import sys

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


def main(parent: str, *command: str) -> str:
    """Replace this process with the command; return only if that fails, with the reason."""
    if sys.platform == "linux":
        # An interrupt, not a kill: Go and pip then delete their temporary files.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != int(parent):
            return "the bootstrap that started this has gone"
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command of a step
    except OSError as error:
        return f"{command[0]}: {error.strerror}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
