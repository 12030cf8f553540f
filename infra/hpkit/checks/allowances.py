"""ALW: whether what a file allows to be lost can be lost at all."""

from collections.abc import Iterator
from typing import Final

from hpkit.checks.registry import Context, Issue, Rule
from hpkit.plan.replace import parts_allowed, parts_of

__all__ = ["RULES"]

# Key of allowDelete → its field, and what one of them is called.
_PARTS: Final = {
    "teams": ("teams", "team"),
    "nodePools": ("node_pools", "NodePool"),
    "addons": ("addons", "add-on"),
    "natGateways": ("nat_gateways", "NAT gateway"),
}


def _staying(context: Context) -> Iterator[Issue]:
    for index, name in enumerate(context.spec.allow_delete.instance_groups):
        if name in context.group_paths:
            yield Issue(
                (*context.path, "allowDelete", "instanceGroups", index),
                f"allowDelete names the instance group {name}, which stays in cluster.instanceGroups",
                f"Remove {name} from allowDelete until the group leaves, or a later change may delete it unasked.",
            )
    for name in parts_allowed(context.plan):
        if name in parts_of(context.plan):
            kind, _, called = name.partition("/")
            key, what = _PARTS[kind]
            names = getattr(context.spec.allow_delete, key)
            yield Issue(
                (*context.path, "allowDelete", kind, names.index(called)),
                f"allowDelete names the {what} {called}, which stays",
                f"Remove {called} from allowDelete until the {what} leaves, or a later change may delete it unasked.",
            )


RULES = (
    Rule("ALW001", "warning", "allowDelete names only what leaves the file.", "Config contract", _staying),
)  # fmt: skip
