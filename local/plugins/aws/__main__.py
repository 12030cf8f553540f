"""Entry of the stand-in: `python -m local.plugins.aws ENGINE-ADDRESS`."""

from __future__ import annotations

import sys

from local.plugins.aws.servicer import AwsServicer
from provider.frame import run

if __name__ == "__main__":
    sys.exit(run(AwsServicer, sys.argv[1:]))
