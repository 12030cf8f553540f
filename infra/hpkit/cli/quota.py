"""`hpkit quota`: capacity, and every team's part of it."""

from fractions import Fraction
from typing import Annotated, TypedDict

import click

from hpkit.catalog.prices import near_monthly_cost, price_note
from hpkit.cli.completion import stacks_option
from hpkit.cli.documents import json_document
from hpkit.cli.formats import Output, output_options
from hpkit.cli.inputs import plans_of
from hpkit.cli.tables import console, grid
from hpkit.plan.capacity import TeamShare, TypeQuota, rounding
from hpkit.plan.derive import quotas_of
from hpkit.plan.model import Plan, RestrictedGroupPlan
from hpkit.project import select
from hpkit.text.formatting import amount, json_number

__all__ = ["QuotaList", "command"]


class _Share(TypedDict):
    """A team's part of an instance type, in instances."""

    team: str
    reserved: int | float
    elastic: int | float
    borrowLimit: int | float
    borrowable: Annotated[int | float, "The limit, or what other teams can lend if that is less."]
    lendable: int | float
    monthlyUsd: Annotated[int | None, "On-demand price of the quota; null: the catalog has no price."]
    pricesOf: Annotated[
        str | None, "Region of the price. If it's another region than the stack's, the price is approximate."
    ]


class _TypeQuota(TypedDict):
    instanceType: str
    guaranteed: int
    maximum: Annotated[int | None, "null: no NodePool limit bounds it."]
    unreserved: int | float
    teams: list[_Share]


class _RestrictedGroup(TypedDict):
    name: str
    instanceType: str
    instanceCount: int


class _Quota(TypedDict):
    stack: str
    types: list[_TypeQuota]
    restrictedInstanceGroups: list[_RestrictedGroup]


class QuotaList(TypedDict):
    """Capacity of each stack, and each team's share of it."""

    items: list[_Quota]


@click.command("quota")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@stacks_option()
@output_options("text", "json", documents=("hpkit.cli.quota:QuotaList",))
def command(files: tuple[str, ...], stacks: tuple[str, ...]) -> Output:
    """Show capacity and each team's share of it, in instances.

    For each instance type: guaranteed, maximum and unreserved capacity. For each team: reserved and elastic quota, and
    the on-demand price of its quota per month. Also shows how much each team can borrow (its limit, or what others can
    lend) and lend. Restricted instance groups are listed separately, because no quota counts them.
    """
    tables = [(plan, quotas_of(plan)) for plan in plans_of(select(files, stacks))]

    def text() -> None:
        for plan, table in tables:
            _print(plan, table)

    return Output(text=text, json=lambda: json_document(QuotaList, items=[_quota(*each) for each in tables]))


def _quota(plan: Plan, table: tuple[TypeQuota, ...]) -> _Quota:
    return {
        "stack": plan.stack,
        "types": [_as_dict(plan, quota) for quota in table],
        "restrictedInstanceGroups": [_restricted(group) for group in plan.restricted_groups],
    }


def _as_dict(plan: Plan, quota: TypeQuota) -> _TypeQuota:
    return {
        "instanceType": quota.instance_type,
        "guaranteed": quota.capacity.guaranteed,
        "maximum": quota.capacity.maximum,
        "unreserved": json_number(quota.unreserved),
        "teams": [
            {
                "team": share.team,
                "reserved": json_number(share.reserved),
                "elastic": json_number(share.elastic),
                "borrowLimit": json_number(share.borrow_limit),
                "borrowable": json_number(share.borrowable),
                "lendable": json_number(share.lendable),
                "monthlyUsd": None if (cost := _cost(plan, quota, share)) is None else cost[0],
                "pricesOf": None if cost is None else cost[1],
            }
            for share in quota.teams
        ],
    }


def _rounded(plan: Plan, quota: TypeQuota) -> list[str]:
    """Return a line for each share of an instance type that was rounded."""
    lines = [
        f"{team.name}: {line}"
        for team in plan.teams
        for resource in team.quota_resources
        if resource.instance_type == quota.instance_type and (line := rounding(resource, quota.capacity))
    ]
    end = "Shares are rounded down; remaining instances go to the shares with the largest fractions."
    return [*lines, end] if lines else []


def _restricted(group: RestrictedGroupPlan) -> _RestrictedGroup:
    spec = group.spec
    return {"name": spec.name, "instanceType": spec.instance_type, "instanceCount": spec.instance_count}


def _cost(plan: Plan, quota: TypeQuota, share: TeamShare) -> tuple[int, str] | None:
    """Return the monthly on-demand cost of a team's quota, including elastic quota, in US dollars, and its region.

    None if it isn't known.
    """
    reserved = Fraction(share.reserved) + Fraction(share.elastic)
    return near_monthly_cost(quota.instance_type, plan.spec.region, reserved)


def _print(plan: Plan, table: tuple[TypeQuota, ...]) -> None:
    paper = console()
    paper.print(f"[bold]{plan.stack}[/] ({plan.spec.region}), in instances")
    used: set[str] = set()
    for quota in table:
        capacity = quota.capacity
        maximum = "unbounded" if capacity.maximum is None else str(capacity.maximum)
        title = (
            f"{quota.instance_type}: {capacity.guaranteed} guaranteed, {maximum} at most, "
            f"{amount(quota.unreserved)} unreserved"
        )
        if not quota.teams:
            paper.print(f"[bold]{title}[/] (no team has quota for it)\n")
            continue
        paper.print(f"[bold]{title}[/]")
        elastic = any(share.elastic for share in quota.teams)
        rows = grid("team", "reserved", *(("elastic",) if elastic else ()), "may borrow", "lends", "US$ a month")
        for share in quota.teams:
            cells = [amount(share.reserved), *([amount(share.elastic)] if elastic else [])]
            dollars, prices_of = _cost(plan, quota, share) or (None, "")
            used.update({prices_of} - {""})
            near = "" if prices_of == plan.spec.region else "about "
            cells += [amount(share.borrowable), amount(share.lendable)]
            cells.append("unknown" if dollars is None else f"{near}{dollars:,}")
            rows.add_row(share.team, *cells)
        paper.print(rows)
        for line in _rounded(plan, quota):
            paper.print(line)
    is_unknown = any(_cost(plan, quota, share) is None for quota in table for share in quota.teams)
    if note := price_note(plan.spec.region, used, is_unknown=is_unknown):
        paper.print(note)
    for group in plan.restricted_groups:
        spec = group.spec
        paper.print(f"{spec.name}, restricted: {spec.instance_count} × {spec.instance_type}, not counted by any quota")
