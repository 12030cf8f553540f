"""What an organization sets of the policy pack: the file that `--policy-pack-config` names for the engine."""

import json
from collections.abc import Mapping
from typing import Any

from hpkit.errors import InputError
from hpkit.plan.budgets import BUDGET_POLICY, Budget, budgets_of
from hpkit.project import project_root

__all__ = ["budgets", "budgets_in", "policy_file", "policy_settings", "read_settings"]


def policy_file(organization: str) -> str:
    """Return the name of an organization's policy file in the project."""
    return f"stacks/{organization}.policy.json"


def policy_settings(organization: str) -> tuple[str, str] | None:
    """Return name and text of an organization's policy file, None where it has none."""
    name = policy_file(organization)
    file = project_root() / name
    if not file.is_file():
        return None
    try:
        return name, file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name}: cannot be read ({error})") from None


def budgets(organization: str) -> tuple[Budget, ...]:
    """Return what an organization gives its teams and projects a month; none where its policy file says nothing.

    Raises InputError for a file that is wrong.
    """
    found = policy_settings(organization)
    return () if found is None else budgets_in(found[0], read_settings(*found))


def read_settings(name: str, text: str | bytes) -> Mapping[str, Any]:
    """Return what a policy file of that name sets, by policy; raises InputError for what is no object of JSON."""
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}:{error.lineno}:{error.colno}: it is no JSON: {error.msg}") from None
    except ValueError as error:
        raise InputError(f"{name}: it is no JSON: {error}") from None
    if not isinstance(data, Mapping):
        raise InputError(f"{name}: it is no JSON object of policy → settings")
    return data


def budgets_in(name: str, settings: Mapping[str, Any]) -> tuple[Budget, ...]:
    """Return what the settings of a policy file of that name give teams and projects; raises InputError."""
    parameters = settings.get(BUDGET_POLICY)
    # A level alone, or a policy that does not run, gives nobody anything.
    if not isinstance(parameters, Mapping) or parameters.get("enforcementLevel") == "disabled":
        return ()
    try:
        return budgets_of(parameters)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
