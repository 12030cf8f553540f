"""The permissions of commands are valid AWS actions, and the help lists them."""

from pathlib import Path

import pytest

from hpkit.program.iam.commands import COMMANDS
from tests.cli.invoke import hpkit
from tests.program.iam.authorization import is_action

PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command_lists_its_rights(name):
    said = "".join(hpkit(*name.split(), "--help", cwd=PROJECT).stdout.split())
    needed = (*COMMANDS[name].iam, *(resource for _, resource in COMMANDS[name].kubernetes))
    assert [each for each in needed if each not in said.partition("IAMpermissions:")[2]] == []


def test_every_action_is_in_the_service_authorization_reference():
    actions = {action for rights in COMMANDS.values() for action in rights.iam}
    assert {action for action in actions if not is_action(action)} == set()


def test_no_command_writes():
    verbs = {action.partition(":")[2] for rights in COMMANDS.values() for action in rights.iam}
    assert {verb for verb in verbs if not verb.startswith(("Describe", "List"))} == set()
