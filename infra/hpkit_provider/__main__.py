"""Entry of the plugin: `pulumi-resource-hyperpod ENGINE-ADDRESS`; the engine finds the script on PATH."""

import sys

from hpkit_provider.engine.entry_point import begin

__all__ = ["main"]


def main() -> int:
    """Serve the engine until it ends the process."""
    return begin("hpkit_provider.server", "HyperpodServicer")


if __name__ == "__main__":
    sys.exit(main())
