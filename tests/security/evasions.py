"""The page of ways around the policy pack and the validator: `python -m tests.security.evasions [--check]`."""

from collections import defaultdict
from pathlib import Path

from hpkit_policies.reference import write
from tests import builders as organizations
from tests.policies.builders import changed, happy, messages
from tests.security.test_evasions import ADDED, BY_NAME, CHANGED, FILES, HARMLESS, with_more

__all__ = ["PAGE", "judged", "page"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "evasions.md"
_HEAD = """# Ways around the policies

This page is generated (`python -m tests.security.evasions`): each way is written into a stack that breaks nothing, and
the policy pack, or the validator, is asked. How they are run: [Policies](../policies.md). What else is defended:
[Security](../security.md).

| who judges | tried | refused | let through |
|---|---|---|---|
"""
_VALIDATOR = "EKS001"


def judged():
    """Return each way by who judges it: its words, and whether it is refused."""
    found = defaultdict(dict)
    for way, (policy, part, path, value) in CHANGED.items():
        found[policy][way] = bool(messages(BY_NAME[policy], _with(part, path, value)))
    for way, (policy, more) in ADDED.items():
        found[policy][way] = bool(messages(BY_NAME[policy], with_more(more)))
    for way, ranges in FILES.items():
        data = organizations.organization()
        data["environments"]["dev"]["eks"]["endpoint"]["publicCidrs"] = ranges
        found[_VALIDATOR][f"publicCidrs of {way}"] = _VALIDATOR in organizations.rules(data)
    return dict(sorted(found.items()))


def _with(part, path, value):
    stack = happy()
    stack[part] = changed(stack[part], path, value)
    return stack


def page():
    """Return the page."""
    found = judged()
    harmless = [bool(messages(BY_NAME[policy], _with(*change))) for policy, *change in HARMLESS.values()]
    counts = {_linked(name): list(ways.values()) for name, ways in found.items()}
    counts["**all**"] = [each for ways in found.values() for each in ways.values()]
    rows = [f"| {name} | {len(each)} | {sum(each)} | {len(each) - sum(each)} |" for name, each in counts.items()]
    rows += ["", f"Of {len(harmless)} things that only look like it, {sum(harmless)} are refused."]
    for name, ways in found.items():
        rows += ["", f"## {name}", "", "| somebody writes | |", "|---|---|"]
        rows += [f"| {_plain(way)} | {'refused' if refused else 'let through'} |" for way, refused in ways.items()]
    return _HEAD + "\n".join(rows) + "\n"


def _plain(text):
    return text.replace("*", "\\*")


def _linked(name):
    return f"[{name}](rules.md#{name.lower()})" if name == _VALIDATOR else f"[{name}](policies.md#{name})"


if __name__ == "__main__":
    write(PAGE, page(), module="tests.security.evasions", description=__doc__)
