"""The page that lists every policy, made from the policies: `python -m hpkit_policies.reference [--check]`."""

import argparse
import json
import sys
from pathlib import Path
from typing import Final

from hpkit_policies.model import Policy
from hpkit_policies.pack import POLICIES
from hpkit_policies.waivers import RunState, configuration_policy

__all__ = ["PAGE", "page", "write"]

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "policies.md"
_HEAD: Final = """# Policies of the pack

This page is generated from the policies (`python -m hpkit_policies.reference`). How to run them, and how
an organization sets levels, parameters and waivers, is on the page [Policies](../policies.md).

| policy | level | checks | demands |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    policies = (*POLICIES, configuration_policy(RunState()))
    rows = [f"| [{each.name}](#{each.name}) | {each.level} | {_kind(each)} | {each.description} |" for each in policies]
    sections = [line for each in policies for line in _section(each)]
    return _HEAD + "\n".join([*rows, *sections]).replace("<", "&lt;") + "\n"


def _kind(policy: Policy) -> str:
    return ("the stack" if policy.validate_stack else "each resource") + (", can remediate" if policy.remediate else "")


def _section(policy: Policy) -> list[str]:
    waiver = "Can be waived." if policy.waivable else "Cannot be waived."
    lines = ["", f"## {policy.name}", "", f"{policy.description} {waiver}"]
    if policy.types:
        lines += ["", "Checks " + ", ".join(f"`{each}`" for each in policy.types) + "."]
    if policy.parameters:
        lines += ["", "| parameter | default | meaning |", "|---|---|---|"]
        lines += [
            f"| `{each.name}` | `{json.dumps(each.default)}` | {each.description} |" for each in policy.parameters
        ]
    return lines


def write(file: Path, text: str, *, module: str, description: str | None) -> None:
    """Write a page, or with --check say with exit code 1 that it is out of date; module is what to run then."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is out of date")
    only_check = parser.parse_args().check
    if file.is_file() and file.read_text(encoding="utf-8") == text:
        return
    if only_check:
        sys.exit(f"{file} is out of date; run `python -m {module}`")
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(PAGE, page(), module="hpkit_policies.reference", description=__doc__)
