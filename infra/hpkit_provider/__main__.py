"""Entry of the plugin: `pulumi-resource-hyperpod ENGINE-ADDRESS`; the engine finds the script on PATH."""

import sys

from hpkit_provider.engine.plugin_server import run
from hpkit_provider.server import HyperpodServicer

__all__ = ["main"]


def main() -> int:
    """Serve the engine until it ends the process."""
    return run(HyperpodServicer, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
