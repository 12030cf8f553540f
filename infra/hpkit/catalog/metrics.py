"""Metrics that a platform exports to Managed Prometheus, with their labels: Kueue's, and those of exporters."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from hpkit.catalog.instances import read_data

__all__ = ["Metric", "kueue_metrics_version", "metrics"]

_OF_HISTOGRAMS = {"_bucket": ("le",), "_sum": (), "_count": ()}


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its type in Prometheus, its labels without those that every scrape adds, and its source."""

    name: str
    type: str
    labels: frozenset[str]
    source: str


def kueue_metrics_version() -> str:
    """Return the version of Kueue whose metrics are in the catalog."""
    version: str = read_data("kueue_metrics.json")["version"]
    return version


@cache
def metrics() -> Mapping[str, Metric]:
    """Return every metric by name; a histogram as the three series that Prometheus has of it."""
    kueue = read_data("kueue_metrics.json")
    groups = [{**kueue, "source": kueue["source"]}, *read_data("exporter_metrics.json")["groups"]]
    by_name: dict[str, Metric] = {}
    for group in groups:
        for name, row in group["metrics"].items():
            labels = (*group.get("labels", ()), *row.get("labels", ()))
            for metric, more in _series(name, row["type"]).items():
                by_name[metric] = Metric(metric, row["type"], frozenset((*labels, *more)), group["source"])
    return by_name


def _series(name: str, kind: str) -> Mapping[str, tuple[str, ...]]:
    if kind != "histogram":
        return {name: ()}
    return {f"{name}{suffix}": labels for suffix, labels in _OF_HISTOGRAMS.items()}
