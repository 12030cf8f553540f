"""Entry of the plugin: `pulumi-resource-hyperpod ENGINE-ADDRESS`."""

import sys

from hpkit_provider.engine.entry_point import begin

if __name__ == "__main__":
    sys.exit(begin("hpkit_provider.server", "HyperpodServicer"))
