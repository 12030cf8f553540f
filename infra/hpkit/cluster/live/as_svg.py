"""Draws a platform's network: nested boxes for network nodes, a square for each node.

The drawing is as wide as a phone, so that it needs no scaling there, and as high as necessary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from hpkit.cluster.live.topology import Branch, Leaf
from hpkit.text.plural import plural

__all__ = ["topology_svg"]

_WIDTH: Final = 368
_GAP, _LINE, _CELL, _BETWEEN = 6, 14, 20, 4
# Characters of the label's font in a box, by its width in pixels; a longer name ends in an ellipsis.
_CHARACTER: Final = 6.2
_STYLE: Final = (
    "text{font:10px ui-monospace,monospace;fill:#57606a}.box{fill:none;stroke:#8c959f}"
    ".node{fill:#eaeef2;stroke:#57606a}.used{fill:#0550ae}.lost{fill:none;stroke:#cf222e;stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#9ea7b3}.node{fill:#21262d;stroke:#9ea7b3}.used{fill:#58a6ff}}"
)


@dataclass(frozen=True, slots=True)
class _Drawn:
    height: float
    parts: tuple[str, ...]


def topology_svg(tree: Sequence[Branch]) -> str:
    """Return the drawing; each square is filled as far as its node's main resource is in use, red where not ready."""
    parts: list[str] = []
    top = float(_GAP)
    for branch in tree:
        drawn = _branch(branch, _GAP, top, _WIDTH - 2 * _GAP)
        parts += drawn.parts
        top += drawn.height + _GAP
    count = sum(1 for branch in tree for _ in branch.all_leaves())
    label = f"{plural(count, 'node')} by network layer; the filled part is in use"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top:g}" width="{_WIDTH}" height="{top:g}" '
        f'role="img" aria-label="{label}"><title>{label}</title><style>{_STYLE}</style>{"".join(parts)}</svg>'
    )


def _branch(branch: Branch, x: float, y: float, width: float) -> _Drawn:
    inner, below = width - 2 * _GAP, y + _LINE + _GAP
    parts: list[str] = []
    for child in branch.branches:
        drawn = _branch(child, x + _GAP, below, inner)
        parts += drawn.parts
        below += drawn.height + _GAP
    if branch.leaves:
        across = max(1, int((inner + _BETWEEN) // (_CELL + _BETWEEN)))
        parts += _squares(branch.leaves, x + _GAP, below, across)
        below += -(-len(branch.leaves) // across) * (_CELL + _BETWEEN) - _BETWEEN + _GAP
    height = below - y
    most = int(inner / _CHARACTER)
    name = branch.name if len(branch.name) <= most else f"{branch.name[: most - 1]}…"
    box = f'<rect class="box" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3"/>'
    text = f'<text x="{x + _GAP:g}" y="{y + _LINE:g}">{escape(name)}</text>'
    return _Drawn(height, (f"<g><title>{escape(branch.name)}</title>{box}{text}</g>", *parts))


def _squares(leaves: Sequence[Leaf], x: float, y: float, across: int) -> Iterator[str]:
    for number, leaf in enumerate(leaves):
        left, top = x + number % across * (_CELL + _BETWEEN), y + number // across * (_CELL + _BETWEEN)
        used = float(leaf.used / leaf.allocatable) if leaf.used is not None and leaf.allocatable else 0.0
        unknown = ' stroke-dasharray="2"' if leaf.used is None else ""
        filled = _CELL * min(1.0, used)
        cross = f'<path class="lost" d="M{left:g} {top:g}l{_CELL} {_CELL}m0 -{_CELL}l-{_CELL} {_CELL}"/>'
        square = f'x="{left:g}" width="{_CELL}"'
        yield (
            f"<g><title>{escape(_words(leaf))}</title>"
            f'<rect class="node" {square} y="{top:g}" height="{_CELL}"{unknown}/>'
            f'<rect class="used" {square} y="{top + _CELL - filled:g}" height="{filled:g}"/>'
            f"{'' if leaf.node.ready else cross}</g>"
        )


def _words(leaf: Leaf) -> str:
    state = "" if leaf.node.ready else ", not ready"
    tasks = f": {', '.join(sorted(leaf.tasks))}" if leaf.tasks else ""
    return f"{leaf.node.name}, {leaf.node.instance_type}, {leaf.node.zone}, {leaf.use_words}{state}{tasks}"
