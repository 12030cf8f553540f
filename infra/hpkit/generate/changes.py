"""`python -m hpkit.generate.changes`: the page that says of every key what an edit of it does."""

import argparse
import gc
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from hpkit.changes import GUARDED_TYPES, UNGUARDED_TYPES
from hpkit.generate.key_changes import Outcome, outcomes
from hpkit.plan.names import short_type
from hpkit.project import project_root

__all__ = ["PAGE", "examples", "page", "unexplained"]

_KINDS = ("refused", "lost", "in place", "nothing", "invalid")
_UNSAID = ("pulumi:", "hyperpod:index:ChangeGuard")
PAGE = "docs/reference/changes.md"
_HEAD = """# What a change of each key does

This page is generated: every key of the example organizations in [stacks/](../../stacks) is edited, one at a time, to
another value that it could hold (a list loses each item, a section that may be absent is taken out), and each edit is
checked in the order of a preview: first the validator, then the guards, then what the engine does. `[]` is an item of
a list, `<name>` a name that people give. Where items and examples differ, each outcome stands.

What one key alone may not do may be possible with others: a region with all its zones, say, replaces everything, and is
refused for that. What your own change does, `hpkit review` says; this page says what to expect.
"""
_KEPT = """
## What is refused

These are never replaced or deleted unless `allowReplace` names them:

{rows}

An instance group with nodes is never deleted unless `allowDelete.instanceGroups` names it; a team's quota unless
`allowDelete.teams` does, a NodePool (`nodePools`), an add-on (`addons`) and a NAT gateway (`natGateways`) likewise, and
with each what hangs on it: rights, roles, addresses. What the service refuses to change on a group that exists is
refused at preview, whatever the file allows: give the group a new name.
"""


def examples() -> list[Path]:
    """Return the organization files of the examples."""
    folder = project_root() / "stacks"
    return sorted(file for file in folder.glob("*.yaml") if not file.name.startswith("Pulumi."))


def page(found: Iterable[Outcome]) -> str:
    """Return the page: one row per key, what goes without being refused, what is refused."""
    rows: dict[tuple[str, str], list[Outcome]] = {}
    for each in found:
        rows.setdefault((each.edit.key, each.edit.how), []).append(each)
    lines = [_HEAD, "## Keys", "", "| key | edit | what it does |", "|---|---|---|"]
    lines += [f"| `{key}` | {how} | {_said(group)} |" for (key, how), group in rows.items()]
    lines += ["", "## What goes without being refused", "", "| type | what that means |", "|---|---|"]
    lines += [f"| `{token}` | {reason} |" for token, reason in UNGUARDED_TYPES.items()]
    kept = "\n".join(
        ["| type | name |", "|---|---|", *(f"| `{token}` | `{key}` |" for token, key in GUARDED_TYPES.items())]
    )
    lines += [_KEPT.format(rows=kept).rstrip()]
    return "\n".join(lines) + "\n"


def _said(group: Sequence[Outcome]) -> str:
    """Return what the edits of one key do, each outcome once, the gravest first."""
    by_kind = {kind: [each for each in group if each.kind == kind] for kind in _KINDS}
    said: dict[str, str] = {
        "refused": f"**refused at preview**: {', '.join(_refusals(by_kind['refused']))}",
        "lost": _actions(by_kind["lost"]),
        "in place": f"in place: {_actions(by_kind['in place']) or 'the plan alone'}",
        "nothing": "nothing",
        "invalid": f"refused by `hpkit validate`: {_rules(by_kind['invalid'])}",
    }
    return "; or ".join(said[kind] for kind in _KINDS if by_kind[kind])


def _rules(found: Sequence[Outcome]) -> str:
    return ", ".join(sorted({rule for each in found for rule in each.rules}))


def _refusals(found: Sequence[Outcome]) -> list[str]:
    refused = (decision for each in found if each.change for decision in each.change.decisions if decision.refused)
    return list(dict.fromkeys(_code(each.code, each.reason) for each in refused))


def _actions(found: Sequence[Outcome]) -> str:
    steps = [step for each in found if each.change for step in each.change.steps if step.custom and not step.retained]
    parts = []
    for action in ("replace", "delete", "update", "create"):
        own = [step.type for step in steps if step.action == action and not step.type.startswith(_UNSAID)]
        kinds = sorted({short_type(token) for token in own})
        parts += [f"{action}s {', '.join(kinds)}"] if kinds else []
    return "; ".join(parts)


def _code(code: str, reason: str) -> str:
    """Return a refusal in a few words; what the service refuses is named by its property."""
    return f"{reason.partition(' of instance group ')[0]} of a group that exists" if code == "refused" else code


def unexplained(found: Iterable[Outcome]) -> set[str]:
    """Return the types that an edit replaces or deletes, that no guard refuses, and that nothing is said of."""
    kinds = {step.type for each in found if each.kind == "lost" and each.change for step in each.change.lost}
    return kinds - UNGUARDED_TYPES.keys()


def main() -> int:
    """Write the page, or check it; exit 1 when it is out of date."""
    parser = argparse.ArgumentParser(prog="python -m hpkit.generate.changes", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is out of date")
    check = parser.parse_args().check
    # Hundreds of recordings leave much behind, and looking for it costs a third of the time.
    gc.disable()
    text = page([each for file in examples() for each in outcomes(file)])
    path = project_root() / PAGE
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return 0
    if check:
        sys.stderr.write(f"out of date: {PAGE}; run `python -m hpkit.generate.changes`\n")
        return 1
    path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
