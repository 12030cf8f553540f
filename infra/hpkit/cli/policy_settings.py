"""What an organization's policy file gives teams and projects a month."""

from collections.abc import Mapping
from typing import Any

from hpkit.errors import InputError
from hpkit.plan.budgets import BUDGET_POLICY, Budget, budgets_of
from hpkit.project import policy_settings, read_settings

__all__ = ["budgets", "budgets_in"]


def budgets(organization: str) -> tuple[Budget, ...]:
    """Return what an organization gives its teams and projects a month; none where its policy file says nothing.

    Raises InputError for a file that is wrong.
    """
    found = policy_settings(organization)
    return () if found is None else budgets_in(found[0], read_settings(*found))


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
