"""What runs, what is offered, and the steps between. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpkit.catalog import OfferedAddon
from hpkit.config.document import Path

__all__ = ["Running", "Step", "UpgradePlan"]


@dataclass(frozen=True, slots=True)
class Running:
    """What runs: `kubernetes` and add-ons by version; nodes by (group, AMI release, how that compares) → how many.

    offered: (add-on, Kubernetes version) → what EKS lists. known: whether a platform was asked, not the file alone.
    """

    kubernetes: str
    addons: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    offered: Mapping[tuple[str, str], OfferedAddon] = field(default_factory=dict)
    known: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do, after those before it.

    edits: path in the stack file → its new text. commands: what is run, in order. reads: what must be read first.
    """

    title: str
    why: str
    edits: Mapping[Path, str] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """What is behind, as sentences, and the steps, in order.

    blocked: what keeps any from being made; notes: what isn't behind, and will be before long.
    """

    behind: tuple[str, ...]
    steps: tuple[Step, ...]
    blocked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
