"""Entry of the plugin: `python -m local.plugins.kubernetes ENGINE-ADDRESS`."""

import sys

from provider.engine.entry_point import begin

if __name__ == "__main__":
    sys.exit(begin("local.plugins.kubernetes.server", "KubernetesServicer"))
