"""Entry of the plugin: `pulumi-resource-hyperpod ENGINE-ADDRESS`."""

from __future__ import annotations

import signal
import sys
import threading

from provider.server import HyperpodServicer, announce, serve

__all__ = ["main"]

_GRACE_SECONDS = 4  # for answers under way


def main(arguments: list[str]) -> int:
    """Serve until the engine closes its end."""
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    stop = threading.Event()
    # The engine ends a plugin by SIGINT, and waits five seconds for one that ignores it. A person's Ctrl-C does not
    # come here: the engine answers it with Cancel.
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: stop.set())
    server, port = serve(HyperpodServicer(addresses[0] if addresses else ""))
    announce(port)
    stop.wait()
    server.stop(grace=_GRACE_SECONDS).wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
