"""`hpkit describe`: explains a team or an instance group, and where each setting of a stack comes from."""

import json
from collections.abc import Callable, Iterable
from typing import Annotated, NotRequired, TypedDict

import click

from hpkit.catalog.prices import near_price
from hpkit.cli.completion import complete_groups, complete_stacks, complete_teams, stack_option
from hpkit.cli.documents import json_document
from hpkit.cli.formats import Output, colored, folded, output_options
from hpkit.cli.inputs import plans_of
from hpkit.cli.output import WholeLines
from hpkit.config import Mark, Path, format_path
from hpkit.errors import SelectionError
from hpkit.explain import (
    GroupExplanation,
    TeamExplanation,
    TypeExplanation,
    explain_group,
    explain_team,
    group_text,
    places_of_group,
    places_of_team,
    team_text,
    values_of,
)
from hpkit.explain.team import Peer
from hpkit.explain.words import Section
from hpkit.plan.model import Plan
from hpkit.project import Loaded, select
from hpkit.text.formatting import json_number
from hpkit.text.spelling import near

__all__ = ["InstanceGroup", "Stack", "Team", "command"]


class _Rival(TypedDict):
    team: str
    fairShareWeight: int


class _PriorityClass(TypedDict):
    name: str
    weight: int


class _Peer(TypedDict):
    team: str
    instances: int | float


class _Place(TypedDict):
    path: str
    file: str
    line: int
    column: int


class _TeamType(TypedDict):
    instanceType: str
    groups: list[str]
    nodePools: list[str]
    reserved: int | float
    elastic: int | float
    accelerators: Annotated[int | float | None, "null: unknown for this type."]
    lendable: int | float
    borrowers: list[_Peer]
    borrowLimitPercent: Annotated[int | None, "null: the limit is a number of instances."]
    borrowLimit: int | float
    borrowable: int | float
    boundBy: Annotated[str, "What limits borrowing."]
    lenders: list[_Peer]
    idle: Annotated[int | float, "Instances that no team reserved."]


class Team(TypedDict):
    """What a team has, what it can borrow from which teams, and how its jobs are ranked."""

    stack: str
    team: str
    namespace: str
    queue: str
    sharedPool: bool
    members: list[str]
    strategy: str
    preemptTeamTasks: str
    fairShare: str
    fairShareWeight: int
    rivals: list[_Rival]
    priorityClasses: list[_PriorityClass]
    types: list[_TeamType]
    places: Annotated[list[_Place], "Where the files set it."]


class _Price(TypedDict):
    instanceType: str
    hourly: Annotated[str | None, "US dollars; null: the catalog has no price."]
    region: NotRequired[
        Annotated[str, "Region of the price, if the stack's region has none. The price is then approximate."]
    ]
    source: NotRequired[str]
    date: NotRequired[str]


class _GroupShare(TypedDict):
    team: str
    reserved: int | float
    elastic: int | float


class _GroupQuota(TypedDict):
    instanceType: str
    guaranteed: int
    maximum: Annotated[int | None, "null: no NodePool limit bounds it."]
    unreserved: int | float
    teams: list[_GroupShare]


class InstanceGroup(TypedDict):
    """An instance group's nodes, and which teams' quota uses it."""

    stack: str
    group: str
    instanceTypes: list[str]
    instanceCount: int
    availabilityZones: list[str]
    nodeClass: str | None
    nodePools: list[str]
    prices: list[_Price]
    quotas: list[_GroupQuota]
    places: Annotated[list[_Place], "Where the files set it."]


class _Value(_Place):
    value: Annotated[str, "As JSON."]
    inherited: Annotated[bool, "Whether it comes from `defaults` or `environmentDefaults`."]


class Stack(TypedDict):
    """Each value that the files set for a stack, and its position."""

    stack: str
    values: list[_Value]


