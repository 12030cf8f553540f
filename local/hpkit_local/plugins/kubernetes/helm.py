"""Runs the toolchain's helm against one API server: secrets go by file, its waits are shown, it ends with the call.

The source of a release's chart: the disk, a folder of packages, or a registry that helm downloads from. The environment
variable HPKIT_MIRROR names a folder with packages as `helm package` names them, `<name>-<version>.tgz`. A registry's
chart that is in it is read from there.

A Release's inputs for helm: each input that the program uses is a flag or a file; others are rejected. Source:
pulumi-kubernetes v4, provider/pkg/provider/helm_release.go. A create is `helm install`, an update `helm upgrade`.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml
from kubernetes.client import Configuration
from packaging.version import InvalidVersion, Version

from hpkit.errors import ToolError
from hpkit_local.plugins.kubernetes.api import RetryingApi
from hpkit_local.toolchain import tool_path
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props, is_unknown

__all__ = [
    "MIRROR",
    "Answer",
    "Helm",
    "HelmRun",
    "chart_of",
    "documents_of",
    "failures",
    "flags",
    "values_files",
    "waits",
]

_SECONDS: Final = 300  # the official plugin's default for releases
_KNOWN: Final = frozenset(
    {
        *("chart", "createNamespace", "name", "namespace", "skipAwait", "timeout", "values", "version"),
        # Without any effect in the official plugin either; the SDK always sends `compat`.
        *("allowNullValues", "compat", "resourceNames"),
    }
)


class _Loader(yaml.CSafeLoader):
    """Read dates as text, because JSON has no dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents_of(text: str) -> list[Any]:
    """Return the documents of a text; yaml.YAMLError if it is not YAML."""
    return list(yaml.load_all(text, Loader=_Loader))


_LOOK_SECONDS: Final = 0.2
_GRACE_SECONDS: Final = 10  # in which helm writes down that a release failed
# What `--debug` prints while helm waits (helm.sh/helm/v3/pkg/kube/ready.go), after the place in its source.
_WAITS: Final = re.compile(
    r"^\S+\.go:\d+: .*\[debug\] (?P<says>.*\bnot ready\b.*|.*\bbeginning wait\b.*)$", re.MULTILINE
)
_DEBUG: Final = re.compile(r"^\S+\.go:\d+: ")
# Helm's own variables for another API server than that of --kubeconfig (`helm env`).
_ELSEWHERE: Final = ("HELM_KUBE", "HELM_NAMESPACE", "KUBECONFIG")


@dataclass(frozen=True)
class Answer:
    """The result of a run of helm: its exit code, its output, its error on one line, what it last waited for."""

    code: int
    output: str
    error: str
    waited_for: str


