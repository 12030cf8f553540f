"""The permissions of commands are valid AWS actions, and the help lists them."""

from pathlib import Path

import pytest
from botocore.loaders import Loader

from hpkit.program.iam.commands import COMMANDS
from tests.cli.invoke import hpkit
from tests.program.iam.authorization import is_action

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs" / "guides" / "live.md").read_text(encoding="utf-8").partition("## Permissions")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command_lists_its_rights(name):
    said = "".join(hpkit(*name.split(), "--help", cwd=PROJECT).stdout.split())
    needed = (*COMMANDS[name].iam, *(resource for _, resource in COMMANDS[name].kubernetes))
    assert [each for each in needed if each not in said.partition("IAMpermissions:")[2]] == []


# API operations that the reference doesn't have yet; the action is assumed to have the operation's name.
INFERRED = {"sagemaker:BatchRebootClusterNodes", "sagemaker:BatchReplaceClusterNodes"}


def test_every_action_is_in_the_service_authorization_reference_or_said_to_be_inferred():
    actions = {action for rights in COMMANDS.values() for action in rights.iam}
    assert {action for action in actions if not is_action(action)} == INFERRED
    model = Loader().load_service_model("sagemaker", "service-2")
    assert {action.partition(":")[2] for action in INFERRED} <= model["operations"].keys()
    assert all(f"`{action}`" in PAGE for action in INFERRED)


@pytest.mark.parametrize("name", COMMANDS)
def test_only_operations_write(name):
    verbs = {action.partition(":")[2] for action in COMMANDS[name].iam}
    writes = {verb for verb in verbs if not verb.startswith(("Describe", "List"))}
    assert bool(writes) == (name in {f"node {each}" for each in ("replace", "reboot", "delete", "update")})
