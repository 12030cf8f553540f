"""Files that install a release with pinned packages: the wheel and everything that it needs, with hashes, and uv.

`python .ci/release_lock.py dist/hpkit-0.1.0-py3-none-any.whl dist/hpkit-0.1.0.lock`
"""

import hashlib
import sys
from pathlib import Path

from hpkit.scaffold.files import locked_installer, locked_requirements


def main() -> None:
    """Write the lock file of a wheel, and the one of uv, to the same folder."""
    wheel, target = map(Path, sys.argv[1:])
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    own = f"./{wheel.name}[local] --hash=sha256:{digest}\n"
    target.write_text(own + locked_requirements("local"), encoding="utf-8")
    target.with_name(f"{target.stem}-uv.lock").write_text(locked_installer(), encoding="utf-8")


if __name__ == "__main__":
    main()
