"""Monthly budgets of teams and projects, and the cost of their reserved quota.

The policy `budget-of-teams`, `hpkit quota` and `hpkit review` count the reserved quota, including elastic quota, at
on-demand prices. If the prices of the stack's region aren't known, those of a near region are used.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal

from hpkit.catalog.prices import near_price
from hpkit.errors import InputError
from hpkit.plan.capacity import Amount, TypeQuota

__all__ = ["BUDGET_POLICY", "Budget", "Spent", "budget_cells", "budgets_of", "reserved_cost", "spent"]

# The policy whose settings contain an organization's budgets.
BUDGET_POLICY: Final = "budget-of-teams"


@dataclass(frozen=True, slots=True)
class Budget:
    """Maximum cost of the reserved quota of a team, or of a project's teams together, in US dollars a month."""

    kind: Literal["team", "project"]
    name: str
    teams: frozenset[str]
    monthly: Fraction

    @property
    def label(self) -> str:
        """Return its name: `team vision`."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Spent:
    """US dollars a month; unknown: types whose price is missing; about: regions whose prices replace missing ones.

    used: all regions whose prices count.
    """

    dollars: Fraction
    unknown: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    used: tuple[str, ...] = ()

    def exceeds(self, budget: Budget) -> bool:
        """Return whether the known cost alone exceeds the budget."""
        return self.dollars > budget.monthly


def budgets_of(parameters: Mapping[str, Any]) -> tuple[Budget, ...]:
    """Return the budgets in the policy's parameters `teams` and `projects`, teams first, by name.

    Raises InputError for invalid ones.
    """
    sections: dict[str, Mapping[str, Any]] = {}
    for key in ("teams", "projects"):
        section = parameters.get(key, {})
        if not isinstance(section, Mapping):
            raise InputError(f"{BUDGET_POLICY}: {key} is {section!r}; use a map from names to budgets")
        sections[key] = section
    return (
        *(_team(name, each) for name, each in sorted(sections["teams"].items())),
        *(_project(name, each) for name, each in sorted(sections["projects"].items())),
    )


def _team(name: str, given: Any) -> Budget:
    return Budget("team", name, frozenset({name}), _dollars(name, given))


def _project(name: str, project: Any) -> Budget:
    teams = project.get("teams") if isinstance(project, Mapping) else None
    if not isinstance(teams, list) or not teams or not all(isinstance(team, str) for team in teams):
        raise InputError(
            f'{BUDGET_POLICY}: the project {name} is {project!r}; write {{"teams": ["…"], "monthlyUsd": 150000}}'
        )
    return Budget("project", name, frozenset(teams), _dollars(name, project.get("monthlyUsd")))


def _dollars(name: str, monthly: Any) -> Fraction:
    if isinstance(monthly, bool) or not isinstance(monthly, int | float) or monthly < 0:
        raise InputError(f"{BUDGET_POLICY}: {name} has the budget {monthly!r}; use US dollars per month, such as 60000")
    return Fraction(str(monthly))


def reserved_cost(reserved: Iterable[tuple[str, Amount | None]], region: str | None) -> Spent:
    """Return the monthly cost of instances of types; None instances: the number isn't known."""
    dollars, unknown, used = Fraction(0), set[str](), set[str]()
    for name, instances in reserved:
        price = None if region is None else near_price(name, region)
        if price is None or instances is None:
            unknown.add(name)
            continue
        dollars += Fraction(price.monthly) * Fraction(instances)
        used.add(price.region)
    return Spent(dollars, tuple(sorted(unknown)), tuple(sorted(used - {region or ""})), tuple(sorted(used)))


def spent(table: Iterable[TypeQuota], teams: Collection[str], region: str) -> Spent:
    """Return the monthly cost of the teams' reserved quota of every instance type, including elastic quota."""
    reserved = [
        (quota.instance_type, Fraction(share.reserved) + Fraction(share.elastic))
        for quota in table
        for share in quota.teams
        if share.team in teams and (share.reserved or share.elastic)
    ]
    return reserved_cost(reserved, region)


def budget_cells(budget: Budget, cost: Spent) -> tuple[str, str, str]:
    """Return a text with a budget's cost, its limit, and the rest."""
    about = "about " if cost.about else ""
    least = "at least " if cost.unknown else ""
    left = round(budget.monthly) - round(cost.dollars)
    most = "at most " if cost.unknown else ""
    return f"{least}{about}{round(cost.dollars):,}", f"{round(budget.monthly):,}", f"{most}{about}{left:,}"
