"""`hpkit whatif record`: writes the tasks of a cluster as a scenario."""

from pathlib import Path

import click

from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import acts, output_option
from hpkit.cli.common.inputs import choose_stack
from hpkit.cli.common.live import observe, platform_options, rights
from hpkit.errors import SelectionError
from hpkit.text.formatting import plural

__all__ = ["command"]


@click.command("record", epilog=rights("whatif record"))
@platform_options
@click.option("--since", default="7d", show_default=True, metavar="DURATION", help="How far to look back.")
@output_option("Write to this file, *.yaml", required=True)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@acts
def command(stack: str | None, profile: str | None, since: str, output: Path, force: bool) -> None:
    """Record the tasks of a running cluster as a scenario.

    Reads Kueue's Workloads of the last days. Omitted and changed tasks are reported on standard error.
    """
    from hpkit_whatif.record import Yaml, recorded, writing
    from hpkit_whatif.scenario.model import duration

    if output.suffix not in (".yaml", ".yml"):
        raise click.UsageError(f"--output {output}: name a file that ends in .yaml")
    if output.exists() and not force:
        raise click.UsageError(f"{output} already exists; name another file, or add --force")
    try:
        seconds = duration(since)
    except ValueError as error:
        raise click.UsageError(f"--since: {error}") from None
    if not seconds:
        raise click.UsageError("--since 0: use a duration above zero")
    plan = choose_stack(stack)
    observed = observe(plan, profile, aws=())
    recording = recorded(observed, plan, since=seconds)
    for note in recording.notes:
        click.echo(f"note: {note}", err=True)
    if not recording.tasks:
        raise SelectionError(
            f"teams of {plan.stack} have no Workloads in the last {since}, so there is nothing to record"
        )
    description = f"Tasks of {plan.stack} in the {since} before {observed.time:%Y-%m-%d %H:%M} UTC."
    with writing(output) as file:
        count = Yaml(description, recording.until, recording.tasks, recording.topology).write(file)
    acted("write", output, detail=plural(count, "task"))
    click.echo(f"wrote {plural(count, 'task')} to {output}")
