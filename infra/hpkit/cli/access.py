"""`hpkit cluster access`: which principals can do what on a running platform, and whether one can do one thing."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

import click

from hpkit.cli.aws_session import aws_session
from hpkit.cli.documents import json_document
from hpkit.cli.formats import Output, folded, output_options
from hpkit.cli.inputs import choose_stack
from hpkit.cli.live_common import kubernetes_api, platform_options, rights
from hpkit.cli.output import WholeLines
from hpkit.cli.tables import columns
from hpkit.errors import InputError
from hpkit.text.printable import csv_cell

if TYPE_CHECKING:
    from hpkit.cluster.access.check import Answer
    from hpkit.cluster.access.model import Entry, Row
    from hpkit.plan.model import Plan

__all__ = ["AccessCheck", "PrincipalList", "command"]


class _Grant(TypedDict):
    place: Annotated[str, "A namespace, or `cluster`."]
    role: str
    through: str


class _Principal(TypedDict):
    principal: str
    inFile: Annotated[list[str], "Where the organization file names it."]
    madeTheCluster: bool
    unread: Annotated[bool, "Bindings couldn't be read, so it may have more grants."]
    grants: list[_Grant]


class PrincipalList(TypedDict):
    """Roles of each principal."""

    stack: str
    principals: list[_Principal]
    differences: Annotated[list[str], "What differs from the organization file."]


class AccessCheck(TypedDict):
    """Whether a principal may do something."""

    principal: str
    verb: str
    resource: str
    namespace: str | None
    allowed: bool
    reasons: list[str]
    unknownPolicies: Annotated[list[str], "Its access policies whose permissions hpkit doesn't know."]


@click.group("access", cls=WholeLines, invoke_without_command=True, epilog=rights("cluster access"))
@platform_options
@output_options("text", "json", "html", "csv", documents=("hpkit.cli.access:PrincipalList",))
@click.pass_context
def command(context: click.Context, stack: str | None, profile: str | None) -> Output | None:
    """Show each principal's roles in the cluster and in each team's namespace.

    Reads EKS access entries and Kubernetes bindings, and marks what differs from the organization file.
    """
    context.obj = (stack, profile)
    if context.invoked_subcommand is not None:
        return None
    from hpkit.cluster.access.as_html import as_html
    from hpkit.cluster.access.model import differences, matrix
    from hpkit.cluster.access.read import read_access

    plan = choose_stack(stack)
    access = read_access(aws_session(profile, plan.spec.region), cluster=plan.spec.cluster.name)
    for each in access.unknown:
        click.echo(f"warning: not read: {each}", err=True)
    rows, differs = matrix(access, plan), () if access.unknown else differences(access, plan)
    places = _places(plan, rows)
    return Output(
        text=lambda: _print(places, rows, differs),
        json=lambda: json_document(PrincipalList, **_as_dict(plan, rows, differs)),
        csv=lambda: _as_csv(places, rows),
        html=lambda: as_html(plan.stack, places, rows, differs),
    )


def _places(plan: Plan, rows: Sequence[Row]) -> list[str]:
    """Return the columns: the cluster, each team's namespace, then others in which a principal has a role."""
    from hpkit.cluster.access.model import CLUSTER

    teams = [team.namespace for team in plan.teams]
    others = sorted({place for row in rows for place in row.grants} - {CLUSTER, *teams})
    return [CLUSTER, *teams, *others]


def _as_dict(plan: Plan, rows: Sequence[Row], differs: Sequence[str]) -> PrincipalList:
    return {
        "stack": plan.stack,
        "principals": [
            {
                "principal": row.principal,
                "inFile": list(row.file),
                "madeTheCluster": row.of_creator,
                "unread": row.unread,
                "grants": [
                    {"place": place, "role": grant.role, "through": grant.through}
                    for place, grants in row.grants.items()
                    for grant in grants
                ],
            }
            for row in rows
        ],
        "differences": list(differs),
    }


def _as_csv(places: Sequence[str], rows: Sequence[Row]) -> str:
    from hpkit.cluster.access.model import called

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["principal", "in file", *places])
    for row in rows:
        cells = (row.principal, called(row), *(row.cell(place) for place in places))
        writer.writerow([csv_cell(each) for each in cells])
    return text.getvalue()


