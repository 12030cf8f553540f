"""Compare recorded answers of AWS with the local endpoint's: `python -m hpkit_local.recording FILE`."""

import sys
from pathlib import Path

from hpkit.errors import ToolError
from hpkit_local.recording.replay import replay


def main(arguments: list[str]) -> int:
    """Print each difference; return 1 if there are any, and 2 if the file isn't a recording."""
    if len(arguments) != 1:
        print("usage: python -m hpkit_local.recording FILE", file=sys.stderr)
        return 2
    try:
        replayed = replay(Path(arguments[0]))
    except ToolError as error:
        print(error, file=sys.stderr)
        return 2
    print(replayed.summary)
    for difference in replayed.differences:
        print(difference)
    return 1 if replayed.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
