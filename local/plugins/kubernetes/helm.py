"""Runs helm where it is installed: whether a chart can be had, install or upgrade, uninstall.

Does not: wait for what a chart holds, nor run its hooks: no kubelet and no controllers run in the local cloud.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kubernetes.client import Configuration

from provider.engine.errors import PluginError
from provider.engine.task import Task
from provider.engine.values import Props

__all__ = ["Helm"]

_LOOK_SECONDS: Final = 0.2
_REPOSITORY: Final = {
    "repo": "--repo",
    "username": "--username",
    "password": "--password",
    "caFile": "--ca-file",
    "certFile": "--cert-file",
    "keyFile": "--key-file",
}
_FLAGS: Final = {
    "createNamespace": "--create-namespace",
    "dependencyUpdate": "--dependency-update",
    "disableOpenapiValidation": "--disable-openapi-validation",
    "resetValues": "--reset-values",
    "reuseValues": "--reuse-values",
    "skipCrds": "--skip-crds",
}


@dataclass(frozen=True)
class Helm:
    """The helm on PATH, pointed at one API server."""

    configuration: Configuration

    def why_not(self, task: Task, inputs: Props) -> str:
        """Say why a chart cannot be installed; empty if it can."""
        if shutil.which("helm") is None:
            return "there is no helm on PATH"
        task.progress(f"getting chart {inputs['chart']}")
        code, _, errors = _run(task, ["show", "chart", *_chart(inputs)])
        return f"helm cannot get the chart: {_said(errors)}" if code else ""

    def install(self, task: Task, inputs: Props) -> Props:
        """Install or upgrade; return the release's status."""
        name, namespace = str(inputs["name"]), str(inputs["namespace"])
        with self._folder() as (folder, access):
            arguments = ["upgrade", name, *_chart(inputs), "--install", "--no-hooks", "--namespace", namespace]
            arguments += [flag for key, flag in _FLAGS.items() if inputs.get(key)]
            for file in _values(inputs, folder):
                arguments += ["--values", file]
            task.progress("helm upgrade --install")
            code, output, errors = _run(task, [*arguments, "--output", "json", *access])
        if code:
            raise PluginError(f"helm could not install release {namespace}/{name}: {_said(errors)}")
        told = json.loads(output)
        chart = told.get("chart", {}).get("metadata", {})
        known = {"name": name, "namespace": namespace, "revision": told.get("version"), "chart": chart.get("name")}
        versions = {"version": chart.get("version"), "appVersion": chart.get("appVersion")}
        return {**known, **versions, "status": told.get("info", {}).get("status")}

    def uninstall(self, task: Task, namespace: str, name: str) -> None:
        """Uninstall; a release that is gone already is fine."""
        if shutil.which("helm") is None:
            raise PluginError(
                f"release {namespace}/{name} was installed by helm, and there is no helm on PATH to uninstall it. "
                "What to do: put helm on PATH, and run pulumi again."
            )
        with self._folder() as (_, access):
            command = ["uninstall", name, "--namespace", namespace, "--no-hooks", "--ignore-not-found", *access]
            code, _, errors = _run(task, command)
        if code:
            raise PluginError(f"helm could not uninstall release {namespace}/{name}: {_said(errors)}")

    @contextmanager
    def _folder(self) -> Iterator[tuple[Path, list[str]]]:
        """Yield a folder that goes at the end, and the arguments that lead helm to the API server."""
        with TemporaryDirectory(prefix="hpkit-helm-") as name:
            file = Path(name) / "kubeconfig"
            file.touch(mode=0o600)
            file.write_text(json.dumps(_kubeconfig(self.configuration)), encoding="utf-8")
            yield Path(name), ["--kubeconfig", str(file)]


def _kubeconfig(configuration: Configuration) -> dict[str, Any]:
    cluster: dict[str, Any] = {"server": configuration.host}
    if configuration.ssl_ca_cert:
        cluster["certificate-authority"] = configuration.ssl_ca_cert
    if not configuration.verify_ssl:
        cluster["insecure-skip-tls-verify"] = True
    user: dict[str, Any] = {}
    if configuration.cert_file:
        user = {"client-certificate": configuration.cert_file, "client-key": configuration.key_file}
    bearer = configuration.auth_settings().get("BearerToken")
    if bearer is not None and bearer["value"]:
        user["token"] = str(bearer["value"]).removeprefix("Bearer ")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "here", "user": user}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
    }


def _chart(inputs: Props) -> list[str]:
    arguments = [str(inputs["chart"])]
    if inputs.get("version"):
        arguments += ["--version", str(inputs["version"])]
    if inputs.get("devel"):
        arguments.append("--devel")
    repository: Mapping[str, Any] = inputs.get("repositoryOpts") or {}
    for key, flag in _REPOSITORY.items():
        if repository.get(key):
            arguments += [flag, str(repository[key])]
    return arguments


def _values(inputs: Props, folder: Path) -> Iterator[str]:
    """Yield files of values, those of the program's own mapping last: they win."""
    for index, asset in enumerate(inputs.get("valueYamlFiles") or []):
        if asset.get("path"):
            yield str(asset["path"])
        else:
            yield _written(folder / f"asset-{index}.yaml", str(asset.get("text", "")))
    if inputs.get("values"):
        yield _written(folder / "values.json", json.dumps(inputs["values"]))


def _written(file: Path, text: str) -> str:
    file.write_text(text, encoding="utf-8")
    return str(file)


def _run(task: Task, arguments: list[str]) -> tuple[int, str, str]:
    """Run helm to its end, or to that of the task."""
    command = ["helm", *arguments]
    with subprocess.Popen(  # noqa: S603 - helm, which the user put on PATH
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while True:
            try:
                output, errors = process.communicate(timeout=_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                try:
                    task.pause(0.0)
                except PluginError:
                    process.terminate()
                    raise
            else:
                return process.returncode, output, errors


def _said(errors: str) -> str:
    """Return helm's error, which may take several lines, without the warnings before it."""
    before, mark, after = errors.partition("Error: ")
    return " ".join((after if mark else before).split()) or "no message"
