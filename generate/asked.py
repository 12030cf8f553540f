"""The AWS calls of the examples' deployments on the local cloud, and what the deployer's policies allow."""

from functools import cache

from hpkit.catalog import type_calls
from hpkit.plan.model import Plan
from hpkit.program.iam.deployer import actions_of, calling_types
from hpkit.program.iam.rules import actions_of_call
from hpkit.program.recording import record
from hpkit.project import load_stack, project_root

__all__ = ["FILE", "asked_actions", "asked_by_stack", "given_actions", "reasons"]

FILE = "tests/program/asked.txt"


def asked_by_stack() -> dict[str, set[str]]:
    """Return the operations, as `service:Operation`, with the stacks that called them; `all` means all stacks."""
    lines = (project_root() / FILE).read_text(encoding="utf-8").splitlines()
    return {name: set(stacks) for name, *stacks in (line.split() for line in lines if not line.startswith("#"))}


def asked_actions(stack: str) -> set[str]:
    """Return the IAM actions of every operation that up, a change, refresh and destroy of a stack called."""
    operations = {name for name, stacks in asked_by_stack().items() if stacks & {stack, "all"}}
    return {action for operation in operations for action in actions_of_call(operation)}


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
