"""`hpkit aws preflight`: checks whether an AWS account has what a stack needs."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from hpkit.cli.common.aws_session import aws_session
from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, colored, folded, output_options
from hpkit.cli.common.inputs import choose_file, record_plan
from hpkit.cli.common.output import own
from hpkit.cli.common.tables import columns, grid, lines_of
from hpkit.plan.model import Plan
from hpkit.preflight.model import CheckResult
from hpkit.preflight.training_plans import Offering
from hpkit.project import is_local
from hpkit.text.document import Document

if TYPE_CHECKING:
    from boto3 import Session

    from hpkit.clients.calls import Responses
    from hpkit.config import Organization
    from hpkit.program.recording import Recording

__all__ = ["OfferingList", "Preflight", "command"]


class Preflight(Document):
    """Whether an account has what a stack needs."""

    stack: str
    checks: list[CheckResult]
    summary: dict[str, int]


class OfferingList(Document):
    """Training plans that AWS sells for the groups of a stack."""

    stack: str
    offerings: list[Offering]


# Neither success nor something missing (1) nor misuse (2).
_NOT_REACHED = 3
_COLORS = {"ok": "green", "missing": "red", "changed": "yellow", "unknown": "yellow"}


@click.command("preflight")
@stack_option("Stack to deploy", required=True)
@output_options(
    "text", "json", documents=("hpkit.cli.account.preflight:Preflight", "hpkit.cli.account.preflight:OfferingList")
)
@click.option("--profile", metavar="P", help="AWS configuration profile. Default: the AWS SDK's choice.")
@click.option(
    "--offerings", is_flag=True, help="List the training plans that AWS sells for the stack's groups instead."
)
def command(stack: str, profile: str | None, offerings: bool) -> Output:
    """Check whether an AWS account has what a stack needs.

    Checks quotas, zones, subnets, add-on versions, roles, clusters and training plans, and writes nothing to the
    account. Checks that can't be completed are unknown, with a reason, and aren't errors. Manual changes that `up`
    would revert aren't errors either. Exits 1 if something is missing, and 3 if every call to AWS failed.
    """
    from hpkit.preflight.calls import is_reached
    from hpkit.preflight.evaluate import count_by_status, evaluate
    from hpkit.program.recording import UNKNOWN_ACCOUNT, Answers

    loaded, plan = choose_file(stack)
    # Without an organization there would be no plan.
    organization = cast("Organization", loaded.parsed.organization)
    session = aws_session(profile, plan.spec.region)
    if offerings:
        return _list_offerings(plan, session)
    recording = record_plan(plan, loaded, Answers(account=plan.spec.account or UNKNOWN_ACCOUNT))
    responses = _fetch(session, recording)
    results = evaluate(organization, recording, responses, on_local_cloud=is_local(os.environ))
    counts = count_by_status(results)
    if counts["unknown"]:
        click.echo(f"warning: {counts['unknown']} of {len(results)} checks couldn't be completed", err=True)
    if counts["changed"]:
        click.echo(f"warning: {counts['changed']} of {len(results)} differ from what the program creates", err=True)
    code = int(counts["missing"] > 0)
    if not code and not is_reached(recording, responses):
        click.echo("error: AWS answered none of the calls, so the account couldn't be checked", err=True)
        code = _NOT_REACHED
    return Output(
        code,
        text=lambda: _table(plan, results, counts),
        json=lambda: json_document(Preflight(stack=plan.stack, checks=list(results), summary=counts)),
    )


def _list_offerings(plan: Plan, session: "Session") -> Output:
    """Return the training plans that AWS sells for the instance groups of a stack."""
    from hpkit.clients.aws import call_all
    from hpkit.clients.calls import Responses
    from hpkit.preflight.training_plans import offering_calls, offerings_of

    calls = offering_calls(plan)
    offerings = offerings_of(calls, Responses(call_all(session, tuple(calls.values()), on_progress=_progress(plan))))
    return Output(
        text=lambda: _offerings_text(plan, offerings),
        json=lambda: json_document(OfferingList(stack=plan.stack, offerings=list(offerings))),
    )


def _offerings_text(plan: Plan, offerings: "Sequence[Offering]") -> str:
    if not offerings:
        return f"{plan.stack} has no On-Demand group with accelerators, and training plans are for those"
    head = ("group", "instances", "zone", "dates", "upfront", "offering")
    rows = [
        (
            offering.group,
            f"{offering.count} × {offering.instance_type}",
            ", ".join(offering.zones),
            offering.dates,
            offering.price,
            offering.id,
        )
        for offering in offerings
        if offering.id
    ]
    reasons = [f"{each.group}, {each.count} × {each.instance_type}: {each.why}" for each in offerings if not each.id]
    return "\n".join([*([columns([head, *rows])] if rows else []), *reasons])


def _fetch(session: "Session", recording: "Recording") -> "Responses":
    from hpkit.clients.aws import call_all
    from hpkit.clients.calls import FailedCall, Responses
    from hpkit.preflight.calls import ADMISSION, ENDPOINT, KUBERNETES, eks_cluster, first_calls, further_calls

    plan = recording.plan
    progress = _progress(plan)
    responses = Responses(call_all(session, first_calls(recording), on_progress=progress))
    further = further_calls(plan, responses)
    if further:
        responses = responses.merged(call_all(session, further, on_progress=progress))
    eks_response = responses.of(eks_cluster(plan))
    responses = responses.merged(_reached(plan, eks_response))
    if plan.spec.eks.existing is not None and not isinstance(eks_response, FailedCall):
        from hpkit.clients.kubernetes import find_inside

        responses = responses.merged({KUBERNETES.key: find_inside(session, eks_response["cluster"])})
    # If there is no response, another line reports that.
    if plan.teams and not isinstance(eks_response, FailedCall) and not isinstance(responses.of(ENDPOINT), FailedCall):
        from hpkit.clients.kubernetes import find_admission

        responses = responses.merged({ADMISSION.key: find_admission(session, eks_response["cluster"])})
    if sys.stderr.isatty():
        click.echo("", err=True)
    return responses


def _reached(plan: Plan, cluster: Any) -> dict[str, Any]:
    """Return what this machine determines itself: its own address, and whether EKS's endpoint responds."""
    from hpkit.clients.calls import FailedCall
    from hpkit.clients.network import find_address, try_endpoint
    from hpkit.plan.endpoint import address_within
    from hpkit.preflight.calls import ENDPOINT, PUBLIC_ADDRESS

    local = os.environ.get("AWS_ENDPOINT_URL", "")
    there = not isinstance(cluster, FailedCall) and cluster["cluster"].get("endpoint")
    if there:
        tried = try_endpoint(cluster["cluster"]["endpoint"])
        if not isinstance(tried, FailedCall):
            return {ENDPOINT.key: tried}
        return {ENDPOINT.key: tried, PUBLIC_ADDRESS.key: find_address(local)}
    if not plan.spec.eks.endpoint.public:
        return {}
    return {PUBLIC_ADDRESS.key: find_address(local) or address_within(plan.spec.eks.endpoint.public_cidrs)}


