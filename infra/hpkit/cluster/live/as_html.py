"""The state of a platform, and its topology, as pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpkit.cluster.live.as_svg import topology_svg
from hpkit.cluster.live.page import page
from hpkit.cluster.live.sections import Section, groups_section, pools_section, teams_section
from hpkit.cluster.live.status import Status, policy_words
from hpkit.cluster.live.topology import Branch, Placement
from hpkit.text.plural import plural

__all__ = ["status_html", "topology_html"]


def status_html(title: str, status: Status, differs: Sequence[str], *, failure: str = "") -> str:
    """Return the page of `hpkit cluster status`; title names stack and region; failure: why it's not a newer one."""
    observed = status.observed
    platform = observed.platform
    state = "not read" if platform is None else f"cluster {platform.name} is {platform.status}"
    return page(
        title,
        f"{state}; read at {observed.time:%Y-%m-%d %H:%M:%S} UTC",
        (
            Section("Couldn't be refreshed", lines=(failure,) if failure else (), grave=True),
            Section("Needs attention", lines=status.problems, grave=True),
            Section("Differs from the organization file", lines=differs, grave=True),
            Section("Couldn't be read", lines=observed.unknown, grave=True),
            groups_section(status),
            pools_section(status),
            teams_section(status),
            _waiting(status),
            Section("Cluster policy", lines=() if platform is None else (policy_words(platform),)),
            _addons(status),
            Section("Recent events", lines=tuple(_events(status))),
        ),
    )


def topology_html(title: str, tree: Sequence[Branch], places: Sequence[Placement]) -> str:
    """Return the page of `hpkit cluster topology`: the drawing, then where each task's pods sit, then every node."""
    leaves = [leaf for branch in tree for leaf in branch.all_leaves()]
    rows = [
        (
            leaf.node.name,
            leaf.node.instance_type,
            leaf.node.zone,
            leaf.use_words,
            "" if leaf.node.ready else "not ready",
            " / ".join(leaf.node.layers),
            ", ".join(sorted(leaf.tasks)),
        )
        for leaf in leaves
    ]
    where = [(f"{each.team}/{each.task}", str(each.pods), str(each.nodes), each.shared or "nothing") for each in places]
    return page(
        title,
        plural(len(leaves), "node"),
        (
            Section("Network", drawing=topology_svg(tree) if leaves else ""),
            Section("Tasks", head=("task", "pods", "nodes", "share"), rows=where, numbers=frozenset({1, 2})),
            Section("Nodes", head=("node", "type", "zone", "use", "state", "layers", "tasks"), rows=rows),
        ),
    )


def _waiting(status: Status) -> Section:
    rows = [
        (task.name, task.team, task.kind, str(task.priority), f"{task.seconds // 60} min", task.reason)
        for task in (*(each for team in status.teams for each in team.waiting), *status.unserved)
    ]
    head = ("task", "team", "kind", "priority", "waiting", "reason")
    return Section("Waiting tasks", head=head, rows=rows, numbers=frozenset({3}))


def _addons(status: Status) -> Section:
    platform = status.observed.platform
    addons = () if platform is None else platform.addons
    rows = [(each.name, each.version, each.status, "; ".join(each.issues)) for each in addons]
    return Section("Add-ons", head=("add-on", "version", "status", "issues"), rows=rows)


def _events(status: Status) -> Iterable[str]:
    platform = status.observed.platform
    for event in () if platform is None else platform.events:
        yield f"{event.time:%Y-%m-%d %H:%M:%S}, {event.about}: {event.description}"
