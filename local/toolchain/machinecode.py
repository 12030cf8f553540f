"""Translates modules of the kit to machine code: mypyc, of the mypy that checks them, and a C compiler."""

import importlib.util
import os
import shutil
import sys
import sysconfig
from pathlib import Path

from hpkit.errors import ToolError
from local.toolchain.model import MachineCode
from local.toolchain.steps import Steps

__all__ = ["translate"]


def translate(source: MachineCode, *, into: Path, steps: Steps) -> None:
    """Put the machine code of modules into a folder; ToolError where what it takes is not here."""
    for package in ("mypyc", "setuptools"):
        if importlib.util.find_spec(package) is None:
            raise ToolError(f"{steps.tool}: there is no package {package}; it comes with `make install`")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        raise ToolError(f"{steps.tool}: there is no C compiler {compiler}")
    # mypyc puts what it makes beside the sources, which are not to be touched.
    build = into.parent / "build"
    packages = dict.fromkeys(module.partition(".")[0] for module in source.modules)
    for package in packages:
        shutil.copytree(source.root / package, build / package, ignore=shutil.ignore_patterns("__pycache__"))
    files = [str(Path(*module.split(".")).with_suffix(".py")) for module in source.modules]
    steps.run(
        [sys.executable, "-m", "mypyc", *files],
        doing=f"translating {len(files)} modules to machine code",
        cwd=build,
        # Debugging symbols would be nine tenths of it.
        env={**os.environ, "MYPYC_DEBUG_LEVEL": "0", "PYTHONWARNINGS": "ignore"},
        usual_seconds=source.seconds,
    )
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for file in build.rglob(f"*{suffix}"):
        where = into / file.relative_to(build)
        if "build" not in where.relative_to(into).parts:
            where.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, where)
    shutil.rmtree(build)
