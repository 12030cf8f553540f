"""Kueue's own configuration file, edited where it must be and left as it is elsewhere."""

from collections.abc import Mapping
from io import StringIO

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from hpkit.catalog import TASK_GOVERNANCE, addons, is_older, topology_gates
from hpkit.plan.model import Plan

__all__ = ["gates_of", "with_feature_gates"]


def gates_of(plan: Plan) -> dict[str, bool]:
    """Return Kueue's feature gates that switch topology-aware scheduling as the plan says; none where it does not."""
    if not plan.manages_topology:
        return {}
    version = next((each.version for each in plan.addons if each.name == TASK_GOVERNANCE), None) or ""
    known = next(each for each in addons() if each.name == TASK_GOVERNANCE)
    # Its Kueue schedules by no topology, and refuses gates that it does not know.
    if is_older(version, known.minimum or ""):
        return {}
    kueue = {each.version: each.kueue for each in known.versions}.get(version)
    return dict.fromkeys(topology_gates(kueue), plan.topology_aware_scheduling)


def with_feature_gates(text: str, gates: Mapping[str, bool]) -> str:
    """Return Kueue's configuration with feature gates set and all else as it was, comments too.

    It is the same text again when they are set already. Raises ValueError when the text is not a YAML map.
    """
    reader = YAML()
    reader.preserve_quotes = True
    config = _map(reader, text)
    there = config.get("featureGates") or {}
    if gates.items() <= there.items():
        return text
    config["featureGates"] = there or CommentedMap()
    config["featureGates"].update(sorted(gates.items()))
    written = StringIO()
    reader.dump(config, written)
    return written.getvalue()


def _map(reader: YAML, text: str) -> CommentedMap:
    try:
        match reader.load(text):
            case CommentedMap() as config:
                return config
            case None:
                return CommentedMap()
            case other:
                raise ValueError(f"Kueue's configuration is not a map: {other!r}")
    except YAMLError as error:
        raise ValueError(f"Kueue's configuration is not YAML: {error}") from None
