"""Entry of the fake plugin: `python -m hpkit_local.plugins.aws ENGINE-ADDRESS`."""

import sys

from hpkit_local.plugins.aws.servicer import AwsServicer
from hpkit_provider.engine.plugin_server import run

if __name__ == "__main__":
    sys.exit(run(AwsServicer, sys.argv[1:]))
