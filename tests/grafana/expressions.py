"""The metrics and labels in a PromQL expression, read by a real parser."""

from collections.abc import Iterator, Set
from typing import Any

import promql_parser

from hpkit.catalog import metrics

__all__ = ["as_prometheus", "grouped", "parsed", "selectors"]

_PARTS = ("lhs", "rhs", "expr", "args", "vector_selector", "param")


def as_prometheus(expression: str, **chosen: str) -> str:
    """Return the query that Prometheus gets after Grafana replaces variables."""
    every = dict.fromkeys(("flavor", "group", "team"), ".+")
    values = {"__rate_interval": "5m", "resource": "nvidia.com/gpu", **every, **chosen}
    for name, value in values.items():
        expression = expression.replace(f"${name}", value)
    return expression


def parsed(expression: str) -> Any:
    """Return the syntax tree; ValueError if the text isn't valid PromQL."""
    return promql_parser.parse(as_prometheus(expression))


def selectors(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each metric with the labels in its matchers."""
    for node in _nodes(parsed(expression)):
        if isinstance(node, promql_parser.VectorSelector):
            yield node.name, {each.name for each in node.matchers.matchers}


def grouped(expression: str) -> Iterator[tuple[Set[str], Set[str]]]:
    """Yield the labels that each aggregation keeps, and the labels of its operand."""
    for node in _nodes(parsed(expression)):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            yield set(node.modifier.labels), _labels(node.expr)


def _labels(node: Any) -> Set[str]:
    """Return the labels that the series of an expression can have."""
    if isinstance(node, promql_parser.VectorSelector):
        return metrics()[node.name].labels
    if isinstance(node, promql_parser.MatrixSelector):
        return _labels(node.vector_selector)
    if isinstance(node, promql_parser.AggregateExpr):
        return set(node.modifier.labels) if node.modifier else set()
    if isinstance(node, promql_parser.BinaryExpr):
        # The labels of the side with many series, and those that `group_left` adds from the other side.
        joined = set(node.modifier.group_labels or ()) if node.modifier else set()
        return (_labels(node.lhs) or _labels(node.rhs)) | joined
    if isinstance(node, promql_parser.Call):
        made = {str(node.args[1].val)} if node.func.name == "label_replace" else set()
        return made.union(*map(_labels, node.args))
    return _labels(node.expr) if hasattr(node, "expr") else set()


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for name in _PARTS:
        part = getattr(node, name, None)
        for each in part if isinstance(part, list) else [part]:
            if each is not None:
                yield from _nodes(each)
