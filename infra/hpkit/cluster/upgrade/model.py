"""Running versions, offered versions, and the steps between them. No side effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpkit.catalog import OfferedAddon
from hpkit.config.document import Path

__all__ = ["Running", "Step", "UpgradePlan"]


@dataclass(frozen=True, slots=True)
class Running:
    """Running versions: `kubernetes` and add-ons; nodes by (group, AMI release, comparison) → number.

    offered: (add-on, Kubernetes version) → EKS's versions. known: whether a platform was read, not only the file.
    """

    kubernetes: str
    addons: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    offered: Mapping[tuple[str, str], OfferedAddon] = field(default_factory=dict)
    known: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step, after the previous ones.

    edits: path in the organization file → its new text. commands: commands to run, in order. reads: what to read first.
    """

    title: str
    why: str
    edits: Mapping[Path, str] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """Outdated parts as sentences, and the steps, in order.

    blocked: why no step is possible; notes: parts that will be outdated soon.
    """

    behind: tuple[str, ...]
    steps: tuple[Step, ...]
    blocked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
