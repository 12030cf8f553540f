"""Entry of the plugin: `python -m hpkit_local.plugins.kubernetes ENGINE-ADDRESS`."""

import sys

from hpkit_local.plugins.kubernetes.server import KubernetesServicer
from hpkit_provider.engine.plugin_server import run

if __name__ == "__main__":
    sys.exit(run(KubernetesServicer, sys.argv[1:]))