class _Kinds(WholeLines):
    """Explains what to type before a name without a subcommand."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.commands and not name.startswith("-") and near(name, self.commands) is None:
            written = " or ".join(f"`hpkit describe {kind} {name}`" for kind in ("team", "group", "stack"))
            ctx.fail(f"No such command '{name}'. For a team, an instance group or a stack, run {written}.")
        return super().resolve_command(ctx, args)


@click.group("describe", cls=_Kinds, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Describe a team or an instance group, or where a stack's settings come from."""


_STACK = stack_option("Stack. Optional if only one stack has it")


@command.command("team")
@click.argument("team", shell_complete=complete_teams)
@_STACK
@output_options("text", "json", documents=("hpkit.cli.explain:Team",))
def _team(team: str, stack: str | None) -> Output:
    """Describe what a TEAM has, what it can borrow from which teams, and why.

    For each instance type, shows the guaranteed instances and their groups, and which teams can borrow them while
    idle. Also shows what the team can borrow, its weight compared with other teams, and how its jobs are ranked.
    """
    plan, loaded = _plan_of(stack, lambda plan: team in {each.name for each in plan.teams})
    organization = loaded.parsed.organization
    known = () if organization is None else tuple(each.name for each in organization.teams)
    explained = explain_team(plan, team, known)
    places = _places(loaded, places_of_team(loaded.document, plan.environment, team))
    return Output(
        text=lambda: _show((*team_text(explained), _set_in(places))),
        json=lambda: json_document(Team, **_team_as_dict(explained, places)),
    )


@command.command("group")
@click.argument("group", shell_complete=complete_groups)
@_STACK
@output_options("text", "json", documents=("hpkit.cli.explain:InstanceGroup",))
def _group(group: str, stack: str | None) -> Output:
    """Describe an instance GROUP: its nodes, what manages their number, and which teams' quota uses it."""
    plan, loaded = _plan_of(stack, lambda plan: group in {each.spec.name for each in plan.all_groups})
    explained = explain_group(plan, group)
    places = _places(loaded, places_of_group(loaded.document, plan.environment, group))
    return Output(
        text=lambda: _show((*group_text(explained), _set_in(places))),
        json=lambda: json_document(InstanceGroup, **_group_as_dict(explained, places)),
    )


@command.command("stack")
@click.argument("stack", shell_complete=complete_stacks)
@output_options("text", "json", documents=("hpkit.cli.explain:Stack",))
def _stack(stack: str) -> Output:
    """Describe where each setting of a STACK comes from: file, line and column.

    Values from `defaults` or `environmentDefaults` are marked as inherited. Settings in no file aren't listed.
    """
    plan, loaded = _plan_of(stack, lambda _: True)
    values = values_of(loaded.document, plan.environment)
    data: Stack = {
        "stack": plan.stack,
        "values": [
            {**place, "value": json.dumps(setting.value, ensure_ascii=False), "inherited": setting.inherited}
            for setting, place in zip(
                values, _places(loaded, ((setting.path, setting.mark) for setting in values)), strict=True
            )
        ],
    }
    return Output(text=lambda: "\n".join(map(_value_line, data["values"])), json=lambda: json_document(Stack, **data))


def _value_line(value: _Value) -> str:
    place = f"{value['file']}:{value['line']}:{value['column']}"
    return f"{value['path']}: {value['value']}  {place}{' (inherited)' if value['inherited'] else ''}"


def _plan_of(stack: str | None, matches: Callable[[Plan], bool]) -> tuple[Plan, Loaded]:
    """Return the plan of a stack; without one, of the only stack, or of the only one with the requested thing."""
    loaded = select((), () if stack is None else (stack,))
    if stack is not None:
        plans_of(loaded)
    plans = [(plan, each) for each in loaded for plan in each.plans.values()]
    candidates = plans if len(plans) == 1 else [(plan, each) for plan, each in plans if matches(plan)]
    if len(candidates) != 1:
        names = ", ".join(plan.stack for plan, _ in candidates or plans)
        raise SelectionError(f"name the stack with --stack: {names or 'stacks/ has no readable file'}")
    return candidates[0]


