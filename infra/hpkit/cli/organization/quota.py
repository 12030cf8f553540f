"""`hpkit quota`: capacity, and every team's part of it."""

from fractions import Fraction

import click
from pydantic import AliasPath, Field

from hpkit.catalog.prices import near_monthly_cost, price_note
from hpkit.cli.common.completion import complete_teams, stacks_option
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, folded, output_options
from hpkit.cli.common.inputs import plans_of
from hpkit.cli.common.tables import console, grid
from hpkit.config import Path, format_path
from hpkit.config.reading.document import value_at
from hpkit.errors import SelectionError
from hpkit.plan.capacity import TeamShare, TypeQuota, rounding
from hpkit.plan.derive import quotas_of
from hpkit.plan.model import Plan, TeamPlan
from hpkit.project import Loaded, select
from hpkit.text.document import Document, Exact
from hpkit.text.formatting import amount, listing
from hpkit.text.spelling import hint

__all__ = ["QuotaList", "command"]


class _Share(Document):
    """A team's part of an instance type, in instances."""

    team: str
    quota: Exact = Field(validation_alias="reserved", description="Without elastic quota.")
    elastic: Exact
    borrow_limit: Exact
    borrowable: Exact = Field(description="The limit, or what other teams can lend if that is less.")
    lendable: Exact
    monthly_usd: int | None = Field(None, description="On-demand price of the quota; null: the catalog has no price.")
    prices_of: str | None = Field(
        None, description="Region of the price. If it's another region than the stack's, the price is approximate."
    )


class _TypeQuota(Document):
    instance_type: str
    permanent: int = Field(validation_alias=AliasPath("capacity", "permanent"))
    maximum: int | None = Field(
        validation_alias=AliasPath("capacity", "maximum"), description="null: no NodePool limit bounds it."
    )
    unallocated: Exact
    teams: list[_Share]


class _RestrictedGroup(Document):
    name: str = Field(validation_alias=AliasPath("spec", "name"))
    instance_type: str = Field(validation_alias=AliasPath("spec", "instance_type"))
    instance_count: int = Field(validation_alias=AliasPath("spec", "instance_count"))


class _Team(Document):
    name: str
    namespace: str
    queue: str
    members: list[str]
    user_ids: list[int] = Field(description="First and last ID of its pods' users on a shared file system.")
    activation_state: str
    strategy: str
    fair_share_weight: int
    preempt_team_tasks: str
    priority_classes: dict[str, int]
    set_in: list[str] = Field(description="Key of the organization file, with file, line and column.")


class _Quota(Document):
    stack: str
    team: _Team | None = Field(description="The team that --team names; null without it.")
    types: list[_TypeQuota]
    restricted_instance_groups: list[_RestrictedGroup]


class QuotaList(Document):
    """Capacity of each stack, and each team's share of it."""

    items: list[_Quota]


@click.command("quota")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@stacks_option()
@click.option(
    "--team",
    metavar="T",
    shell_complete=complete_teams,
    help="Only this team's instance types; also its lenders, borrowers, queue and settings.",
)
@output_options("text", "json", documents=("hpkit.cli.organization.quota:QuotaList",))
def command(files: tuple[str, ...], stacks: tuple[str, ...], team: str | None) -> Output:
    """Show capacity and each team's share of it, in instances.

    For each instance type: permanent, maximum and unallocated capacity. For each team: quota and elastic quota, and
    the on-demand price of its quota per month. Also shows how much each team can borrow (its limit, or what others can
    lend) and lend. Restricted instance groups are listed separately, because no quota counts them.
    """
    loaded = select(files, stacks)
    plans = plans_of(loaded)
    chosen = plans if team is None else [plan for plan in plans if team in {each.name for each in plan.teams}]
    if team is not None and not chosen:
        known = sorted({each.name for plan in plans for each in plan.teams})
        raise SelectionError(f"no team {team} has an allocation in governance.allocations; {hint(team, known)}")
    files_by_stack = {plan.stack: each for each in loaded for plan in each.plans.values()}
    tables = [
        (plan, tuple(quota for quota in quotas_of(plan) if team is None or _share_of(team, quota) is not None))
        for plan in chosen
    ]
    details = {
        plan.stack: _team(files_by_stack[plan.stack], plan, each)
        for plan in chosen
        for each in plan.teams
        if each.name == team
    }

    def text() -> None:
        for plan, table in tables:
            _print(plan, table)
            if team is not None:
                _print_team(plan, details[plan.stack], table)

    return Output(
        text=text,
        json=lambda: json_document(
            QuotaList(items=[_quota(plan, table, details.get(plan.stack)) for plan, table in tables])
        ),
    )


