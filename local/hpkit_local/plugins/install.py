"""Puts plugins where the Pulumi engine looks for installed ones: the PULUMI_HOME of a local cloud.

The `kubernetes` plugin is Pulumi's own if it's installed, otherwise hpkit's fake. The `aws` plugin is the fake, unless
Pulumi's own is requested. Nothing is downloaded.

PATH and other PULUMI_HOMEs aren't changed, so a stack on AWS never uses a fake plugin.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import hpkit
import hpkit_local
from hpkit.errors import ToolError
from hpkit_local.aws.service import service_names
from hpkit_local.toolchain import tool_path

__all__ = [
    "AUTO",
    "CHOICES",
    "FAKE",
    "HOME",
    "OFFICIAL",
    "PACKAGES",
    "endpoint_settings",
    "install",
    "installed",
    "shadowing",
]

PACKAGES = ("aws", "kubernetes")
AUTO: Final = "auto"
OFFICIAL: Final = "official"
_ONE: Final = "official-kubernetes"
FAKE: Final = "fake"
CHOICES: Final = (AUTO, OFFICIAL, _ONE, FAKE)
# The name of each local cloud's PULUMI_HOME.
HOME: Final = "pulumi-home"
_KUBERNETES: Final = "kubernetes"
_MODE = 0o755


def install(pulumi_home: Path, plugins: str = "") -> str:
    """Install each package's plugin, of the version that the installed SDK asks the engine for.

    plugins: one of CHOICES. By default, the existing ones. Returns which plugins they are. Raises ToolError if one of
    Pulumi's own is requested and can't run.
    """
    plugins = plugins or installed(pulumi_home) or AUTO
    own: dict[str, Path | None] = {}
    if plugins == OFFICIAL:
        own["aws"] = _official("aws", required=True)
    if plugins != FAKE:
        own[_KUBERNETES] = _official(_KUBERNETES, required=plugins != AUTO)
    for package in PACKAGES:
        file, official = _plugin(pulumi_home, package), own.get(package)
        if official is not None:
            _link(file, official)
        else:
            _write(file, _launcher(package))
    return ", ".join(f"{package}: {own.get(package) or FAKE}" for package in PACKAGES)


def installed(pulumi_home: Path) -> str:
    """Return which plugins are there: one of CHOICES except AUTO, or "" for none."""
    aws, kubernetes = (_plugin(pulumi_home, package) for package in PACKAGES)
    if aws.is_symlink():
        return OFFICIAL
    if kubernetes.is_symlink():
        return _ONE
    return FAKE if kubernetes.is_file() else ""


def endpoint_settings(url: str) -> dict[str, str]:
    """Return the settings of a stack, by path, that lead Pulumi's own `aws` plugin to an endpoint for every service.

    Source: https://www.pulumi.com/registry/packages/aws/installation-configuration/ and the type ProviderEndpoint: a
    service has boto3's name without hyphens. Clients of S3 Control put the account in front of the host, so that one is
    a name; the machine must resolve names below `localhost`, as systemd-resolved does.
    """
    switches = ("s3UsePathStyle", "skipCredentialsValidation", "skipMetadataApiCheck", "skipRegionValidation")
    hosts = {"s3control": url.replace("127.0.0.1", "localhost")}
    return {f"aws:endpoints[0].{name.replace('_', '')}": hosts.get(name, url) for name in service_names()} | {
        f"aws:{name}": "true" for name in switches
    }


def shadowing(pulumi_home: Path) -> list[str]:
    """Return folders that must be first on PATH, so that the engine prefers the fakes to plugins that are on PATH."""
    files = [_plugin(pulumi_home, package) for package in PACKAGES]
    return [str(file.parent) for file in files if not file.is_symlink() and _on_path(file.name)]


def _official(package: str, *, required: bool) -> Path | None:
    """Return Pulumi's own plugin, where the engine would find it; None, or ToolError, if it can't run."""
    version = _sdk_version(package)
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    if home.name == HOME:  # the shell uses a local cloud
        home = Path.home() / ".pulumi"
    file = _plugin(home, package)
    executable = _on_path(file.name) or (file if os.access(file, os.X_OK) else None)
    runs = package != _KUBERNETES or shutil.which("aws") is not None
    if required and executable is None:
        raise ToolError(
            f"Pulumi's plugin `{package}` {version} isn't installed. Install it in a shell without the variables of "
            f"`hpkit local env`: {tool_path('pulumi')} plugin install resource {package} {version}. Or use hpkit's: "
            f"--plugins {FAKE}"
        )
    if required and not runs:
        raise ToolError(
            "Pulumi's Kubernetes plugin runs `aws eks get-token`, and `aws` isn't on PATH. Install the AWS CLI, or use "
            f"hpkit's plugin: --plugins {FAKE}"
        )
    return executable if runs else None


def _on_path(name: str) -> Path | None:
    """Return an executable on PATH that isn't one of a local cloud's."""
    folders = [each for each in os.get_exec_path() if HOME not in Path(each).parts]
    found = shutil.which(name, path=os.pathsep.join(folders))
    return Path(found).absolute() if found else None


def _plugin(home: Path, package: str) -> Path:
    return home / "plugins" / f"resource-{package}-v{_sdk_version(package)}" / f"pulumi-resource-{package}"


def _sdk_version(package: str) -> str:
    try:
        return version(f"pulumi_{package}")
    except PackageNotFoundError:
        name = f"pulumi-{package}"
        raise ToolError(f"the Python package {name} isn't installed; run `pip install {name}`") from None


def _launcher(package: str) -> str:
    """Return the script: this Python, and this repository's modules before any others (-P: not the program's)."""
    folders = os.pathsep.join(
        dict.fromkeys(str(Path(file).parents[1]) for file in (hpkit_local.__file__, hpkit.__file__))
    )
    return (
        "#!/bin/sh\n"
        f"# The local cloud's fake of the resource plugin `{package}`.\n"
        f"PYTHONPATH={shlex.quote(folders)} exec {shlex.quote(sys.executable)} "
        f'-P -m hpkit_local.plugins.{package} "$@"\n'
    )


def _write(path: Path, text: str) -> None:
    """Write a launcher, unless it's unchanged."""
    if not path.is_symlink() and os.access(path, os.X_OK) and path.read_text(encoding="utf-8") == text:
        return
    with _replaced(path) as half:
        half.write_text(text, encoding="utf-8")
        half.chmod(_MODE)


def _link(path: Path, target: Path) -> None:
    if not (path.is_symlink() and path.readlink() == target):
        with _replaced(path) as half:
            half.symlink_to(target)


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """Yield a path for a file that is replaced in one step, so that a concurrent start never reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.unlink(missing_ok=True)
    yield half
    half.replace(path)
