"""What failed in the run before, once more and alone: the word of a test that failed by chance is said, and not hidden.

A handful of tests drive a dozen processes each. One that fails beside others and passes alone has found something, but
seldom in the change that is looked at; the night, which repeats them all, does not ask twice.
"""

import json
import subprocess
import sys
from pathlib import Path

__all__ = ["main"]

# More than that is no chance.
MOST = 4
FAILED = Path(__file__).parents[1] / ".pytest_cache" / "v" / "cache" / "lastfailed"


def main(file: Path = FAILED) -> int:
    """Run the tests again that the last run of pytest failed; return 0 if all of them pass now."""
    tests = sorted(json.loads(file.read_text())) if file.is_file() else []
    if not 0 < len(tests) <= MOST:
        return 1
    print(f"once more, alone: {', '.join(tests)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *tests], check=False).returncode
    if code == 0:
        print("\n".join(f"BY CHANCE: {test} failed beside others and passed alone" for test in tests))
    return code


if __name__ == "__main__":
    sys.exit(main())