def _share_of(team: str, quota: TypeQuota) -> TeamShare | None:
    return next((share for share in quota.teams if share.team == team), None)


def _team(loaded: Loaded, plan: Plan, team: TeamPlan) -> _Team:
    document, policy = loaded.document, plan.policy
    governance: Path = ("environments", plan.environment, "governance")
    paths: list[Path] = [
        ("teams", index)
        for index, each in enumerate(value_at(document.data, ("teams",)) or ())
        if value_at(each, ("name",)) == team.name
    ]
    paths += [(*governance, key, team.name) for key in ("allocations", "overrides")]
    marks = [(path, document.locate(path)) for path in paths if value_at(document.data, path) is not None]
    classes = policy.priority_classes if policy is not None and policy.task_prioritization == "Rank" else ()
    return _Team(
        name=team.name,
        namespace=team.namespace,
        queue=team.local_queue,
        members=list(team.spec.members),
        user_ids=[team.user_ids.start, team.user_ids.stop - 1],
        activation_state=team.spec.activation_state,
        strategy=team.spec.sharing.strategy,
        fair_share_weight=team.spec.fair_share_weight,
        preempt_team_tasks=team.spec.preempt_team_tasks,
        priority_classes={each.name: each.weight for each in classes},
        set_in=[
            f"{format_path(path, document.data)}: {mark.file or loaded.file}:{mark.line}:{mark.column}"
            for path, mark in marks
        ],
    )


def _print_team(plan: Plan, team: _Team, table: tuple[TypeQuota, ...]) -> None:
    """Print from which teams a team borrows and to which it lends, and its queue and settings."""
    weights = {each.name: each.spec.fair_share_weight for each in plan.teams if not each.is_shared_pool}
    lines = [f"queue {team.queue} in namespace {team.namespace}, user IDs {team.user_ids[0]} and higher"]
    lines.append(f"members: {listing(team.members) or 'none'}")
    if team.activation_state == "Disabled":
        lines.append("paused (activationState: Disabled): its queue admits no jobs, and lends as below")
    for quota in table:
        own = _share_of(team.name, quota)
        assert own is not None  # noqa: S101 - the table has only types with a share
        others = [share for share in quota.teams if share.team != team.name]
        # Others may have only what its limit doesn't cover, such as other MIG profiles.
        usable = own.borrowable or not own.borrow_limit
        lenders = listing([f"{share.team} {amount(share.lendable)}" for share in others if share.lendable and usable])
        borrowers = listing([share.team for share in others if share.borrowable and own.lendable])
        lines.append(
            f"{quota.instance_type}: borrows {amount(own.borrowable)} at most (strategy {team.strategy}, limit "
            f"{amount(own.borrow_limit)}); others lend: {lenders or 'none'}"
        )
        lines.append(f"{quota.instance_type}: lends {amount(own.lendable)} at most, to: {borrowers or 'none'}")
    same = {share.team for quota in table for share in quota.teams if share.borrowable} | {team.name}
    lines.append(
        "fair-share weights: " + listing([f"{name} {weights[name]}" for name in sorted(same & weights.keys())])
    )
    classes = listing([f"{name} {weight}" for name, weight in team.priority_classes.items()])
    lines.append(f"priority classes: {classes or 'none'}; preempts its own jobs: {team.preempt_team_tasks}")
    lines += [f"set in {place}" for place in team.set_in]
    click.echo("\n".join([team.name, *(folded(line, "    ", "  ") for line in lines)]))


def _quota(plan: Plan, table: tuple[TypeQuota, ...], team: _Team | None) -> _Quota:
    types = [_TypeQuota.model_validate(quota) for quota in table]
    for quota, shown in zip(table, types, strict=True):
        for share, row in zip(quota.teams, shown.teams, strict=True):
            row.monthly_usd, row.prices_of = _cost(plan, quota, share) or (None, None)
    groups = [_RestrictedGroup.model_validate(group) for group in plan.restricted_groups]
    return _Quota(stack=plan.stack, team=team, types=types, restricted_instance_groups=groups)


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
            f"{quota.instance_type}: {capacity.permanent} permanent, {maximum} at most, "
            f"{amount(quota.unallocated)} unallocated"
        )
        if not quota.teams:
            paper.print(f"[bold]{title}[/] (no team has quota for it)\n")
            continue
        paper.print(f"[bold]{title}[/]")
        elastic = any(share.elastic for share in quota.teams)
        rows = grid("team", "quota", *(("elastic",) if elastic else ()), "may borrow", "lends", "US$ a month")
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
