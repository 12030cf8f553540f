"""The functions of the package that the SDK calls by itself."""

from typing import Any

import yaml

from hpkit_local.plugins.kubernetes.documents import documents_of
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["invoke"]


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
        documents = documents_of(text)
    except yaml.YAMLError as error:
        raise PluginError(f"this is not YAML: {error}") from None
    return [item for document in documents if document is not None for item in _objects(document)]


def _objects(document: Any) -> list[Props]:
    if not isinstance(document, dict) or "kind" not in document:
        raise PluginError(f"a YAML document is no Kubernetes object (a mapping with apiVersion and kind): {document!r}")
    if document["kind"] == "List":
        return [inner for item in document.get("items") or [] for inner in _objects(item)]
    return [document]
