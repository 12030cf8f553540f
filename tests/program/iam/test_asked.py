"""Recorded calls of deployments, compared with the deployer's policies; and the permissions of commands."""

from functools import cache
from pathlib import Path

import pytest

from generate.examples import example_stacks
from hpkit.catalog import type_calls
from hpkit.plan.model import Plan
from hpkit.program.iam.commands import COMMANDS
from hpkit.program.iam.deployer import actions_of, calling_types
from hpkit.program.iam.rules import actions_of_call
from hpkit.program.recording import record
from hpkit.project import load_stack
from tests.cli.invoke import hpkit
from tests.program.asked import recorded
from tests.program.iam.authorization import dependent_actions, is_action

IN_CALLERS_NAME = "AWS asks for it in the caller's name"
# The same, from a document other than the Service Authorization Reference's dependent actions.
BY_OTHER_DOCUMENTS = {
    "iam:PassRole": "IAM user guide, granting permissions to pass a role to a service",
    "iam:CreateServiceLinkedRole": "IAM user guide, service-linked roles: made by the first cluster or file system",
    "iam:GetRole": "EKS user guide, EKS Pod Identity: who associates a role may read it",
    "kms:CreateGrant": "EKS user guide, encrypting secrets: the caller gives EKS its grant on the key",
    "kms:DescribeKey": "the same",
    "kms:RetireGrant": "ECR user guide, encryption at rest: of a repository that is deleted",
    "eks:DescribeAccessEntry": "SageMaker developer guide, setting up task governance",
    "eks:DisassociateAccessPolicy": "the same",
    # Sources: the managed policies AWSGrafanaWorkspacePermissionManagementV2 and AWSGrafanaAccountAdministrator, and
    # the SageMaker developer guide, setting up the observability add-on.
    **dict.fromkeys(
        (
            *("sso:AssociateProfile", "sso:DescribeRegisteredRegions", "sso:DisassociateProfile"),
            *("sso:GetManagedApplicationInstance", "sso:GetProfile", "sso:GetSharedSsoConfiguration"),
            *("sso:ListDirectoryAssociations", "sso:ListProfileAssociations", "sso:ListProfiles"),
            *("sso-directory:DescribeGroup", "sso-directory:DescribeUser"),
            *("sso-directory:SearchGroups", "sso-directory:SearchUsers"),
        ),
        "the managed policies for users of Managed Grafana",
    ),
}


def asked_actions(stack: str) -> set[str]:
    """Return the IAM actions of every operation that up, a change, refresh and destroy of a stack called."""
    return {action for operation in recorded(stack) for action in actions_of_call(operation)}


@cache
def _plan_and_types(stack: str) -> tuple[Plan, frozenset[str]]:
    (plan,) = load_stack(stack).plans.values()
    return plan, calling_types(each.type for each in record(plan).resources.values())


def given_actions(stack: str) -> frozenset[str]:
    """Return every IAM action that the deployer's policies of a stack allow."""
    return actions_of(*_plan_and_types(stack))


def reasons(stack: str) -> dict[str, str]:
    """Return why an action may be allowed that no step of a deployment called, by action.

    The order: AWS's calls in the caller's name, calls of the released plugin that the local cloud's doesn't make, and
    calls of changes that the recorded deployment didn't make.
    """
    _, types = _plan_and_types(stack)
    reasons_by_action: dict[str, str] = {}
    for token in sorted(types):
        for action in type_calls()[token].service:
            reasons_by_action.setdefault(action, f"AWS asks for it in the caller's name: `{token}`")
    for words, member in (("the released plugin asks for it", "more"), ("another change asks for it", "calls")):
        for token in sorted(types):
            resource_calls = type_calls()[token]
            for operation in getattr(resource_calls, member):
                for action in actions_of_call(f"{resource_calls.api}:{operation}"):
                    reasons_by_action.setdefault(action, f"{words}: `{token}` ({resource_calls.source})")
    return reasons_by_action


@pytest.mark.parametrize("stack", example_stacks())
def test_every_action_that_a_deployment_asked_for_is_allowed(stack):
    asked = asked_actions(stack)
    assert asked - given_actions(stack) == set()
    assert {"sagemaker:CreateCluster", "sagemaker:UpdateCluster", "sagemaker:DeleteCluster"} <= asked
    assert len(asked) > 90, "the deployment asked for far less than it must"


@pytest.mark.parametrize("stack", example_stacks())
def test_what_is_allowed_and_was_not_asked_for_has_its_reason(stack):
    assert given_actions(stack) - asked_actions(stack) - reasons(stack).keys() == set()


def test_what_aws_asks_for_in_the_callers_name_is_said_by_a_document():
    actions = set()
    for known in type_calls().values():
        own = {action for operation in known.operations() for action in actions_of_call(operation)}
        actions |= set(known.service) - {each for action in own for each in dependent_actions(action)}
    assert actions == BY_OTHER_DOCUMENTS.keys()


def test_a_reason_names_the_type_that_needs_the_action():
    assert reasons("handson-dev")["iam:PassRole"].startswith(IN_CALLERS_NAME)
    assert "aws:ec2/eip:Eip" in reasons("handson-dev")["ec2:DisassociateAddress"]


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
    assert {verb for verb in verbs if not verb.startswith(("Describe", "Get", "List"))} == set()
