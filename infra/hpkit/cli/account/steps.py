"""`hpkit aws steps`: the steps of a preview, to compare what was approved with what `up` would do."""

import json
import sys
from pathlib import Path

import click

from hpkit.changes.review.steps import differences, steps_of
from hpkit.cli.common.formats import output_options
from hpkit.config import require_file
from hpkit.errors import InputError
from hpkit.text.formatting import compact_json, plural

__all__ = ["command"]


@click.command("steps")
@output_options()
@click.option("--approved", type=click.Path(path_type=Path), metavar="FILE", help="Compare with this earlier output.")
def command(approved: Path | None) -> None:
    """Print the steps of `pulumi preview --json` from standard input, or compare them with approved ones.

    Each step has a hash of the resource's inputs instead of values, so you can publish the output. With --approved,
    exits 1 if a step differs.
    """
    now = steps_of(sys.stdin.read())
    if approved is None:
        click.echo(compact_json(now))
        return
    try:
        require_file(approved)
        expected = json.loads(approved.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{approved}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{approved}: this isn't an output of `hpkit aws steps`") from None
    different = differences(expected, now)
    if different:
        lines = "\n".join(f"  {line}" for line in different)
        raise InputError(f"`up` would make other changes than the approved ones:\n{lines}\nApprove a new preview.")
    click.echo(f"{plural(len(now), 'step')}, as approved")
