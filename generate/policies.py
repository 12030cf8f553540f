"""The page that lists every policy."""

import json
from typing import Final

from hpkit_policies.model import Policy
from hpkit_policies.pack import POLICIES
from hpkit_policies.waivers import RunState, configuration_policy

__all__ = ["page"]

_HEAD: Final = """# Policies of the pack

This page is generated from the policies (`make generate`). How to run them, and how an organization sets levels,
parameters and waivers, is on the page [Policies](../guides/policies.md).

| policy | level | checks | demands |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    policies = (*POLICIES, configuration_policy(RunState()))
    rows = [
        f"| [{policy.name}](#{policy.name}) | {policy.level} | {_scope(policy)} | {policy.description} |"
        for policy in policies
    ]
    sections = [line for policy in policies for line in _section(policy)]
    return _HEAD + "\n".join([*rows, *sections]).replace("<", "&lt;") + "\n"


def _scope(policy: Policy) -> str:
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
