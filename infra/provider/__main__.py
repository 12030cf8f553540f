"""Entry of the plugin: `pulumi-resource-hyperpod ENGINE-ADDRESS`."""

from __future__ import annotations

import sys

from provider.frame import run
from provider.server import HyperpodServicer

if __name__ == "__main__":
    sys.exit(run(HyperpodServicer, sys.argv[1:]))
