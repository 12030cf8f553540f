"""What a PromQL expression names, as a real parser reads it."""

from collections.abc import Iterator
from typing import Any

import promql_parser

__all__ = ["as_prometheus", "grouped", "parsed", "selectors"]

_PARTS = ("lhs", "rhs", "expr", "args", "vector_selector", "param")


def as_prometheus(expression: str, *, resource: str = "nvidia.com/gpu") -> str:
    """Return what Prometheus is asked once Grafana has put values in place of variables."""
    return expression.replace("$__rate_interval", "5m").replace("$resource", resource).replace("$flavor", ".+")


def parsed(expression: str) -> Any:
    """Return the syntax tree; ValueError for what is no PromQL."""
    return promql_parser.parse(as_prometheus(expression))


def selectors(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each metric with the labels that its matchers name."""
    for node in _nodes(parsed(expression)):
        if isinstance(node, promql_parser.VectorSelector):
            yield node.name, {each.name for each in node.matchers.matchers}


def grouped(expression: str) -> Iterator[tuple[set[str], Any]]:
    """Yield the labels that each aggregation keeps, and what it aggregates."""
    for node in _nodes(parsed(expression)):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            yield set(node.modifier.labels), node.expr


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for name in _PARTS:
        part = getattr(node, name, None)
        for each in part if isinstance(part, list) else [part]:
            if each is not None:
                yield from _nodes(each)
