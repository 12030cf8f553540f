"""YAML as Kubernetes reads it."""

from typing import Any

import yaml

__all__ = ["documents_of"]


class _Loader(yaml.CSafeLoader):
    """Read dates as text, because JSON has no dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents_of(text: str) -> list[Any]:
    """Return the documents of a text; yaml.YAMLError if it is not YAML."""
    return list(yaml.load_all(text, Loader=_Loader))
