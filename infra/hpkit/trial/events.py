"""What Pulumi's event log says about a run: changes by resource type, the longest operations, and errors.

The log has one JSON document per line, as `apitype.EngineEvent` of Pulumi's SDK defines them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hpkit.changes.steps import HOLDS_NOTHING

__all__ = ["Changes", "changes_in"]

_COLOR: Final = re.compile(r"<\{%[^%]*%\}>")
# The program imports only what AWS may have created first, so an import is as expected as the creation.
_CHANGES: Final = {
    "create": "create",
    "create-replacement": "replace",
    "update": "update",
    "delete": "delete",
    "import": "create",
}
_LONGEST: Final = 5
# Components, providers, and resources that exist only in the state.
_OWN: Final = ("hpkit:", "pulumi:", *HOLDS_NOTHING)


@dataclass(frozen=True, slots=True)
class Changes:
    """A run's changes.

    counts: `create aws:ec2/vpc:Vpc` → number. longest: resources and the seconds that they took, the slowest first.
    errors: Pulumi's error messages.
    """

    counts: dict[str, int]
    longest: tuple[tuple[str, float], ...]
    errors: tuple[str, ...]


def changes_in(log: Path) -> Changes:
    """Return the changes that an event log reports; none if there is no log."""
    counts: Counter[str] = Counter()
    begun: dict[str, float] = {}
    seconds: dict[str, float] = {}
    errors: dict[str, None] = {}
    for event in _events(log):
        if started := event.get("resourcePreEvent"):
            begun[started["metadata"]["urn"]] = _second(event)
        elif ended := event.get("resOutputsEvent") or event.get("resOpFailedEvent"):
            metadata = ended["metadata"]
            operation = _CHANGES.get(metadata["op"])
            if operation is None or metadata["type"].startswith(_OWN):
                continue
            if "resOutputsEvent" in event:
                counts[f"{operation} {metadata['type']}"] += 1
            urn = metadata["urn"]
            seconds[f"{metadata['type']} {urn.rpartition('::')[2]}"] = _second(event) - begun.get(urn, _second(event))
        elif (diagnostic := event.get("diagnosticEvent")) and diagnostic.get("severity") == "error":
            errors[_COLOR.sub("", diagnostic["message"]).strip()] = None
    longest = sorted(seconds.items(), key=lambda item: -item[1])[:_LONGEST]
    return Changes(dict(sorted(counts.items())), tuple(longest), tuple(errors))


def _events(log: Path) -> list[dict[str, Any]]:
    if not log.is_file():
        return []
    events = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            # The last line of a run that was killed.
            continue
    return events


def _second(event: dict[str, Any]) -> float:
    return float(event.get("timestamp", 0))
