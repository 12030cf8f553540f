"""ALW: whether allowances in the file can have an effect."""

from collections.abc import Iterator
from typing import Final

from hpkit.checks.rule import Context, Issue, Rule
from hpkit.plan.protected import parts_of

__all__ = ["RULES"]

# The name of one entry, by the key of allowDelete.
_PARTS: Final = {
    "teams": "team",
    "nodePools": "NodePool",
    "addons": "add-on",
    "natGateways": "NAT gateway",
    "repositories": "repository",
}


def _staying(context: Context) -> Iterator[Issue]:
    for index, name in enumerate(context.spec.allow_delete.instance_groups):
        if name in context.group_paths:
            yield Issue(
                (*context.path, "allowDelete", "instanceGroups", index),
                f"allowDelete lists the instance group `{name}`, which is still in "
                f"cluster.{context.group_paths[name][-2]}",
                f"Remove `{name}` from allowDelete until you remove the group; otherwise a later change can delete it "
                "without a warning.",
            )
    parts = parts_of(context.plan)
    named = context.spec.allow_delete.model_dump(by_alias=True, exclude={"instance_groups"})
    for section, names in named.items():
        for index, name in enumerate(names):
            if f"{section}/{name}" in parts:
                yield Issue(
                    (*context.path, "allowDelete", section, index),
                    f"allowDelete lists the {_PARTS[section]} `{name}`, which is still in the file",
                    f"Remove `{name}` from allowDelete until you remove the {_PARTS[section]}; otherwise a later "
                    "change can delete it without a warning.",
                )


RULES = (
    Rule(
        "ALW001",
        "warning",
        "allowDelete lists only what the file no longer contains.",
        "hpkit configuration reference",
        _staying,
    ),
)
