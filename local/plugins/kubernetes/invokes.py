"""The functions of the package that the SDK calls by itself."""

from typing import Any

import yaml

from provider.errors import PluginError
from provider.values import Props

__all__ = ["invoke"]


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: what looks like a date is text, for JSON has no dates."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def invoke(token: str, arguments: Props) -> Props:
    """Answer a function; PluginError for those that the local cloud cannot answer."""
    if token == "kubernetes:yaml:decode":  # noqa: S105 - a function's token
        return {"result": _decoded(str(arguments.get("text", "")))}
    raise PluginError(
        f"there is no function {token!r} in the local cloud: its fake kubernetes plugin answers "
        "kubernetes:yaml:decode alone (no helm, no kustomize). What to do: pass rendered YAML, or leave it out locally."
    )


def _decoded(text: str) -> list[Props]:
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise PluginError(f"this is not YAML: {error}") from None
    return [item for document in documents if document is not None for item in _objects(document)]


def _objects(document: Any) -> list[Props]:
    if not isinstance(document, dict) or "kind" not in document:
        raise PluginError(f"a YAML document is no Kubernetes object (a mapping with apiVersion and kind): {document!r}")
    if document["kind"] == "List":
        return [inner for item in document.get("items") or [] for inner in _objects(item)]
    return [document]
