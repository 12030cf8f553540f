"""The monthly budgets of teams and projects in an organization's policy file."""

from collections.abc import Mapping
from typing import Any

from hpkit.errors import InputError
from hpkit.plan.budgets import BUDGET_POLICY, Budget, budgets_of
from hpkit.project import policy_settings, read_settings

__all__ = ["budgets", "budgets_in"]


def budgets(organization: str) -> tuple[Budget, ...]:
    """Return the monthly budgets of an organization's teams and projects; empty if its policy file sets none.

    Raises InputError for an invalid file.
    """
    found = policy_settings(organization)
    return () if found is None else budgets_in(found[0], read_settings(*found))


def budgets_in(name: str, settings: Mapping[str, Any]) -> tuple[Budget, ...]:
    """Return the budgets in the settings of a policy file with that name. Raises InputError."""
    parameters = settings.get(BUDGET_POLICY)
    # A level alone, or a disabled policy, sets no budget.
    if not isinstance(parameters, Mapping) or parameters.get("enforcementLevel") == "disabled":
        return ()
    try:
        return budgets_of(parameters)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
