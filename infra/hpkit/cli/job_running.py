"""`hpkit job logs`, `exec` and `stop`: a job that runs or has ended, found by its name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar

import click

from hpkit.cli.completion import complete_teams
from hpkit.cli.documents import acted, json_line
from hpkit.cli.formats import acts, folded, format_option
from hpkit.cli.live_common import choose_stack, kubernetes_api, platform_options, rights, seconds_of
from hpkit.cli.output import confirm
from hpkit.errors import ToolError
from hpkit.text.plural import plural

if TYPE_CHECKING:
    from boto3 import Session

    from hpkit.cluster.jobs.running import Job, Rank
    from hpkit.cluster.live.kubernetes import Kubernetes

__all__ = ["JobLogLine", "execute", "logs", "stop"]


class JobLogLine(TypedDict):
    """A line of the log of a job's rank."""

    rank: int
    line: str


Command = TypeVar("Command", bound=Callable[..., None])


def _job_options(command: Command) -> Command:
    for option in (
        click.option(
            "--team",
            metavar="T",
            shell_complete=complete_teams,
            help="Team of the job, if several teams have a job with this name.",
        ),
        platform_options,
    ):
        command = option(command)
    return command


class _Found(NamedTuple):
    api: Kubernetes
    job: Job
    pods: list[Any]
    ranks: list[Rank]
    session: Session
    eks: Any


@contextmanager
def _found(name: str, stack: str | None, profile: str | None, team: str | None, *, needs: str) -> Iterator[_Found]:
    from hpkit.cli.aws_session import aws_session
    from hpkit.cluster.jobs.new import team_of
    from hpkit.cluster.jobs.running import find_job, pods_of, ranks_of
    from hpkit.cluster.live.read import find

    plan = choose_stack(stack)
    teams = plan.teams if team is None else [team_of(plan, team)]
    session = aws_session(profile, plan.spec.region)
    eks = find(session, plan.spec.cluster.name).eks
    with kubernetes_api(session, eks, needs=needs) as api:
        job = find_job(api, [each.namespace for each in teams], name)
        pods = pods_of(api, job)
        yield _Found(api, job, pods, ranks_of(job, pods), session, eks)


@click.command("logs", epilog=rights("job logs"))
@click.argument("name", metavar="JOB")
@_job_options
@click.option("--rank", type=click.IntRange(0), metavar="N", help="Only print this rank. Default: all.")
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the job ends.")
@click.option(
    "--since", callback=seconds_of, metavar="DURATION", help="Only print lines of this time, such as 15m. Default: all."
)
@format_option(("text", "json"), ("hpkit.cli.job_running:JobLogLine",))
def logs(
    name: str,
    stack: str | None,
    profile: str | None,
    team: str | None,
    rank: int | None,
    follow: bool,
    since: int | None,
    form: str,
) -> None:
    """Print the logs of all ranks of a job, each line with its rank.

    Standard error first shows why the job last failed, was preempted or waits, and its latest warnings. Rank 0 is the
    master, launcher or head, if the job has one. JOB is a name, or KIND/NAME.
    """
    from hpkit.cluster.jobs.logs import follow as followed
    from hpkit.cluster.jobs.logs import logs as read
    from hpkit.cluster.jobs.running import history

    with _found(name, stack, profile, team, needs="get pods/log and list pods, workloads and events") as found:
        api, job, pods, ranks, *_ = found
        click.echo(f"{job.words}: {_states(ranks)}", err=True)
        for line in history(api, job, ranks, pods):
            click.echo(folded(line, "    ", "  - "), err=True)
        chosen = ranks if rank is None or follow else [_rank(job, ranks, rank)]
        reported: set[str] = set()

        def report(current: list[Rank]) -> None:
            for candidate in current:
                if candidate.waits and rank in (None, candidate.number) and candidate.name not in reported:
                    reported.add(candidate.name)
                    click.echo(
                        folded(f"rank {candidate.number} hasn't started: {candidate.waits}", "    ", "  "), err=True
                    )

        if follow:
            lines = followed(api, job, since, waiting=report)
        else:
            report(chosen)
            lines = read(api, chosen, since)
        width = len(str(max((each.number for each in ranks), default=0)))
        for number, line in lines:
            if rank in (None, number):
                text = f"rank {number:>{width}} | {line}"
                click.echo(json_line(JobLogLine, rank=number, line=line) if form == "json" else text)


