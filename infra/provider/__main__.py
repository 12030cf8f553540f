"""Entry of the plugin: `pulumi-resource-hyperpod ENGINE-ADDRESS`."""

from __future__ import annotations

import signal
import sys
import threading

from provider.server import HyperpodServicer, announce, serve

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Serve until the engine closes its end."""
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine sends Cancel and ends the plugin itself
    server, port = serve(HyperpodServicer(addresses[0] if addresses else ""))
    announce(port)
    stop.wait()
    server.stop(grace=None)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
