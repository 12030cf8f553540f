"""Where the chart of a release comes from: the disk, a folder of kept packages, or a repository that helm asks.

Environment variable HPKIT_MIRROR names a folder that holds packages as `helm package` names them,
`<name>-<version>.tgz`. A chart of a repository or a registry that is in it is taken from there.
"""

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from packaging.version import InvalidVersion, Version

from hpkit_local.plugins.kubernetes.helm import HelmRun
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.task import Task
from hpkit_provider.engine.values import Props

__all__ = ["MIRROR", "Chart", "chart_of"]

MIRROR: Final = "HPKIT_MIRROR"
_REPOSITORY: Final = "hpkit"
_FILES: Final = {"caFile": "--ca-file", "certFile": "--cert-file", "keyFile": "--key-file"}


@dataclass(frozen=True)
class Chart:
    """A chart on the disk; without a path, why it is out of reach."""

    path: Path | None
    missing: str = ""


def chart_of(task: Task, helm: HelmRun, inputs: Props) -> Chart:
    """Return the chart that a release names, as a path that helm can install from."""
    name = str(inputs["chart"])
    if Path(name).exists():
        return Chart(Path(name).absolute())
    if Path(name).is_absolute() or name.startswith("."):
        return Chart(None, f"there is no {name}")
    kept = _kept(name, str(inputs.get("version") or ""))
    if kept is not None:
        task.progress(f"chart {kept.name} of {MIRROR}")
        return Chart(kept)
    return _pulled(task, helm, inputs)


def _kept(chart: str, version: str) -> Path | None:
    """Return the package in the mirror: of the version stated, else the newest."""
    folder = os.environ.get(MIRROR)
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise PluginError(f"{MIRROR}: there is no folder {folder}. What to do: create it, or unset the variable.")
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


def _pulled(task: Task, helm: HelmRun, inputs: Props) -> Chart:
    """Let helm fetch the package from a repository or a registry."""
    repository: Mapping[str, Any] = inputs.get("repositoryOpts") or {}
    chart, environment = str(inputs["chart"]), {}
    flags = [each for key, flag in _FILES.items() if repository.get(key) for each in (flag, str(repository[key]))]
    user, password = str(repository.get("username") or ""), str(repository.get("password") or "")
    if chart.startswith("oci://"):
        if user or password:
            environment["HELM_REGISTRY_CONFIG"] = helm.write("registry.json", _registry(chart, user, password))
    elif repository.get("repo") and (user or password):
        # Credentials by file: arguments can be read by every user of the machine.
        environment["HELM_REPOSITORY_CONFIG"] = helm.write("repositories.json", _repositories(repository))
        environment["HELM_REPOSITORY_CACHE"] = str(helm.folder / "repository")
        task.progress(f"getting the index of {repository['repo']}")
        answer = helm.call(task, "repo", "update", **environment)
        if answer.code:
            return Chart(None, f"helm cannot read {repository['repo']}: {answer.error}")
        chart = f"{_REPOSITORY}/{chart}"
    elif repository.get("repo"):
        flags += ["--repo", str(repository["repo"])]
    if inputs.get("version"):
        flags += ["--version", str(inputs["version"])]
    flags += ["--devel"] if inputs.get("devel") else []
    flags += ["--verify"] if inputs.get("verify") else []
    flags += ["--keyring", str(inputs["keyring"])] if inputs.get("keyring") else []
    target = helm.folder / "chart"
    task.progress(f"getting chart {inputs['chart']}")
    answer = helm.call(task, "pull", chart, "--destination", str(target), *flags, **environment)
    if answer.code:
        return Chart(None, f"helm cannot get the chart: {answer.error}")
    (package,) = target.glob("*.tgz")
    return Chart(package)


def _registry(chart: str, user: str, password: str) -> str:
    """Return credentials for a registry, in the form of Docker's config.json, which helm reads."""
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return json.dumps({"auths": {urlsplit(chart).netloc: {"auth": encoded}}})


def _repositories(repository: Mapping[str, Any]) -> str:
    """Return helm's list of repositories with this one alone."""
    entry = {"name": _REPOSITORY, "url": str(repository["repo"])}
    entry |= {key: str(repository[key]) for key in ("username", "password", *_FILES) if repository.get(key)}
    return json.dumps({"apiVersion": "", "repositories": [entry]})