def _places(loaded: Loaded, marks: Iterable[tuple[Path, Mark]]) -> list[_Place]:
    return [
        {
            "path": format_path(path, loaded.document.data),
            "file": mark.file or loaded.file,
            "line": mark.line,
            "column": mark.column,
        }
        for path, mark in marks
    ]


def _set_in(places: Iterable[_Place]) -> Section:
    return "Set in", tuple(f"{each['path']}: {each['file']}:{each['line']}:{each['column']}" for each in places)


def _show(sections: Iterable[Section]) -> None:
    for number, (title, paragraphs) in enumerate(sections):
        click.echo(("\n" if number else "") + colored(title, bold=True))
        for paragraph in paragraphs:
            click.echo(folded(paragraph, "    ", "  - "))


def _team_as_dict(explained: TeamExplanation, places: list[_Place]) -> Team:
    team = explained.team
    return {
        "stack": explained.plan.stack,
        "team": team.name,
        "namespace": team.namespace,
        "queue": team.local_queue,
        "sharedPool": team.is_shared_pool,
        "members": list(team.spec.members),
        "strategy": team.spec.sharing.strategy,
        "preemptTeamTasks": team.spec.preempt_team_tasks,
        "fairShare": "Enabled" if explained.fair_share else "Disabled",
        "fairShareWeight": team.spec.fair_share_weight,
        "rivals": [{"team": each.team, "fairShareWeight": each.fair_share_weight} for each in explained.rivals],
        "priorityClasses": [{"name": each.name, "weight": each.weight} for each in explained.priority_classes],
        "types": [_type_as_dict(part) for part in explained.types],
        "places": places,
    }


def _type_as_dict(part: TypeExplanation) -> _TeamType:
    return {
        "instanceType": part.quota.instance_type,
        "groups": list(part.quota.capacity.groups),
        "nodePools": list(part.quota.capacity.pools),
        "reserved": json_number(part.reserved),
        "elastic": json_number(part.elastic),
        "accelerators": None if part.accelerators is None else json_number(part.accelerators),
        "lendable": json_number(part.lendable),
        "borrowers": [_peer(each) for each in part.borrowers],
        "borrowLimitPercent": part.percent,
        "borrowLimit": json_number(part.borrow_limit),
        "borrowable": json_number(part.borrowable),
        "boundBy": part.bound,
        "lenders": [_peer(each) for each in part.lenders],
        "idle": json_number(part.idle),
    }


def _peer(peer: Peer) -> _Peer:
    return {"team": peer.team, "instances": json_number(peer.instances)}


def _group_as_dict(explained: GroupExplanation, places: list[_Place]) -> InstanceGroup:
    spec = explained.group.spec
    return {
        "stack": explained.plan.stack,
        "group": spec.name,
        "instanceTypes": list(spec.types),
        "instanceCount": spec.instance_count,
        "availabilityZones": list(explained.group.zones),
        "nodeClass": explained.node_class,
        "nodePools": list(explained.node_pools),
        "prices": [_price(each.name, explained.plan.spec.region) for each in explained.instances],
        "quotas": [
            {
                "instanceType": quota.instance_type,
                "guaranteed": quota.capacity.guaranteed,
                "maximum": quota.capacity.maximum,
                "unreserved": json_number(quota.unreserved),
                "teams": [
                    {"team": share.team, "reserved": json_number(share.reserved), "elastic": json_number(share.elastic)}
                    for share in quota.teams
                ],
            }
            for quota in explained.quotas
        ],
        "places": places,
    }


def _price(name: str, region: str) -> _Price:
    price = near_price(name, region)
    if price is None:
        return {"instanceType": name, "hourly": None}
    source = price.source
    return {
        "instanceType": name,
        "hourly": str(price.hourly),
        "region": price.region,
        "source": source.url,
        "date": source.date,
    }
