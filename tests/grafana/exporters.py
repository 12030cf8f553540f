"""The metrics of exporters, read from the sources of their Go modules."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hpkit.errors import ToolError
from hpkit_local.toolchain import GO, get

__all__ = ["EXPORTERS"]

# Metric → type and labels.
Found = Mapping[str, tuple[str, set[str]]]
_LABEL = re.compile(r'(\w+)="')


def _module(name: str, version: str, checksum: str) -> Path:
    """Return the folder with the source of a Go module; skip the test if it can't be downloaded."""
    environment = {**os.environ, "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local", "GOSUMDB": "off"}
    try:
        command = [str(get(GO, say=print)), "mod", "download", "-json", f"{name}@{version}"]
    except ToolError as error:
        pytest.skip(str(error))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    download = json.loads(done.stdout or "{}")
    if "Dir" not in download:
        pytest.skip(f"{name} {version} can't be downloaded: {download.get('Error') or done.stderr}")
    assert download["Sum"] == checksum, name
    return Path(download["Dir"])


def _documented(pattern: str, cells: re.Pattern[str]) -> Callable[[Path], Found]:
    """Return a reader of tables on pages; cells: a row with the name, the type, and its other cells."""

    def read(folder: Path) -> Found:
        rows = [row for page in folder.glob(pattern) for row in cells.findall(page.read_text(encoding="utf-8"))]
        return {name: (kind.lower(), set(re.findall(r"`(\w+)`=", rest))) for name, kind, rest in rows}

    return read


def _exposed(folder: Path) -> Found:
    """Read the page of metrics that the node exporter's own test expects."""
    text = (folder / "collector/fixtures/e2e-output.txt").read_text(encoding="utf-8")
    exposed = {name: (kind, set[str]()) for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)}
    for name, labels in re.findall(r"^(\w+)\{(.*)\} ", text, re.MULTILINE):
        if name in exposed:
            exposed[name][1].update(_LABEL.findall(labels))
    # Its test has no file systems, and a machine without MemAvailable.
    source = (folder / "collector/filesystem_common.go").read_text(encoding="utf-8")
    (names,) = re.findall(r"filesystemLabelNames = \[\]string\{(.*)\}", source)
    for name in re.findall(r'BuildFQName\(namespace, subsystem, "(\w+_bytes)"\)', source):
        exposed[f"node_filesystem_{name}"] = ("gauge", set(re.findall(r'"(\w+)"', names)))
    source = (folder / "collector/meminfo_linux.go").read_text(encoding="utf-8")
    exposed |= {f"node_memory_{name}": ("gauge", set()) for name in re.findall(r'metrics\["(\w+)"\]', source)}
    return exposed


def _declared(folder: Path) -> Found:
    """Read KEDA's declarations."""
    text = (folder / "pkg/metricscollector/prommetrics.go").read_text(encoding="utf-8")
    variables = dict(re.findall(r"(\w+) += \[\]string(\{.*\})", text))
    made = re.findall(
        r'New(Gauge|Counter)Vec\(.*?Subsystem: +"(\w+)",\s+Name: +"(\w+)".*?\},\s+(?:\[\]string(\{.*?\})|(\w+)),\s+\)',
        text,
        re.DOTALL,
    )
    return {
        f"keda_{subsystem}_{name}": (kind.lower(), set(re.findall(r'"(\w+)"', labels or variables[variable])))
        for kind, subsystem, name, labels, variable in made
    }


_KUBE_STATE = re.compile(r"^\| (kube_\w+) +\| (\w+) +\|(.*)$", re.MULTILINE)
_CADVISOR = re.compile(r"^`(container_\w+)` \| (\w+) \|(.*)$", re.MULTILINE)
# Prefix of metrics → the module's name, version and checksum, and its reader.
_SOURCES: Mapping[str, tuple[tuple[str, str, str], Callable[[Path], Found]]] = {
    "kube_": (
        ("k8s.io/kube-state-metrics/v2", "v2.15.0", "h1:0qSA+hVCj5p2QSYnbz6NPNflct3C1kPAIhF8ZtMKpIk="),
        _documented("docs/metrics/**/*.md", _KUBE_STATE),
    ),
    "node_": (
        ("github.com/prometheus/node_exporter", "v1.12.1", "h1:LzcZ6SqJRH2EULBz3Paa1t1uzQaaoo9domuz8FQDkiY="),
        _exposed,
    ),
    "keda_": (("github.com/kedacore/keda/v2", "v2.17.2", "h1:xlrcK5TKABJF9PebK79sgL07s/csGjL3H4m72OkZXxk="), _declared),
    "container_": (
        ("github.com/google/cadvisor", "v0.52.1", "h1:sC8SZ6jio9ds+P2dk51bgbeYeufxo55n0X3tmrpA9as="),
        _documented("docs/storage/prometheus.md", _CADVISOR),
    ),
}


def _reader(module: tuple[str, str, str], read: Callable[[Path], Found]) -> Callable[[], Found]:
    return lambda: read(_module(*module))


EXPORTERS = {prefix: _reader(module, read) for prefix, (module, read) in _SOURCES.items()}
