"""`hpkit job why`: why a task waits, which teams hold its quota, and what would let it run now."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click
from pydantic import AliasPath, Field

from hpkit.cli.common.completion import complete_teams
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, folded, output_options
from hpkit.cli.common.inputs import choose_stack
from hpkit.cli.common.live import observe, observe_instances, platform_options, rights
from hpkit.cluster.live.state import State
from hpkit.errors import SelectionError
from hpkit.text.document import Document, TextOrNull
from hpkit.text.formatting import span

if TYPE_CHECKING:
    from hpkit.cluster.live.why import Explanation

__all__ = ["WaitingJob", "command"]


class WaitingJob(Document):
    """The state of a job, why it doesn't run, and what would let it run."""

    name: str = Field(validation_alias=AliasPath("task", "owner_name"))
    owner: str = Field(validation_alias=AliasPath("job", "owner"), description="The user's object: its kind and name.")
    team: str = Field(validation_alias=AliasPath("task", "team"))
    state: State = Field(validation_alias=AliasPath("job", "state"))
    pods: int = Field(validation_alias=AliasPath("job", "pods"))
    pods_running: int | None = Field(
        validation_alias=AliasPath("job", "running"), description="null: you may not read its pods."
    )
    reason: str = Field(validation_alias=AliasPath("job", "reason"))
    cause: TextOrNull = Field(
        validation_alias=AliasPath("job", "cause"),
        description="Kubernetes' or Kueue's own reason, such as `Unschedulable` or `Preempted`.",
    )
    evictions: dict[str, int] = Field(
        validation_alias=AliasPath("task", "evictions"), description="How often Kueue evicted it, by its reason."
    )
    siblings: TextOrNull = Field(description="The other pods of its Deployment.")
    preempted_by: str | None
    nodes: list[str] = Field(description="Nodes of its pods with a problem, and HyperPod's and Kubernetes' reasons.")
    failed_instances: list[str] | None = Field(
        validation_alias="failed",
        description="Of a job that waits: failed instances of the types of its queue, with the service's reason and "
        "the end of the lifecycle log. null: you may not list instances.",
    )
    holders: list[str] = Field(description="Teams that hold its capacity.")
    would_run_if: list[str] = Field(validation_alias="remedies")
    outlook: TextOrNull
    could_run_at: datetime | None = Field(validation_alias="runs_at")
    when: TextOrNull


@click.command("why", epilog=rights("job why"))
@click.argument("task", metavar="JOB")
@platform_options
@click.option(
    "--team",
    metavar="T",
    shell_complete=complete_teams,
    help="Team of the job, if several teams have a job with this name.",
)
@output_options("text", "json", documents=("hpkit.cli.cluster.why:WaitingJob",))
def command(task: str, stack: str | None, profile: str | None, team: str | None) -> Output:
    """Explain a job's state, which teams hold its capacity, and what would let it run now.

    JOB is the name of a job, Deployment, StatefulSet, CronJob or Workload. The state comes from its pods and their
    events, the reason for waiting from Kueue. The simulator then looks for changes that would let the job run now:
    ending another task, a higher priority class, or fewer pods. The command estimates a start time if the running tasks
    have a limit: Kueue's max-exec-time-seconds, or activeDeadlineSeconds of their pods. If your role may list
    instances and read logs, failed instances are shown with the end of their lifecycle script's log.
    """
    from hpkit.cli.cluster.job import api_server
    from hpkit.cluster.live.state import Jobs
    from hpkit.cluster.live.why import explain, find_task, with_failed_instances
    from hpkit.kueue.organization import fair_sharing_of

    plan = choose_stack(stack)
    observed = observe(plan, profile, aws=())
    jobs = Jobs(observed)
    if not jobs.named(task) and "workloads" not in observed.unread:
        with api_server(plan, profile) as server:
            cause = server.why_no_task(task, observed, team)
        if cause:
            raise SelectionError(cause)
    explanation = explain(jobs, find_task(jobs, task, team), fair_sharing=fair_sharing_of(plan))
    if explanation.task.waits or explanation.job.cause == "Unschedulable":
        explanation = with_failed_instances(explanation, observed, observe_instances(plan, profile))
    since = span(max(0.0, (observed.time - explanation.task.created).total_seconds()))
    return Output(
        text=lambda: _print(explanation, since), json=lambda: json_document(WaitingJob.model_validate(explanation))
    )


def _print(explanation: Explanation, since: str) -> None:
    task, job = explanation.task, explanation.job
    about = f"{task.owner_kind} of {task.team}, priority {task.priority}, created {since} ago"
    click.echo(folded(f"{task.owner_name} ({about}): {job.state}", "    ", ""))
    click.echo(folded(job.reason[:1].upper() + job.reason[1:] + ".", "  ", "  "))
    if explanation.preempted_by:
        click.echo(folded(f"It was preempted for {explanation.preempted_by}.", "  ", "  "))
    if explanation.siblings:
        click.echo(folded(f"{explanation.siblings}.", "  ", "  "))
    _list("Nodes of its pods that have a problem", explanation.nodes)
    _list("Instances that failed", explanation.failed or ())
    _list("Teams that hold its capacity", explanation.holders)
    _list("It could run now if", explanation.remedies)
    if explanation.outlook:
        click.echo(folded(f"{explanation.outlook[:1].upper()}{explanation.outlook[1:]}.", "  ", "  "))
    if explanation.when:
        click.echo(folded(f"Estimated start: {explanation.when}.", "  ", "  "))


def _list(title: str, lines: tuple[str, ...]) -> None:
    if lines:
        click.echo(f"  {title}:")
    for line in lines:
        click.echo(folded(line, "      ", "    - "))