def _progress(plan: Plan) -> Callable[[int, int], None]:
    """Return a counter on standard error: one line that grows on a terminal, its beginning and end elsewhere."""
    terminal = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if terminal or done in (1, total):
            line = f"checking {plan.spec.region}: {done} of {total} answered"
            click.echo(f"\r{line}" if terminal else line, file=own(sys.stderr), nl=not terminal)

    return show


def _table(plan: Plan, results: tuple[CheckResult, ...], counts: dict[str, int]) -> str:
    head = ("", "what", "found", "needed")
    if sys.stdout.isatty():
        lines = _folded(plan, results, head)
    else:
        lines = [
            plan.stack,
            "",
            columns([head, *((each.status, each.what, each.found, each.needed) for each in results)]),
        ]
    lines += _remedies(results)
    shown = {status: count for status, count in counts.items() if count or status != "changed"}
    lines += ["", ", ".join(f"{count} {status}" for status, count in shown.items())]
    return "\n".join(lines)


def _folded(plan: Plan, results: tuple[CheckResult, ...], head: tuple[str, ...]) -> list[str]:
    """Return the table as wide as the terminal; a longer cell takes several lines."""
    from rich.text import Text

    table = grid(*head, names=head, title=plan.stack, expand=True)
    for column, share in zip(table.columns[1:], (5, 3, 3), strict=True):
        column.ratio = share
    for each in results:
        table.add_row(Text(each.status, _COLORS[each.status]), each.what, each.found, each.needed)
    return lines_of(table)


def _remedies(results: tuple[CheckResult, ...]) -> list[str]:
    """Return reasons and remedies, once for all results that share them: a rejected call may leave many unknown."""
    alike: dict[tuple[str, str, str], list[CheckResult]] = {}
    for each in results:
        if each.status != "ok":
            alike.setdefault((each.status, each.why, each.fix), []).append(each)
    lines = []
    for (status, why, fix), results_alike in alike.items():
        lines += ["", *(f"{colored(status, fg=_COLORS[status], bold=True)} {each.what}" for each in results_alike)]
        lines += [folded(text if text.endswith((".", "…")) else f"{text}.", "    ") for text in (why, fix) if text]
        lines += [f"    {each.command}" for each in results_alike if each.command]
    return lines
