"""Entry of the plugin: `pulumi-resource-hyperpod ENGINE-ADDRESS`."""

import sys

from provider.engine.entry_point import begin

if __name__ == "__main__":
    sys.exit(begin("provider.server", "HyperpodServicer"))
