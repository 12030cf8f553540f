"""Entry of the fake plugin: `python -m local.plugins.aws ENGINE-ADDRESS`."""

import sys

from provider.boot import begin

if __name__ == "__main__":
    sys.exit(begin("local.plugins.aws.servicer", "AwsServicer"))
