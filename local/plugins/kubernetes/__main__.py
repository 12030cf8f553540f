"""Entry of the plugin: `python -m local.plugins.kubernetes ENGINE-ADDRESS`."""

import sys

from local.plugins.kubernetes.server import KubernetesServicer
from provider.frame import run

if __name__ == "__main__":
    sys.exit(run(KubernetesServicer, sys.argv[1:]))