def _states(ranks: list[Rank]) -> str:
    if not ranks:
        return "no pods"
    running = sum(each.is_running for each in ranks)
    return f"{running} of {plural(len(ranks), 'rank')} running"


def _rank(job: Job, ranks: list[Rank], number: int) -> Rank:
    chosen = next((each for each in ranks if each.number == number), None)
    if chosen is None:
        numbers = ", ".join(str(each.number) for each in ranks)
        raise ToolError(
            f"{job.words} has no pod of rank {number}; "
            + (f"it has {numbers}" if numbers else f"it has no pods. `hpkit job why {job.name}` explains why it waits")
        )
    return chosen


@click.command("exec", epilog=rights("job exec"))
@click.argument("name", metavar="JOB")
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED)
@_job_options
@click.option("--rank", type=click.IntRange(0), default=0, show_default=True, metavar="N", help="Rank to run it in.")
def execute(
    name: str, words: tuple[str, ...], stack: str | None, profile: str | None, team: str | None, rank: int
) -> None:
    """Run a command in the container of a rank, with kubectl.

    Input and terminal are passed on, so `hpkit job exec train -- bash` opens a shell. Exits with the command's code.
    """
    from hpkit.clients.kubernetes import kubeconfig

    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise ToolError("kubectl isn't installed; see https://kubernetes.io/docs/tasks/tools/")
    with _found(name, stack, profile, team, needs="list pods") as target:
        chosen = _rank(target.job, target.ranks, rank)
    if not chosen.is_running:
        raise ToolError(f"rank {rank} ({chosen.name}) doesn't run: {chosen.waits or 'it has ended'}")
    terminal = ("-t",) if sys.stdin.isatty() and sys.stdout.isatty() else ()
    with kubeconfig(target.session, target.eks) as file:
        done = subprocess.run(  # noqa: S603 - the user's own command, in the container
            [
                *(kubectl, f"--kubeconfig={file}", f"--namespace={target.job.namespace}", "exec", "-i", *terminal),
                *(chosen.name, f"--container={chosen.container}", "--", *words),
            ],
            check=False,
        )
    sys.exit(done.returncode)


@click.command("stop", epilog=rights("job stop"))
@click.argument("name", metavar="JOB")
@_job_options
@click.option("--yes", is_flag=True, help="Skip the confirmation, for automation.")
@acts
def stop(name: str, stack: str | None, profile: str | None, team: str | None, yes: bool) -> None:
    """Delete a job and its pods, after a confirmation.

    Nothing else is deleted: claims, config maps, and files stay.
    """
    from hpkit.cluster.jobs.running import owner_of
    from hpkit.cluster.jobs.running import stop as delete

    with _found(name, stack, profile, team, needs="list pods and delete the job's kind") as found:
        api, job, pods, ranks, *_ = found
        owner = owner_of(job)
        if owner:
            raise ToolError(f"{job.words} is part of {owner}; stop that instead")
        click.echo(f"deletes {job.words} and {_pods_words(pods, ranks)}, and nothing else")
        if not yes:
            confirm("Continue?")
        click.echo(delete(api, job, pods))
        acted("delete", job.words, detail=f"{plural(len(pods), 'pod')}")


def _pods_words(pods: list[Any], ranks: list[Rank]) -> str:
    running = sum(each.is_running for each in ranks)
    return f"its {plural(len(pods), 'pod')} ({running} running)" if pods else "its Workload; it has no pods"
