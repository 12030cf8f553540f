"""Panels of Grafana dashboards, as the JSON that Grafana takes; rows are filled from left to right.

Source of the model: Grafana documentation, "Dashboard JSON model" (schema version 39, which Grafana 10.4 and later
read).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["DATA_SOURCE", "Panel", "Query", "Row", "dashboard"]

# A variable: people may point the dashboards at another Prometheus.
DATA_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_SCHEMA: Final = 39
_WIDTH: Final = 24
_HEIGHT: Final = 8


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL expression and how its series are called, such as `{{team}}`."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """What a panel shows.

    unit: Grafana's name of it (`short`, `percent`, `s`, …); type: `timeseries` over time, `table` of now;
    stacked: series on top of each other; description: what the figures mean, where the title does not say it.
    """

    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    type: str = "timeseries"
    stacked: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels beside each other, equally wide."""

    panels: tuple[Panel, ...]


def dashboard(
    *, uid: str, title: str, rows: Sequence[Row], data_source_uid: str, resource: str | None = None
) -> dict[str, Any]:
    """Return a dashboard; resource: what `$resource` is at first, None where no panel asks for that and `$flavor`."""
    variables = [_data_source_variable(data_source_uid)]
    if resource is not None:
        variables += [_resource_variable(resource), _flavor_variable()]
    return {
        "uid": uid,
        "title": title,
        "tags": ["hpkit"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": variables},
        "panels": list(_placed(rows)),
    }


def _placed(rows: Iterable[Row]) -> Iterable[dict[str, Any]]:
    number = 0
    for line, row in enumerate(rows):
        width = _WIDTH // len(row.panels)
        for column, panel in enumerate(row.panels):
            number += 1
            place = {"h": _HEIGHT, "w": width, "x": column * width, "y": line * _HEIGHT}
            yield {"id": number, "gridPos": place, **_panel(panel)}


def _panel(panel: Panel) -> dict[str, Any]:
    instant = panel.type != "timeseries"
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.type == "timeseries":
        stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
        defaults["custom"] = {"drawStyle": "line", "fillOpacity": 20 if panel.stacked else 0, "stacking": stacking}
    return {
        "type": panel.type,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATA_SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _OPTIONS[panel.type],
        "targets": [
            _target(chr(ord("A") + index), query, instant=instant) for index, query in enumerate(panel.queries)
        ],
    }


def _target(ref_id: str, query: Query, *, instant: bool) -> dict[str, Any]:
    return {
        "refId": ref_id,
        "datasource": DATA_SOURCE,
        "editorMode": "code",
        "expr": query.expression,
        "legendFormat": query.legend or "__auto",
        "instant": instant,
        "range": not instant,
        "format": "table" if instant else "time_series",
    }


_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "timeseries": {
        "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"], "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "table": {"showHeader": True},
}


def _data_source_variable(uid: str) -> dict[str, Any]:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "current": {"text": uid, "value": uid},
        "hide": 0,
    }


def _resource_variable(resource: str) -> dict[str, Any]:
    return {
        "name": "resource",
        "label": "Resource",
        "type": "query",
        "datasource": DATA_SOURCE,
        "definition": "label_values(kueue_cluster_queue_nominal_quota, resource)",
        "query": {"query": "label_values(kueue_cluster_queue_nominal_quota, resource)", "refId": "resource"},
        "current": {"text": resource, "value": resource},
        "refresh": 1,
        "sort": 1,
        "hide": 0,
    }


def _flavor_variable() -> dict[str, Any]:
    """Return the variable of the instance types, all at first: task governance has a flavor for each."""
    return {
        "name": "flavor",
        "label": "Instance type",
        "type": "query",
        "datasource": DATA_SOURCE,
        "definition": "label_values(kueue_cluster_queue_nominal_quota, flavor)",
        "query": {"query": "label_values(kueue_cluster_queue_nominal_quota, flavor)", "refId": "flavor"},
        "current": {"text": ["All"], "value": ["$__all"]},
        "includeAll": True,
        "allValue": ".+",
        "multi": True,
        "refresh": 1,
        "sort": 1,
        "hide": 0,
    }
