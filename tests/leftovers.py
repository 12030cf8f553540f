"""A test that starts a local cloud may be killed; a separate process then deletes the cloud."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["ended_with_this_process"]

ROOT = Path(__file__).parents[1]


def ended_with_this_process(folder: Path) -> None:
    """Stop and delete the instance in that folder when this process ends, however it ends."""
    pipe = _watch().stdin
    assert pipe
    pipe.write(f"{folder}\n")
    pipe.flush()


@cache
def _watch() -> subprocess.Popen[str]:
    """Start the watcher, which ends with this process, because no other process can write into its pipe."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.leftovers"],
        cwd=ROOT,
        # The mark by which a test finds its processes must not be inherited here.
        env={name: value for name, value in os.environ.items() if not name.startswith("HPKIT_TEST_")},
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def main() -> None:
    """Stop the instances whose folders standard input names, when it ends; most are already stopped."""
    folders = {Path(line.rstrip("\n")) for line in sys.stdin}
    left = [folder for folder in folders if folder.is_dir()]
    if not left:
        return
    # Only the processes that need it import it, because that takes a second.
    from hpkit_local.supervisor import control
    from hpkit_local.supervisor.local_cloud import LocalCloud

    for folder in left:
        control.reset(LocalCloud(folder), force=True)


if __name__ == "__main__":
    main()
