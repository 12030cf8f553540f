"""Whoever starts a local cloud in a test may be killed; what it leaves is then ended by a process of its own."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["ended_with_this_process"]

ROOT = Path(__file__).parents[1]


def ended_with_this_process(folder: Path) -> None:
    """Let the instance of that folder be ended and deleted once this process is gone, however it goes."""
    pipe = _watch().stdin
    assert pipe
    pipe.write(f"{folder}\n")
    pipe.flush()


@cache
def _watch() -> subprocess.Popen[str]:
    """Start who waits for the end of this process: nobody else can write into the pipe, so it ends with it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.leftovers"],
        cwd=ROOT,
        # No mark that a test looks for among what it started.
        env={name: value for name, value in os.environ.items() if not name.startswith("HPKIT_TEST_")},
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def main() -> None:
    """End the instances whose folders come from standard input, when it ends; most are gone by then."""
    folders = {Path(line.rstrip("\n")) for line in sys.stdin}
    left = [folder for folder in folders if folder.is_dir()]
    if not left:
        return
    # Loaded by the few who need it: it takes a second.
    from hpkit_local.supervisor import control
    from hpkit_local.supervisor.instance import Instance

    for folder in left:
        control.reset(Instance(folder), force=True)


if __name__ == "__main__":
    main()
