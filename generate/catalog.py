"""Facts of the catalog from elsewhere: the plugin's declarations, botocore's model of SageMaker, Kueue's metrics."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpkit_provider.schema.field_table import Field
import re

from hpkit.errors import InputError
from hpkit.project import project_root
from hpkit.text.formatting import compact_json

__all__ = ["METRICS_FILE", "hyperpod_text", "kueue_metrics", "kueue_metrics_text", "service_model_text"]

METRICS_FILE = "infra/hpkit/catalog/data/kueue_metrics.json"
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
# Everything that these refer to is kept, and the fields that select events: what users of hpkit can set.
_OPERATIONS = ("CreateCluster", "UpdateCluster", "CreateComputeQuota", "CreateClusterSchedulerConfig")
_OF_EVENTS = ("ClusterEventLevel", "ClusterStatus")
_KEPT = ("min", "max", "pattern", "enum")
_SETS = ("immutable", "sets", "present", "silent", "undisclosed")


def hyperpod_text() -> str:
    """Return the data file: a type per line."""
    from hpkit_provider.schema.field_table import RESOURCES, table

    types = {each.token: _resource(table(name)) for name, each in RESOURCES.items()}
    # A different region or account always means a different resource.
    types["pulumi:providers:hyperpod"] = {"immutable": ["region"]}
    parts = {
        "source": json.dumps("hpkit_provider.schema.declarations"),
        "types": _table(types),
        "groups": json.dumps(_groups(table("Cluster").by_name["instanceGroups"])),
    }
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {text}" for key, text in parts.items()) + "\n}\n"


def _table(data: dict[str, Any]) -> str:
    lines = [f"    {json.dumps(key)}: {json.dumps(data[key], sort_keys=True)}" for key in sorted(data)]
    return "{\n" + ",\n".join(lines) + "\n  }"


def _resource(spec: "Field") -> dict[str, Any]:
    facts = spec.facts
    behavior: dict[str, Any] = {name: sorted(getattr(facts, name)) for name in _SETS}
    behavior |= {"entries": facts.entries, "defaults": facts.defaults}
    return {key: value for key, value in behavior.items() if value} | {"deletesFirst": True}


def _groups(spec: "Field") -> dict[str, list[str]]:
    members = (spec.item or spec).members
    return {
        "frozen": [each.name for each in members if each.frozen],
        "sticky": [each.name for each in members if each.sticky],
    }


def service_model_text() -> str:
    """Return the data file: a shape per line, with type, enum, range, length and pattern."""
    import botocore
    from botocore.loaders import Loader

    model = Loader().load_service_model("sagemaker", "service-2")
    shapes: dict[str, Any] = model["shapes"]
    inputs = [model["operations"][name]["input"]["shape"] for name in _OPERATIONS]
    shape_names = _reachable(shapes, [*inputs, *_OF_EVENTS])
    lines = [
        f"    {json.dumps(name)}: {json.dumps(_limits(shapes[name]), ensure_ascii=False)}"
        for name in sorted(shape_names)
        if _limits(shapes[name]).keys() - {"type"}
    ]
    return (
        "{\n"
        f'  "source": "botocore {botocore.__version__}, sagemaker {model["metadata"]["apiVersion"]}",\n'
        '  "shapes": {\n' + ",\n".join(lines) + "\n  }\n}\n"
    )


def _limits(shape: dict[str, Any]) -> dict[str, Any]:
    return {"type": shape["type"], **{key: shape[key] for key in _KEPT if key in shape}}


def _reachable(shapes: dict[str, Any], roots: list[str]) -> set[str]:
    seen: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        shape = shapes[name]
        inner = [*shape.get("members", {}).values()]
        inner += [shape[key] for key in ("member", "key", "value") if key in shape]
        todo += [each["shape"] for each in inner]
    return seen


def kueue_metrics_text() -> str:
    """Return the data file.

    If the source of the pinned version isn't on this machine, the file stays as it is, provided that it has that
    version.
    """
    from hpkit_local.cloud import TOOLS, locate

    (tool,) = [each for each in TOOLS if each.name == _TOOL]
    folder = locate(tool).path
    if folder is None:
        text = (project_root() / METRICS_FILE).read_text(encoding="utf-8")
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
