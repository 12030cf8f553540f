"""The catalog's file about Kueue's metrics: names, types and labels, from the source of the pinned Go module."""

import json
import re
from typing import Any

from hpkit.errors import InputError
from hpkit.project import project_root
from hpkit.text.formatting import compact_json

__all__ = ["FILE", "kueue_metrics", "kueue_metrics_text"]

FILE = "infra/hpkit/catalog/data/kueue_metrics.json"
_TOOL = "kueue-metrics"
_SOURCE = "pkg/metrics/metrics.go"
# Above each metric's variable: `// +metricsdoc:labels=cluster_queue="the name of …",status="…"`.
_DECLARED = re.compile(r"// \+metricsdoc:labels=(?P<labels>[^\n]*)\n\s*(?P<variable>\w+)\s+\*prometheus\.\w+Vec\n")
_LABEL = re.compile(r'(\w+)="')
_MADE = re.compile(
    r"(?P<variable>\w+) = (?:\w+\()?prometheus\.New(?P<type>Counter|Gauge|Histogram)Vec\(\s*prometheus\.\w+\{"
    r'.*?\bName:\s+"(?P<name>\w+)"',
    re.DOTALL,
)


def kueue_metrics_text() -> str:
    """Return the data file.

    If the source of the pinned version isn't on this machine, the file stays as it is, provided that it has that
    version.
    """
    from hpkit_local.cloud import TOOLS, locate

    (tool,) = [each for each in TOOLS if each.name == _TOOL]
    folder = locate(tool).path
    if folder is None:
        text = (project_root() / FILE).read_text(encoding="utf-8")
        if json.loads(text)["version"] != tool.version:
            raise InputError(f"{_TOOL} {tool.version} is not here. Get it with: hpkit local doctor --fix {_TOOL}")
        return text
    found = kueue_metrics((folder / "metrics.go").read_text(encoding="utf-8"))
    data = {"source": f"sigs.k8s.io/kueue {tool.version}, {_SOURCE}", "version": tool.version, "metrics": found}
    return compact_json(data) + "\n"


def kueue_metrics(source: str) -> dict[str, dict[str, Any]]:
    """Return name → type and labels of the metrics in Go source; InputError if a metric has no labels."""
    labels = {
        declaration["variable"]: sorted(_LABEL.findall(re.sub(r'"[^"]*"', '"', declaration["labels"])))
        for declaration in _DECLARED.finditer(source)
    }
    metrics = {}
    for match in _MADE.finditer(source):
        if match["variable"] not in labels:
            raise InputError(f"{_SOURCE}: {match['variable']} has no line with its labels")
        metrics[f"kueue_{match['name']}"] = {"type": match["type"].lower(), "labels": labels[match["variable"]]}
    return metrics
