"""What an organization sets of the policy pack: the file that `--policy-pack-config` names for the engine."""

import json
from collections.abc import Mapping
from typing import Any

from hpkit.errors import InputError
from hpkit.plan.budgets import BUDGET_POLICY, Budget, budgets_of
from hpkit.project import project_root

__all__ = ["budgets", "policy_settings"]


def policy_settings(organization: str) -> tuple[str, str] | None:
    """Return name and text of an organization's policy file, None where it has none."""
    file = project_root() / "stacks" / f"{organization}.policy.json"
    if not file.is_file():
        return None
    try:
        return str(file.relative_to(project_root())), file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file.relative_to(project_root())}: cannot be read ({error})") from None


def budgets(organization: str) -> tuple[Budget, ...]:
    """Return what an organization gives its teams and projects a month; none where its policy file says nothing.

    Raises InputError for a file that is wrong.
    """
    found = policy_settings(organization)
    if found is None:
        return ()
    name, text = found
    try:
        data: Any = json.loads(text)
        parameters = data.get(BUDGET_POLICY) if isinstance(data, Mapping) else None
        # A level alone, or a policy that does not run, gives nobody anything.
        if not isinstance(parameters, Mapping) or parameters.get("enforcementLevel") == "disabled":
            return ()
        return budgets_of(parameters)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}: it is no JSON: {error}") from None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
