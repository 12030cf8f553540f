"""`python -m hpkit_local.supervisor FOLDER`: keeps one instance running until SIGTERM."""

import fcntl
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path

from hpkit.errors import HpkitError
from hpkit_local.supervisor.instance import Instance
from hpkit_local.supervisor.supervisor import Supervisor

__all__ = ["main"]

_POLL_SECONDS = 0.1
_STEADY_SECONDS = 0.5


def main(folder: str) -> int:
    """Hold the instance's lock, so that only one supervisor runs; start, watch, and end with SIGTERM or SIGINT."""
    instance = Instance(Path(folder))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with (instance.folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another supervisor already runs this instance", file=sys.stderr)
            return 1
        try:
            # The starting command waits only for the ports.
            ports = instance.claim_ports()
            Supervisor(instance, ()).poll()
            services = import_module("hpkit_local.supervisor.services")
            supervisor = Supervisor(instance, services.services_of(instance))
        except HpkitError as error:
            print(error, file=sys.stderr)
            return 1
        try:
            while not stop.wait(_STEADY_SECONDS if supervisor.steady else _POLL_SECONDS):
                supervisor.poll()
        finally:
            supervisor.end()
            ports.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
