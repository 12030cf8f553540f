"""Go tests that run another project's code; each is built once and kept in the tool cache."""

import hashlib
from pathlib import Path

from hpkit.cache import cache_root
from hpkit_local.toolchain import GO, get
from hpkit_local.toolchain.cache import locked
from hpkit_local.toolchain.golang import build_test
from hpkit_local.toolchain.steps import Steps

__all__ = ["go_test"]


def go_test(name: str, source: Path, module: str, package: str, *, recipe: Path, version: str = "") -> Path:
    """Return the executable of a test that is added to a package of a module; ToolError if the build fails.

    version: what the build depends on in addition to its source.
    """
    mark = hashlib.sha256(source.read_bytes() + version.encode()).hexdigest()[:12]
    path = cache_root() / "tests" / f"{name}-{mark}"
    with locked(name, print):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            steps = Steps(name, print)
            stage = path.with_suffix(".partial")
            build_test(module, package, source, recipe=recipe, go=get(GO, say=print), into=stage, steps=steps)
            stage.rename(path)
            steps.finish()
    return path