def _print(places: Sequence[str], rows: Sequence[Row], differs: Sequence[str]) -> None:
    """Print a line for each place where a principal has a role: a column for each would not fit with many teams."""
    from hpkit.cluster.access.model import called

    lines = [("principal", "where", "role", "in the file")]
    for row in rows:
        inside = called(row)
        cells = [(place, row.cell(place)) for place in places if row.grants.get(place)]
        cells = cells or [("?", "?") if row.unread else ("", "nothing")]
        lines += [
            (row.principal if not number else "", place, role, inside if not number else "")
            for number, (place, role) in enumerate(cells)
        ]
    click.echo(columns(lines) if rows else "no principal has an access entry")
    for number, line in enumerate(differs):
        if not number:
            click.echo("differs from the organization file")
        click.echo(folded(line, "    ", "  "))


@command.command("check", epilog=rights("cluster access check"))
@click.argument("principal")
@click.argument("verb")
@click.argument("resource")
@platform_options
@click.option("-n", "--namespace", metavar="NAMESPACE", help="Namespace or team. Default: all namespaces.")
@output_options("text", "json", documents=("hpkit.cli.access:AccessCheck",))
@click.pass_context
def check(
    context: click.Context,
    principal: str,
    verb: str,
    resource: str,
    stack: str | None,
    profile: str | None,
    namespace: str | None,
) -> Output:
    """Check whether a principal may do one thing, and which binding allows it.

    PRINCIPAL is the ARN of a role, a user or a session, or the name at the end of an ARN. VERB is a Kubernetes verb,
    such as get, create or delete. RESOURCE is a Kubernetes resource, such as jobs, pytorchjobs.kubeflow.org or
    pods/exec. Exits 1 if the principal isn't allowed, or has no access entry.
    """
    from hpkit.cluster.access.check import check as check_access
    from hpkit.cluster.access.check import find_resource, resources_of
    from hpkit.cluster.access.model import Access, find_entry, without_entry
    from hpkit.cluster.access.read import read_entries
    from hpkit.cluster.live.read import find

    outer_stack, outer_profile = context.obj
    plan = choose_stack(stack or outer_stack)
    session = aws_session(profile or outer_profile, plan.spec.region)
    eks = find(session, plan.spec.cluster.name).eks
    access = Access(read_entries(session, eks["name"]), ())
    entry = find_entry(access, principal)
    if entry is None:
        raise InputError(without_entry(access, principal))
    with kubernetes_api(session, eks, needs="create subjectaccessreviews") as api:
        api_resource = find_resource(resources_of(api), resource)
        place = _namespace(plan, namespace) if api_resource.namespaced else None
        answer = check_access(api, entry, verb, api_resource, place)
    where = f" in {place}" if place else (" in all namespaces" if api_resource.namespaced else "")
    return Output(
        not answer.allowed,
        text=lambda: "\n".join(_answer_lines(entry, f"{verb} {api_resource.full_name}{where}", answer)),
        json=lambda: json_document(
            AccessCheck,
            principal=entry.principal,
            verb=verb,
            resource=api_resource.full_name,
            namespace=place,
            allowed=answer.allowed,
            reasons=list(answer.reasons),
            unknownPolicies=list(answer.unknown),
        ),
    )


def _answer_lines(entry: Entry, action: str, answer: Answer) -> Iterator[str]:
    can = "can" if answer.allowed else "can't"
    yield folded(f"{entry.principal} {can} {action}.", "", "")
    for reason in answer.reasons:
        yield folded(f"by {reason}", "    ", "  ")
    for name in answer.unknown:
        yield folded(f"It also has the access policy {name}, whose permissions hpkit doesn't know.", "    ", "  ")
    if not answer.allowed:
        groups = ", ".join(entry.groups) or "no group"
        text = f"In Kubernetes, it's {entry.username} in {groups}; none of their bindings allows this."
        yield folded(text, "    ", "  ")


def _namespace(plan: Plan, namespace: str | None) -> str | None:
    """Return the namespace that is meant: a team's by the team's name."""
    return next((team.namespace for team in plan.teams if team.name == namespace), namespace)
