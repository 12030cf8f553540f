"""Kueue's own configuration file, edited where it must be and left as it is elsewhere."""

from collections.abc import Mapping
from typing import Any

from hpkit.catalog import TASK_GOVERNANCE, addons, is_older, topology_gates
from hpkit.config.edit import Layout, with_value
from hpkit.errors import InputError
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
    try:
        layouts = Layout.of_documents(text)
        config: Any = layouts[0].data if layouts else {}
        if not isinstance(config, dict):
            raise ValueError(f"Kueue's configuration is not a map: {config!r}")  # noqa: TRY004 - as any other text
        present = config.get("featureGates") or {}
        for name, is_on in sorted(gates.items()):
            if not config:
                text = config = f"featureGates:\n  {name}: {str(is_on).lower()}\n"
            elif present.get(name) is not is_on:
                text = with_value(text, ("featureGates", name), is_on, first=False)
    except InputError as error:
        raise ValueError(f"Kueue's configuration is not YAML: {error}") from None
    return text
