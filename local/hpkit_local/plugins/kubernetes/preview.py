"""A preview's data about an object: the result of a dry run, if the API server can already run it."""

import copy

from hpkit_local.plugins.kubernetes.cluster import Cluster
from hpkit_local.plugins.kubernetes.objects import metadata_of
from hpkit_local.plugins.kubernetes.ready import tests_of
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.values import UNKNOWN, Props, has_unknown, is_unknown

__all__ = ["preview_outputs"]

# Fields that differ in each new object, although a dry run sets them.
_PER_OBJECT = ("creationTimestamp", "generation", "resourceVersion", "uid")
_PER_CHANGE = ("generation", "resourceVersion")
_ALLOCATED = ("clusterIP", "clusterIPs")


def preview_outputs(
    cluster: Cluster, call: EngineCall, inputs: Props, state: Props, *, manager: str, patch: bool
) -> Props:
    """Return the outputs of a preview. Raises PluginError for what the API server would reject."""
    dry_run = None
    if not has_unknown(inputs):
        tests_of(inputs)  # a malformed annotation shows here, not after the object is made
        # The official plugin doesn't ask the API server about a patch before it exists.
        if state or not patch:
            dry_run = cluster.preview(call, inputs, manager, new=not state)
    if state:
        return _updated(dry_run, inputs, state)
    result = copy.deepcopy(dry_run or inputs)
    result["status"] = UNKNOWN
    metadata = result.setdefault("metadata", {})
    if not is_unknown(metadata):
        metadata.update(dict.fromkeys(_PER_OBJECT, UNKNOWN))
        metadata.pop("managedFields", None)
    spec = result.get("spec")
    if inputs.get("kind") == "Service" and isinstance(spec, dict):
        stated = inputs.get("spec") or {}
        spec.update({key: UNKNOWN for key in _ALLOCATED if key not in stated})
    return result


def _updated(dry_run: Props | None, inputs: Props, state: Props) -> Props:
    # The answer is whole: a field that the program no longer states isn't in it.
    below = state if dry_run is None else {key: value for key, value in state.items() if key.startswith("__")}
    result = {**below, **(inputs if dry_run is None else dry_run)}
    metadata = {**metadata_of(below), **metadata_of(result)}
    metadata.update({key: UNKNOWN for key in _PER_CHANGE if key in metadata})
    metadata.pop("managedFields", None)
    return {**result, "metadata": UNKNOWN if is_unknown(inputs.get("metadata")) else metadata}
