"""Kueue's own configuration file, edited where it must be and left as it is elsewhere."""

import re
from collections.abc import Mapping

from hpkit.catalog import addons, topology_gates
from hpkit.plan.model import Plan

__all__ = ["TASK_GOVERNANCE", "gates_of", "with_feature_gates"]

TASK_GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"

_BLOCK = re.compile(r"^featureGates:[ \t]*(?:\{\}|null|~)?[ \t]*$", re.MULTILINE)
_INLINE = re.compile(r"^featureGates:", re.MULTILINE)


def gates_of(plan: Plan) -> dict[str, bool]:
    """Return Kueue's feature gates that switch topology-aware scheduling as the plan says; none where it does not."""
    if not plan.manages_topology:
        return {}
    versions = {each.name: each.version for each in plan.addons}
    shipped = {
        each.version: each.kueue for addon in addons() if addon.name == TASK_GOVERNANCE for each in addon.versions
    }
    kueue = shipped.get(versions.get(TASK_GOVERNANCE) or "")
    return dict.fromkeys(topology_gates(kueue), plan.topology_aware_scheduling)


def with_feature_gates(text: str, gates: Mapping[str, bool]) -> str:
    """Return Kueue's configuration with feature gates set; the same text again when they are set already.

    Raises ValueError when the file's gates are written in one line, which the add-on's file never is.
    """
    for gate, enabled in sorted(gates.items()):
        text = _with_gate(text, gate, enabled=enabled)
    return text


def _with_gate(text: str, gate: str, *, enabled: bool) -> str:
    value = "true" if enabled else "false"
    block = _BLOCK.search(text)
    if block is None:
        if _INLINE.search(text):
            raise ValueError("featureGates stands in one line; write it as a block")
        return f"{text.rstrip()}\nfeatureGates:\n  {gate}: {value}\n"
    head, tail = text[: block.start()], text[block.end() :]
    line = re.compile(rf"^(?P<name>[ \t]+{re.escape(gate)}:)[ \t]*\S+", re.MULTILINE)
    # Gates end where the next top-level key begins.
    end = re.search(r"^\S", tail, re.MULTILINE)
    gates, rest = (tail, "") if end is None else (tail[: end.start()], tail[end.start() :])
    gates = line.sub(rf"\g<name> {value}", gates) if line.search(gates) else f"\n  {gate}: {value}{gates}"
    return f"{head}featureGates:{gates}{rest}"
