"""Entry of the endpoint: `python -m hpkit_local.aws`."""

import sys

from hpkit_local.aws.command import main

if __name__ == "__main__":
    sys.exit(main())
