"""The pinned charts as packages on disk: from a mirror, from the cache, or from their publishers.

Each part's contents are verified and kept in the user's cache before the next one is fetched, so an interrupted run
continues there. For machines without a network, the environment variable HPKIT_MIRROR names a folder with packages, as
`helm package` names them. A package there is used unchanged.

Sources of the recipe: SageMaker HyperPod developer guide, "Installing packages on the Amazon EKS cluster using Helm"
(`helm dependencies update`, then install); helm.sh/docs, "Helm Dependency Update".
"""

import gzip
import http.client
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from hpkit.cache import cache_root
from hpkit.catalog import CHARTS_FOLDER, PinnedChart, PublishedChart
from hpkit.config.reading.chart import contents_hash
from hpkit.errors import InputError, ToolError

__all__ = [
    "MIRROR",
    "Package",
    "cache_folder",
    "ensure_package",
    "kept_package",
    "read_archive",
    "rendered",
    "write_archive",
]

# Path inside the chart → content.
_Files = Mapping[str, bytes]


def read_archive(content: bytes, folder: str = "") -> dict[str, bytes]:
    """Return the files of a .tar.gz in its only top folder, or in a folder of that, by path inside it.

    Raises InputError for any other file, and for links, devices and paths that lead out of it.
    """
    files: dict[str, bytes] = {}
    prefix = PurePosixPath(folder).parts
    remaining = _MOST_BYTES
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts[1:]
                if member.isdir() or parts[: len(prefix)] != prefix or member.type == tarfile.XGLTYPE:
                    continue
                inside = parts[len(prefix) :]
                name = "/".join(inside)
                if not inside or ".." in inside or not member.isreg():
                    raise InputError(f"{member.name}: neither a file nor a folder of the chart")
                remaining -= member.size
                if remaining < 0:
                    raise InputError(f"more than {_MOST_BYTES // 1024 // 1024} MiB of files")
                found = archive.extractfile(member)
                files[name] = found.read() if found is not None else b""
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError(f"no archive that can be read: {error}") from None
    return files


def write_archive(file: Path, top: str, files: _Files) -> None:
    """Write files below a top folder as .tar.gz, whole or not at all; without times or owners."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for name in sorted(files):
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size, member.mode = len(files[name]), 0o644
            archive.addfile(member, io.BytesIO(files[name]))
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(packed.getvalue())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(file)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


MIRROR: Final = "HPKIT_MIRROR"
Pin = PinnedChart | PublishedChart
_SECONDS: Final = 20.0
_MOST_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Package:
    """A package of the chart; contents: its sha256, is_pinned: whether that is the pin's."""

    path: Path
    contents: str
    is_pinned: bool


def cache_folder() -> Path:
    """Return the folder for parts and packages, shared by all projects."""
    return cache_root() / "charts"


def kept_package(pin: Pin, project: Path) -> Package | None:
    """Return the package that can be had without a network: of the mirror, the project or the cache; None for none.

    Raises ToolError for a mirror that is not there, and for a package in it that cannot be read.
    """
    given = _mirrored(pin)
    if given is not None:
        return given
    for path in (project / CHARTS_FOLDER / pin.file, cache_folder() / pin.file):
        found = _contents(path) if path.is_file() else ""
        if found == pin.package:
            return Package(path, found, is_pinned=True)
    return None


