"""The source of a release's chart: the disk, a folder of packages, or a registry that helm downloads from.

The environment variable HPKIT_MIRROR names a folder with packages as `helm package` names them, `<name>-<version>.tgz`.
A registry's chart that is in it is read from there.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

from hpkit_local.plugins.kubernetes.helm import HelmRun
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["MIRROR", "Chart", "chart_of"]

MIRROR: Final = "HPKIT_MIRROR"


@dataclass(frozen=True)
class Chart:
    """A chart on disk; without a path, why it isn't available."""

    path: Path | None
    missing: str = ""


def chart_of(call: EngineCall, helm: HelmRun, inputs: Props) -> Chart:
    """Return the chart that a release names, as a path that helm can install from."""
    name = str(inputs["chart"])
    if Path(name).exists():
        return Chart(Path(name).absolute())
    if Path(name).is_absolute() or name.startswith("."):
        return Chart(None, f"{name} doesn't exist")
    kept = _kept(name, str(inputs.get("version") or ""))
    if kept is not None:
        call.progress(f"chart {kept.name} of {MIRROR}")
        return Chart(kept)
    return _pulled(call, helm, inputs)


def _kept(chart: str, version: str) -> Path | None:
    """Return the package in the mirror: of the version stated, else the newest."""
    folder = os.environ.get(MIRROR)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise PluginError(f"{MIRROR}: folder {folder} doesn't exist. What to do: create it, or unset the variable.")
    name = chart.rstrip("/").rpartition("/")[2]
    if version:
        file = Path(folder) / f"{name}-{version}.tgz"
        return file if file.is_file() else None
    found = [(parsed, file) for file in Path(folder).glob(f"{name}-*.tgz") if (parsed := _version(name, file))]
    return max(found, default=(None, None))[1]


def _version(name: str, file: Path) -> Version | None:
    """Return the version in a package's name; None for another chart whose name begins the same."""
    try:
        return Version(file.name.removeprefix(f"{name}-").removesuffix(".tgz"))
    except InvalidVersion:
        return None


def _pulled(call: EngineCall, helm: HelmRun, inputs: Props) -> Chart:
    """Let helm download the package from a registry."""
    version = ["--version", str(inputs["version"])] if inputs.get("version") else []
    target = helm.folder / "chart"
    call.progress(f"getting chart {inputs['chart']}")
    answer = helm.call(call, "pull", str(inputs["chart"]), "--destination", str(target), *version)
    if answer.code:
        return Chart(None, f"helm can't get the chart: {answer.error}")
    (package,) = target.glob("*.tgz")
    return Chart(package)
