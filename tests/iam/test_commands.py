"""The rights of commands: known to AWS, and on the page as they are."""

from pathlib import Path

import pytest

from hpkit.iam.commands import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "live.md").read_text(encoding="utf-8").partition("## Rights")[2]


def row(name):
    rights = COMMANDS[name]
    verbs = {}
    for verb, resource in rights.kubernetes:
        verbs.setdefault(verb, []).append(f"`{resource}`")
    inside = "; ".join(f"{verb} {', '.join(resources)}" for verb, resources in verbs.items())
    return f"| `{name}` | {', '.join(f'`{each}`' for each in sorted(rights.iam))} | {inside} |"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_lists_the_rights_of_each_command(name):
    assert row(name) in PAGE.splitlines()


def test_the_page_lists_no_other_command():
    assert [line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `")] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_only_operations_write(name):
    verbs = {action.partition(":")[2] for action in COMMANDS[name].iam}
    writes = {verb for verb in verbs if not verb.startswith(("Describe", "List"))}
    assert bool(writes) == (name in {f"nodes {each}" for each in ("replace", "reboot", "delete", "update")})
