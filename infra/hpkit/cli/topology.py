"""`hpkit cluster topology`: the nodes by the layers of the network, and how far apart the pods of a task sit."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

import click

from hpkit.cli.documents import json_document
from hpkit.cli.formats import Output, folded, output_options, width
from hpkit.cli.inputs import choose_stack
from hpkit.cli.live_common import observe, platform_options, rights
from hpkit.cli.tables import columns
from hpkit.errors import ToolError
from hpkit.text.plural import plural

if TYPE_CHECKING:
    from hpkit.cluster.live.topology import Branch, Leaf, Placement

__all__ = ["Topology", "command"]


class _Node(TypedDict):
    name: str
    instanceType: str
    instanceGroup: str
    zone: str
    ready: bool
    resource: Annotated[str, "Resource that `allocatable` and `used` count."]
    allocatable: float
    used: float | None
    tasks: Annotated[dict[str, int], "Pods of each task."]


class _Branch(TypedDict):
    """A network node, with what is below it."""

    name: str
    level: int
    branches: list[_Branch]
    nodes: list[_Node]


class _Placement(TypedDict):
    task: str
    team: str
    pods: int
    nodes: int
    sharedLevel: Annotated[int, "Layer of the nearest network node that all pods share; 0: none, 4: one node."]
    shared: str | None


class Topology(TypedDict):
    """Nodes by network layer, and how close the pods of each task are."""

    tree: list[_Branch]
    tasks: list[_Placement]


@click.command("topology", epilog=rights("cluster topology"))
@platform_options
@output_options("text", "table", "mermaid", "json", "svg", "html", documents=("hpkit.cli.topology:Topology",))
def command(stack: str | None, profile: str | None) -> Output:
    """Show the nodes by network layer (`topology.k8s.aws/network-node-layer-1` to `-3`).

    Each node is shown with its type, zone, use and tasks. Each task is shown with the nearest network node that all of
    its pods share.
    """
    from hpkit.cluster.live.topology import placements, tree_of

    plan = choose_stack(stack)
    observed = observe(plan, profile, aws=(), quotas=False)
    if "nodes" in observed.unread:
        raise ToolError("the nodes couldn't be read. Use a role that can list nodes, such as one in eks.viewers")
    tree, places = tree_of(observed), placements(observed)
    return Output(
        text=lambda: "\n".join([*_tree(tree), *_sentences(places)]),
        table=lambda: "\n".join([_table(tree), *_sentences(places)]),
        mermaid=lambda: "\n".join(_mermaid(tree, places)),
        json=lambda: json_document(Topology, tree=[*map(_branch, tree)], tasks=[*map(_placement, places)]),
        svg=lambda: _svg(tree),
        html=lambda: _html(f"{plan.stack}: nodes by network layer", tree, places),
    )


def _svg(tree: Sequence[Branch]) -> str:
    from hpkit.cluster.live.as_svg import topology_svg

    return topology_svg(tree)


def _html(title: str, tree: Sequence[Branch], places: Sequence[Placement]) -> str:
    from hpkit.cluster.live.as_html import topology_html  # the text doesn't need a template engine

    return topology_html(title, tree, places)


def _sentences(places: Iterable[Placement]) -> Iterable[str]:
    for place in places:
        yield folded(_sentence(place), "    ", "") if sys.stdout.isatty() else _sentence(place)


def _branch(branch: Branch) -> _Branch:
    return {
        "name": branch.name,
        "level": branch.level,
        "branches": [_branch(each) for each in branch.branches],
        "nodes": [
            {
                "name": leaf.node.name,
                "instanceType": leaf.node.instance_type,
                "instanceGroup": leaf.node.group,
                "zone": leaf.node.zone,
                "ready": leaf.node.ready,
                "resource": leaf.resource,
                "allocatable": float(leaf.allocatable),
                "used": None if leaf.used is None else float(leaf.used),
                "tasks": dict(leaf.tasks),
            }
            for leaf in branch.leaves
        ],
    }


def _placement(place: Placement) -> _Placement:
    return {
        "task": place.task,
        "team": place.team,
        "pods": place.pods,
        "nodes": place.nodes,
        "sharedLevel": place.level,
        "shared": place.shared,
    }


def _sentence(place: Placement) -> str:
    pods = plural(place.pods, "pod")
    where = {
        0: "with no common network node",
        4: f"on one node, {place.shared}",
    }.get(place.level, f"on {plural(place.nodes, 'node')} under {place.shared} (layer {place.level})")
    return f"{place.team}/{place.task}: {pods} {where}"


def _use(leaf: Leaf) -> str:
    tasks = ", ".join(sorted(leaf.tasks))
    return _amounts(leaf) + (f": {tasks}" if tasks else "")


def _amounts(leaf: Leaf) -> str:
    return leaf.use_words + ("" if leaf.node.ready else ", not ready")


def _tree(tree: Iterable[Branch]) -> Iterable[str]:
    for branch in tree:
        yield branch.name
        yield from _lines(branch, "")


def _lines(branch: Branch, indent: str) -> Iterable[str]:
    last = len(branch.branches) + len(branch.leaves) - 1
    for number, each in enumerate(branch.branches):
        yield f"{indent}{'└── ' if number == last else '├── '}{each.name}"
        yield from _lines(each, indent + ("    " if number == last else "│   "))
    for number, leaf in enumerate(branch.leaves, len(branch.branches)):
        stem, below = ("└── ", "    ") if number == last else ("├── ", "│   ")
        name, details = f"{indent}{stem}{leaf.node.name}", f"{leaf.node.instance_type} {leaf.node.zone}  {_use(leaf)}"
        if sys.stdout.isatty() and len(f"{name}  {details}") > width():
            yield name
            yield folded(details, f"{indent}{below}  ", f"{indent}{below}")
        else:
            yield f"{name}  {details}"


def _table(tree: Iterable[Branch]) -> str:
    rows = [("node", "type", "zone", "layer 1", "layer 2", "layer 3", "use")]
    for branch in tree:
        for leaf in branch.all_leaves():
            first, second, third = (*leaf.node.layers, "", "", "")[:3]
            rows.append((leaf.node.name, leaf.node.instance_type, leaf.node.zone, first, second, third, _use(leaf)))
    return columns(rows)


def _mermaid(tree: Iterable[Branch], places: Iterable[Placement]) -> Iterable[str]:
    """Yield the tree, and each task next to the nearest network node that all of its pods share."""
    yield "flowchart TD"
    for branch in tree:
        yield from _boxes(branch)
    for place in places:
        name = _id(f"task {place.team}/{place.task}")
        yield f'  {name}(["{_sentence(place)}"])'
        if place.shared is not None:
            yield f"  {name} -.- {_id(place.shared)}"


def _boxes(branch: Branch) -> Iterable[str]:
    yield f'  {_id(branch.name)}["{branch.name}"]'
    for each in branch.branches:
        yield f"  {_id(branch.name)} --> {_id(each.name)}"
        yield from _boxes(each)
    for leaf in branch.leaves:
        pods = ", ".join(f"{name} ({plural(count, 'pod')})" for name, count in sorted(leaf.tasks.items()))
        about = (leaf.node.name, f"{leaf.node.instance_type} {leaf.node.zone}", _amounts(leaf), pods)
        yield f'  {_id(branch.name)} --> {_id(leaf.node.name)}["{"<br/>".join(each for each in about if each)}"]'


def _id(name: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in name)
