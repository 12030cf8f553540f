"""`python -m local.toolchain NAME…`: get the named tools, for the Makefile."""

import sys

from hpkit.errors import ToolError
from local.toolchain.bootstrap import get_all
from local.toolchain.table import tool_named

__all__ = ["main"]


def main(names: list[str]) -> int:
    """Get what is missing of the named tools; 1 when one cannot be had."""
    try:
        found = get_all([tool_named(name) for name in names], say=lambda line: print(line, file=sys.stderr))
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for each in found:
        print(f"{each.tool.name} {each.version or each.tool.version} from {each.source}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