@dataclass(frozen=True)
class HelmRun:
    """A helm executable, and a temporary folder."""

    executable: Path
    folder: Path
    environment: Mapping[str, str]

    def call(self, call: EngineCall, *arguments: str) -> Answer:
        """Run helm to its end, or to that of the call."""
        command = [str(self.executable), *arguments, "--kubeconfig", str(self.folder / "kubeconfig"), "--debug"]
        output, errors = self.folder / "output", self.folder / "errors"
        with (
            output.open("wb") as out,
            errors.open("wb") as err,
            subprocess.Popen(  # noqa: S603 - the toolchain's helm
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.environment
            ) as process,
        ):
            self._until_ended(call, process, arguments[0])
        told = errors.read_text(encoding="utf-8", errors="replace")
        text = output.read_text(encoding="utf-8", errors="replace")
        return Answer(process.returncode, text, _error(told), _waited_for(told))

    def write(self, name: str, text: str) -> str:
        """Write a file that only this user can read; return its path."""
        file = self.folder / name
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        return str(file)

    def _until_ended(self, call: EngineCall, process: "subprocess.Popen[bytes]", verb: str) -> None:
        while True:
            try:
                process.wait(timeout=_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                said = _waited_for((self.folder / "errors").read_text(encoding="utf-8", errors="replace"))
                call.progress(f"helm {verb}: {said}" if said else f"helm {verb}")
                try:
                    call.pause(0.0)
                except PluginError:
                    # Helm handles SIGTERM by marking the release as failed, so that the next run can continue.
                    process.terminate()
                    try:
                        process.wait(timeout=_GRACE_SECONDS)
                    except subprocess.TimeoutExpired:
                        process.kill()
                    raise
            else:
                return


@dataclass(frozen=True)
class Helm:
    """The helm of the toolchain, pointed at one API server."""

    api: RetryingApi

    def lacking(self) -> str:
        """Return why helm isn't available, or ""."""
        try:
            tool_path("helm")
        except ToolError as error:
            return str(error)
        return ""

    @contextmanager
    def run(self, call: EngineCall, namespace: str) -> Iterator[HelmRun]:
        """Yield a helm with a separate kubeconfig, mode 0600; its folder is deleted at the end."""
        try:
            executable = tool_path("helm")
        except ToolError as error:
            raise PluginError(str(error)) from None
        # Helm doesn't wait for a starting API server, so the endpoints that helm uses are checked first.
        self.api.ask(call, "GET", f"/api/v1/namespaces/{namespace}/secrets", limit="1")
        # Of a wait of helm's the token must last to the end.
        self.api.renew_token()
        with TemporaryDirectory(prefix="hpkit-helm-") as name:
            run = HelmRun(executable, Path(name), _environment())
            run.write("kubeconfig", json.dumps(_kubeconfig(self.api.configuration)))
            yield run


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_ELSEWHERE)}
    return {**kept, "HELM_DRIVER": "secret"}


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


def _waited_for(errors: str) -> str:
    """Return what helm last reported to wait for."""
    found: Sequence[str] = _WAITS.findall(errors)
    return found[-1].strip() if found else ""


def _error(errors: str) -> str:
    """Return helm's error, which may take several lines, without the context of helm's source code around it."""
    _, mark, after = errors.partition("Error: ")
    lines = []
    for line in (after if mark else errors).splitlines():
        if _DEBUG.match(line):
            break
        lines.append(line)
    return " ".join(" ".join(lines).split()) or "helm gives no reason"


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
        raise PluginError(f"{MIRROR}: folder {folder} doesn't exist. To fix: create it, or unset the variable.")
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


def failures(inputs: Props) -> list[tuple[str, str]]:
    """Return property and reason of unsupported inputs."""
    problems = [] if inputs.get("chart") else [("chart", "is required")]
    unknown = [key for key in inputs if key not in _KNOWN and not key.startswith("__")]
    problems += [(key, "the local cloud's fake Kubernetes plugin has no such input of a Release") for key in unknown]
    seconds = inputs.get("timeout")
    if seconds is not None and not is_unknown(seconds) and (not isinstance(seconds, int) or seconds < 0):
        problems.append(("timeout", f"must be a whole number, 0 or more, not {seconds!r}"))
    return problems


def waits(inputs: Props) -> list[str]:
    """Return the flags of helm's waits; an uninstallation has these, too."""
    flags = [] if inputs.get("skipAwait") else ["--wait"]
    return [*flags, "--timeout", f"{int(inputs.get('timeout') or _SECONDS)}s"]


def flags(inputs: Props, *, upgrade: bool) -> list[str]:
    """Return the flags of an installation or an upgrade, without chart and values."""
    if upgrade:
        # The official plugin's default is to keep all revisions, the command's is ten.
        return ["--history-max", "0", *waits(inputs)]
    return [*(["--create-namespace"] if inputs.get("createNamespace") else []), *waits(inputs)]


def values_files(inputs: Props, helm: HelmRun) -> list[str]:
    """Return arguments that name the file of values, if there are any."""
    values = inputs.get("values")
    return ["--values", helm.write("values.yaml", json.dumps(values))] if values else []
