"""`hpkit cluster usage`: instance-hours and their cost by team, project, job or instance type."""

from __future__ import annotations

import itertools
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import click
from pydantic import BeforeValidator, Field

from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, folded, output_options
from hpkit.cli.common.inputs import choose_stack
from hpkit.cli.common.live import observe, platform_options, rights, seconds_of
from hpkit.cli.common.tables import columns
from hpkit.cluster.usage.report import GROUPINGS
from hpkit.errors import InputError, ToolError
from hpkit.text.document import Document
from hpkit.text.formatting import span

if TYPE_CHECKING:
    from hpkit.cluster.live.model import Observed
    from hpkit.cluster.live.read import AwsPart
    from hpkit.cluster.usage.history import History
    from hpkit.cluster.usage.report import Usage

__all__ = ["ClusterUsage", "command"]

_CLOCK_SECONDS: Final = 60
_PARTS: Final[tuple[AwsPart, ...]] = ("nodes",)


class _UsageRow(Document):
    """Instance-hours; null: not divided that way."""

    name: str
    team: str
    used: float = Field(description="Within the team's quota, and borrowed.")
    borrowed: float | None
    lent: float | None = Field(description="Idle quota that other teams used; not part of `hours`.")
    idle: float | None = Field(description="Quota that nobody used.")
    not_reserved: float | None = Field(
        validation_alias="unallocated", description="Instances that are in no quota, and that nobody used."
    )
    hours: float = Field(description="Sum of used, idle and notReserved.")
    cost: Annotated[str, BeforeValidator("{:.2f}".format)] = Field(
        description="US dollars for the hours with a known price, in cents."
    )
    unpriced_hours: float = Field(validation_alias="unpriced")


class ClusterUsage(Document):
    """Instance-hours of a cluster and their cost; the rows sum to the total."""

    stack: str = ""
    region: str = ""
    since: datetime = Field(validation_alias="begin")
    until: datetime = Field(validation_alias="end")
    by: str
    rows: list[_UsageRow]
    total: _UsageRow
    notes: list[str]


@click.command("usage", epilog=rights("cluster usage"))
@platform_options
@output_options("text", "json", documents=("hpkit.cli.cluster.usage:ClusterUsage",))
@click.option(
    "--since", default="30d", callback=seconds_of, metavar="DURATION", show_default=True, help="How far to look back."
)
@click.option("--by", type=click.Choice(tuple(GROUPINGS)), default="team", show_default=True, help="What a row is.")
@click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read and update this file, which keeps what Kueue and SageMaker forget.",
)
def command(stack: str | None, profile: str | None, since: int, by: str, history: Path | None) -> Output:
    """Show who used the cluster's instances, and what they cost.

    Without --history, only Workloads and nodes that still exist are counted. Run the command regularly with --history,
    such as hourly, to keep the others. A project is the label `app.kubernetes.io/part-of` of a job's pods.
    """
    from hpkit.catalog.prices import near_price, price_note
    from hpkit.cluster.usage.account import account
    from hpkit.cluster.usage.history import Admissions, merged, observed_history
    from hpkit.cluster.usage.report import usage_report

    plan = choose_stack(stack)
    if history is not None:
        _require_folder(history)
    earlier = None if history is None else _read(history, plan.stack)
    admissions = Admissions()
    observed = observe(plan, profile, aws=_PARTS, on_workload=admissions.add)
    _require_all(observed)
    seen = observed_history(observed, admissions)
    if earlier is not None:
        seen = merged(earlier, seen)
    if history is not None:
        _write(history, plan.stack, seen)
    end = observed.time.timestamp()
    begin = end - since
    hours = account(seen, begin=begin, end=end)
    if not any(each.total for each in hours):
        raise ToolError(
            f"no node of {plan.spec.cluster.name} is known between {_day(begin)} and {_day(end)}, so nothing was used. "
            "Use a longer --since, or name the --history file of earlier runs"
        )

    prices = {each.instance_type: near_price(each.instance_type, plan.spec.region) for each in hours}
    used = {price.region for price in prices.values() if price is not None}
    usage = usage_report(
        hours,
        by=by,
        begin=begin,
        end=end,
        price=lambda name: None if (price := prices[name]) is None else price.hourly,
        notes=(
            *_notes(seen, begin, end, kept=history is not None),
            *price_note(plan.spec.region, used, is_unknown=None in prices.values()).splitlines(),
        ),
    )
    title = f"{plan.stack}: usage by {by}, {_day(begin)} to {_day(end)}"
    return Output(
        text=lambda: _text(title, usage),
        json=lambda: json_document(
            ClusterUsage.model_validate(usage).model_copy(update={"stack": plan.stack, "region": plan.spec.region})
        ),
    )


