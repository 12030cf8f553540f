"""Builds an executable from its Go module, or takes files out of one, everything checked against the pinned go.sum."""

import json
import os
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from hpkit.cache import cache_root
from hpkit.errors import ToolError
from hpkit_local.toolchain.model import Copy, GoBuild, GoFiles, Tool
from hpkit_local.toolchain.steps import Steps

__all__ = ["build", "take"]

_standard_library = threading.Lock()
# The linker drops debugging data, so compiling without it gives the same executable in about a fifth less time.
_COMPILED = ("-trimpath", "-gcflags=all=-dwarf=false")
# With Go's default of 100, the compiler spends a third of its time for large packages on garbage collection.
_COMPILER = {"GOGC": "400", "GOMEMLIMIT": "2GiB"}


def build(tool: Tool, source: GoBuild, *, go: Path, into: Path, steps: Steps) -> None:
    """Build the tool into a folder; what Go has already compiled, it takes from its own build cache."""
    where = _work_folder(tool.name, source.recipe)
    env = _environment()
    # Listing what the build will compile downloads exactly the modules that it needs.
    listed = steps.run(
        [str(go), "list", "-mod=readonly", "-deps", source.package],
        doing="downloading modules",
        cwd=where,
        env=env,
        usual_seconds=source.download_seconds,
        done=lambda log: _counted(log, "go: downloading", "modules"),
    )
    packages = listed.splitlines()
    _build_standard_library(packages, go=go, work=where, steps=steps)
    package = _with_replacements(source, go=go, work=where, steps=steps) if source.replaced else source.package
    steps.run(
        [
            *(str(go), "build", "-v", *_COMPILED, "-mod=readonly", "-buildvcs=false"),
            *("-ldflags", " ".join(("-s", "-w", *source.linker))),
            *("-o", str(into / tool.executables[0]), package),
        ],
        doing=f"building {tool.version}",
        cwd=where,
        env=env,
        usual_seconds=source.seconds,
        done=lambda log: _counted(log, "", f"of at most {len(packages)} packages"),
    )
    for copy in source.copies:
        _copy(tool, copy, go=go, into=into, steps=steps)


def _build_standard_library(packages: Iterable[str], *, go: Path, work: Path, steps: Steps) -> None:
    """Compile the parts of Go's standard library that a build needs; two parallel builds would both compile it."""
    # Import paths of modules begin with a domain; packages inside the library can't be named from outside.
    standard = [each for each in packages if "." not in each.partition("/")[0] and each.partition("/")[0] != "vendor"]
    public = [each for each in standard if "internal" not in each.split("/")]
    if not public:
        return
    with _standard_library:
        steps.run(
            [str(go), "build", "-v", *_COMPILED, *public],
            doing="building the required parts of Go's standard library",
            cwd=work,
            env=_environment(),
            usual_seconds=20,
        )


def take(source: GoFiles, *, go: Path, into: Path, steps: Steps) -> None:
    """Copy files of a module into a folder. Raises ToolError if a pattern matches none."""
    work = _work_folder(steps.tool, source.recipe)
    answer = _downloaded(source.module, go=go, work=work, steps=steps, fine=_for_a_newer_go)
    root = f"{answer['Path']}@{answer['Version']}/"
    # The archive is what go.sum is of; the folder that Go unpacks it to is withheld from an older Go.
    with zipfile.ZipFile(answer["Zip"]) as archive:
        for pattern in source.patterns:
            names = [name for name in archive.namelist() if PurePosixPath(name).match(root + pattern)]
            if not names:
                raise ToolError(f"{steps.tool}: {root}{pattern} isn't in the module")
            for name in names:
                (into / PurePosixPath(name).name).write_bytes(archive.read(name))


def _with_replacements(source: GoBuild, *, go: Path, work: Path, steps: Steps) -> str:
    """Copy the package into the recipe's own module, with its replacements; return its path there."""
    output = steps.run(
        [str(go), "list", "-mod=readonly", "-json=Dir,GoFiles", source.package],
        doing=f"finding {source.package}",
        cwd=work,
        env=_environment(),
        usual_seconds=5,
    )
    found = json.loads(output)
    texts = {name: Path(found["Dir"], name).read_text(encoding="utf-8") for name in found["GoFiles"]}
    for old, new in source.replaced:
        where = [name for name, text in texts.items() for _ in range(text.count(old))]
        if len(where) != 1:
            raise ToolError(f"{steps.tool}: {source.package} has {old!r} {len(where)} times, and should have it once")
        texts[where[0]] = texts[where[0]].replace(old, new)
    folder = work / "replaced"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return f"./{folder.name}"


def _environment() -> dict[str, str]:
    """Return an environment in which builds are reproducible, and go.sum is verified."""
    unwanted = {"GOFLAGS", "GOINSECURE", "GONOSUMCHECK", "GOOS", "GOARCH", "GOROOT"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    # The version of Go was checked; fetching another one behind the user's back would undo that.
    return {**_COMPILER, **kept, "GOWORK": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": ""}


def _work_folder(name: str, recipe: Path) -> Path:
    """Return a writable copy of a recipe, in the cache: a repository may be mounted read-only."""
    work = cache_root() / "build" / name / recipe.name
    work.mkdir(parents=True, exist_ok=True)
    for file in ("go.mod", "go.sum"):
        shutil.copyfile(recipe / file, work / file)
    return work


def _downloaded(
    module: str, *, go: Path, work: Path, steps: Steps, fine: Callable[[str], bool] = lambda _: False
) -> dict[str, Any]:
    """Return Go's data about a module that it downloaded and verified."""
    output = steps.run(
        [str(go), "mod", "download", "-json", module],
        doing=f"finding {module}",
        cwd=work,
        env=_environment(),
        usual_seconds=20,
        fine=fine,
    )
    answer: dict[str, Any] = json.loads(output)
    return answer


def _for_a_newer_go(output: str) -> bool:
    """Return whether a download failed only because the module requires a newer Go: by then it's verified."""
    answer = json.loads(output) if output else {}
    return "Zip" in answer and "requires go " in answer.get("Error", "")


def _counted(log: str, prefix: str, unit: str) -> str:
    """Return how many lines with a prefix the last command has written; `go build -v` names one package per line."""
    lines = [line for line in log.rpartition("\n$ ")[2].splitlines()[1:] if line.startswith(prefix)]
    return f"{len(lines)} {unit}"


def _copy(tool: Tool, copy: Copy, *, go: Path, into: Path, steps: Steps) -> None:
    work = _work_folder(tool.name, copy.recipe)
    folder = Path(_downloaded(copy.module, go=go, work=work, steps=steps)["Dir"])
    target = into / Path(copy.path).name
    shutil.copyfile(folder / copy.path, target)
    target.chmod(0o755)
