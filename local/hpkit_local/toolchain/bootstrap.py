"""Gets tools that are missing: official release or image, else built or installed from package registries."""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hpkit.errors import ToolError
from hpkit_local.toolchain import golang
from hpkit_local.toolchain.download import Unavailable, take_image, take_release
from hpkit_local.toolchain.locate import Found, locate
from hpkit_local.toolchain.model import GoBuild, GoFiles, Image, PyPi, Release, Source, Tool
from hpkit_local.toolchain.steps import Say, Steps, installed, locked, staging, stop
from hpkit_local.toolchain.table import GO

__all__ = ["get", "get_all"]


def _install_package(tool: Tool, source: PyPi, *, into: Path, steps: Steps) -> None:
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


_AT_ONCE = 2


def get_all(tools: Sequence[Tool], *, say: Say) -> list[Found]:
    """Install missing tools, two at a time on two cores. Raises ToolError with all that failed."""
    failures: list[str] = []
    workers = ThreadPoolExecutor(max_workers=min(_AT_ONCE, os.cpu_count() or 1))
    try:
        for future in [workers.submit(_get_each, group, say) for group in _by_recipe(tools)]:
            failures.extend(future.result())
    except KeyboardInterrupt:
        stop()
        raise ToolError(
            "interrupted. Finished downloads and builds are kept. Run the same command again to continue"
        ) from None
    finally:
        workers.shutdown(cancel_futures=True)
    if failures:
        raise ToolError("\n".join([f"{len(failures)} of {len(tools)} tools couldn't be installed:", *failures]))
    return [locate(tool) for tool in tools]


def _by_recipe(tools: Sequence[Tool]) -> list[list[Tool]]:
    """Return the tools in groups: tools with one recipe are built one after another, in the given order.

    In parallel, each build would compile what they share. The longest is first, so that no long build remains for one
    core.
    """
    groups: dict[object, list[Tool]] = {}
    for tool in tools:
        recipes = [source.recipe for source in tool.sources if isinstance(source, GoBuild)]
        groups.setdefault(recipes[0] if recipes else tool.name, []).append(tool)
    return sorted(groups.values(), key=_build_seconds, reverse=True)


def _build_seconds(tools: Sequence[Tool]) -> int:
    return sum(source.seconds for tool in tools for source in tool.sources if isinstance(source, GoBuild))


def _get_each(tools: Sequence[Tool], say: Say) -> list[str]:
    """Get one tool after another, and return why some could not be had."""
    failures = []
    for tool in tools:
        try:
            get(tool, say=say)
        except ToolError as error:
            failures.append(str(error))
    return failures


def get(tool: Tool, *, say: Say) -> Path:
    """Return where the tool is; get it first if it is neither on PATH nor in the cache."""
    found = locate(tool)
    if found.path is not None:
        return found.path
    with locked(tool.name, say):
        meanwhile = installed(tool)
        if meanwhile is not None:
            return meanwhile
        return _from_first_source(tool, say)


def _from_first_source(tool: Tool, say: Say) -> Path:
    rejections: list[str] = []
    for source in tool.sources:
        steps = Steps(tool.name, say)
        try:
            with staging(tool) as stage:
                _fetch(tool, source, into=stage / tool.folder, steps=steps)
        except Unavailable as rejection:
            say(f"{tool.name}: no release: {rejection}")
            rejections.append(str(rejection))
            continue
        except OSError as error:
            raise ToolError(f"{tool.name}: {error}. Whole log: {steps.log}") from None
        steps.finish()
        path = installed(tool)
        if path is None:
            raise ToolError(f"{tool.name}: its source doesn't contain {', '.join(tool.executables)}")
        say(f"{tool.name}: {tool.version} is in the cache")
        return path
    raise ToolError(f"{tool.name} {tool.version} can't be installed: {'; '.join(rejections)}")


def _fetch(tool: Tool, source: Source, *, into: Path, steps: Steps) -> None:
    if isinstance(source, Release):
        take_release(tool, source, into=into, say=steps.say)
    elif isinstance(source, Image):
        take_image(tool, source, into=into, say=steps.say)
    elif isinstance(source, PyPi):
        _install_package(tool, source, into=into, steps=steps)
    elif isinstance(source, GoFiles):
        golang.take(source, go=get(GO, say=steps.say), into=into, steps=steps)
    else:
        golang.build(tool, source, go=get(GO, say=steps.say), into=into, steps=steps)
