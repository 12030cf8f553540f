"""ALW: whether what a file allows to be lost can be lost at all."""

from collections.abc import Iterator

from hpkit.checks.registry import Context, Issue, Rule

__all__ = ["RULES"]


def _staying_groups(context: Context) -> Iterator[Issue]:
    for index, name in enumerate(context.spec.allow_delete.instance_groups):
        if name in context.group_paths:
            yield Issue(
                (*context.path, "allowDelete", "instanceGroups", index),
                f"allowDelete names the instance group {name}, which stays in cluster.instanceGroups",
                f"Remove {name} from allowDelete until the group leaves, or a later change may delete it unasked.",
            )


RULES = (
    Rule("ALW001", "warning", "allowDelete names only groups that leave the file.", "Config contract", _staying_groups),
)  # fmt: skip