def ensure_package(
    pin: Pin, project: Path, *, to: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> Package:
    """Return the package in the project, for the engine; `to` names another target file.

    Raises ToolError, with a fix, if it isn't available.
    """
    place = to or project / CHARTS_FOLDER / pin.file
    try:
        stored = kept_package(pin, project)
        if stored is None:
            package = cache_folder() / pin.file
            write_archive(package, pin.name, _assembled(pin, say))
            stored = Package(package, pin.package, is_pinned=True)
        if stored.path != place:
            place.parent.mkdir(parents=True, exist_ok=True)
            beside = place.with_name(f".{place.name}.{os.getpid()}")
            shutil.copyfile(stored.path, beside)
            beside.replace(place)
    except OSError as error:
        raise ToolError(f"the chart {pin.name} can't be stored: {error}") from None
    return Package(place, stored.contents, is_pinned=stored.is_pinned)


def _mirrored(pin: Pin) -> Package | None:
    folder = os.environ.get(MIRROR)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise ToolError(f"{MIRROR}: the folder {folder} doesn't exist. Create it, or unset the variable.")
    file = Path(folder) / pin.published_file
    if not file.is_file():
        return None
    contents = _contents(file)
    if not contents:
        raise ToolError(f"{file}, in the folder that {MIRROR} names, isn't a chart package. Replace or remove it.")
    return Package(file, contents, is_pinned=contents == pin.package)


def _contents(file: Path) -> str:
    """Return the hash of a package's contents, or "" for any other file."""
    try:
        return contents_hash(read_archive(file.read_bytes()))
    except (InputError, OSError):
        return ""


def _assembled(pin: Pin, say: Callable[[str], None]) -> _Files:
    """Return the chart with all its parts, each as pinned."""
    if isinstance(pin, PublishedChart):
        return _part(pin, f"{pin.name} {pin.version}", pin.url, pin.folder, pin.package, say)
    name = f"{pin.name} of {pin.repository} at {pin.commit[:7]}"
    own = _part(pin, name, pin.archive, pin.path, pin.contents, say)
    files = {path: content for path, content in own.items() if path not in pin.replaced}
    for each in pin.subcharts:
        part = _part(pin, f"{each.name} {each.version}", each.url, "", each.package, say)
        files |= {f"charts/{each.name}/{path}": content for path, content in part.items()}
    found = contents_hash(files)
    if found != pin.package:
        raise ToolError(f"the chart {pin.name} has the content hash {found}, but the pin is {pin.package}")
    return files


def _part(pin: Pin, name: str, url: str, folder: str, sha256: str, say: Callable[[str], None]) -> _Files:
    """Return a part from the cache, or fetch, verify and keep it."""
    cached_file = cache_folder() / f"{sha256}.tgz"
    if cached_file.is_file() and _contents(cached_file) == sha256:
        return read_archive(cached_file.read_bytes())
    say(f"fetching {name}")
    content = _get(pin, url)
    try:
        files = read_archive(content, folder)
    except InputError as error:
        raise ToolError(f"{url}: {error}. {_what_to_do(pin)}") from None
    digest = contents_hash(files)
    if digest != sha256:
        raise ToolError(
            f"{url} has the contents {digest}, but the catalog requires {sha256}, so it isn't used. {_what_to_do(pin)}"
        )
    write_archive(cached_file, pin.name, files)
    return files


def _get(pin: Pin, url: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "hpkit"})  # noqa: S310 - addresses are the catalog's
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            content: bytes = answer.read(_MOST_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise ToolError(f"the chart {pin.name} can't be downloaded: {url}: {error}. {_what_to_do(pin)}") from None
    if len(content) > _MOST_BYTES:
        raise ToolError(f"{url}: more than {_MOST_BYTES // 1024 // 1024} MiB. {_what_to_do(pin)}")
    return content


def _what_to_do(pin: Pin) -> str:
    instead = (
        f"install {pin.name} from your own chart, and remove it from the organization file"
        if isinstance(pin, PublishedChart)
        else "keep your own chart in the repository (cluster.dependencies.chart)"
    )
    return (
        f"To fix: run `hpkit catalog fetch-chart --to FOLDER` on a machine with a network, copy "
        f"{pin.published_file} here, and set {MIRROR} to its folder; or {instead}."
    )


_RENDER_SECONDS: Final = 120


def rendered(package: Path, values: Mapping[str, Any], *, kubernetes: str, helm: Path | None = None) -> str:
    """Return the manifests of a chart for a Kubernetes version, as `helm template` prints them.

    helm: which one; by default that of PATH. Raises ToolError if it is missing or fails.
    """
    executable = str(helm) if helm is not None else shutil.which("helm")
    if executable is None:
        raise ToolError("helm isn't on PATH. Install it, or run `hpkit local doctor --fix`")
    command = [executable, "template", "hyperpod-dependencies", str(package), "--namespace", "kube-system"]
    try:
        done = subprocess.run(  # noqa: S603 - the tool that was asked for
            [*command, "--kube-version", kubernetes, "--values", "-"],
            input=json.dumps(values),
            capture_output=True,
            text=True,
            timeout=_RENDER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"helm template of {package.name}: {error}") from None
    if done.returncode:
        raise ToolError(f"helm template of {package.name}: {' '.join(done.stderr.split())}")
    return done.stdout
