"""Entry of the fake plugin: `python -m hpkit_local.plugins.aws ENGINE-ADDRESS`."""

import sys

from hpkit_provider.engine.entry_point import begin

if __name__ == "__main__":
    sys.exit(begin("hpkit_local.plugins.aws.servicer", "AwsServicer"))