def _require_folder(file: Path) -> None:
    """Raise InputError unless a file can be written: reading the cluster can take minutes."""
    if not file.parent.is_dir():
        raise InputError(f"{file} can't be written: no folder {file.parent} exists. Run `mkdir -p {file.parent}`")
    if not os.access(file.parent, os.W_OK):
        raise InputError(f"{file} can't be written: the folder is read-only. Specify another file with --history")


def _read(file: Path, stack: str) -> History:
    """Return the history in a file; an empty one if it doesn't exist yet."""
    from hpkit.cluster.usage.history import History, parse_history
    from hpkit.config import require_file

    try:
        require_file(file)
        with file.open(encoding="utf-8") as lines:
            return parse_history(lines, stack=stack, file=str(file))
    except FileNotFoundError:
        return History()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} can't be read: {error}. Specify another file with --history") from None


def _write(file: Path, stack: str, history: History) -> None:
    """Replace the file as a whole, so that an interrupted run loses nothing."""
    from hpkit.cluster.usage.history import written

    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        temporary.write_text("".join(f"{line}\n" for line in written(history, stack=stack)), encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise InputError(f"{file} can't be written: {error}. Specify another file with --history") from None


def _require_all(observed: Observed) -> None:
    """Raise ToolError unless all nodes, queues and Workloads were read: what is missing would count as ended."""
    unread = sorted({"workloads", "clusterqueues"} & observed.unread)
    if observed.namespaces is not None:
        unread.append("workloads of all namespaces")
    if observed.platform is None or (observed.unknown and not observed.platform.nodes):
        unread.append("nodes of the cluster")
    if unread:
        raise ToolError(
            f"{', '.join(unread)} couldn't be read, so hours would be missing. Use a role that can read them, such as "
            "one in eks.viewers with the permissions in `hpkit cluster usage --help`"
        )


def _notes(history: History, begin: float, end: float, *, kept: bool) -> list[str]:
    from hpkit.cluster.usage.history import losses

    first = history.read[0]
    notes = [*history.notes, *losses(history, begin)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(history.read) if later > begin]
    if gaps:
        notes.append(
            "jobs and nodes that began and ended between two readings aren't counted; the longest time between two was "
            f"{span(max(gaps))}"
        )
    if not kept:
        notes.append(
            "nodes that were removed, Workloads that were deleted and earlier quotas aren't known; with --history, "
            "later runs know them"
        )
    elif first > begin:
        notes.append(f"before {_moment(first)}, the first run with this history, only what existed then is known")
    begins = [node.begin for node in history.nodes] + [task.begin for task in history.tasks]
    ahead = sum(moment > end + _CLOCK_SECONDS for moment in begins)
    if ahead:
        notes.append(f"{ahead:,} nodes and Workloads begin after this machine's time: the clocks differ; they count 0")
    return notes


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, tz=UTC):%Y-%m-%d %H:%M} UTC"


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, tz=UTC):%Y-%m-%d}"


def _head(usage: Usage) -> tuple[str, ...]:
    from hpkit.cluster.usage.table import HEAD

    return (usage.by, *(["team"] if usage.by in ("job", "project") else []), *HEAD)


def _text(title: str, usage: Usage) -> str:
    from hpkit.cluster.usage.table import HEAD, usage_rows

    head, notes = _head(usage), [folded(f"note: {note}", "  ", "") for note in usage.notes]
    figures = range(len(head) - len(HEAD), len(head))
    return "\n".join([title, "", columns([head, *usage_rows(usage)], numbers=figures), "", *notes])
