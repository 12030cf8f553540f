"""Runs `pulumi preview --json` for one stack in a given environment, and reads its output."""

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hpkit.changes.review.model import Preview
from hpkit.changes.review.preview import parse_preview
from hpkit.errors import InputError, ToolError

__all__ = ["run_preview"]

_SECONDS = 1800

# How long an interrupted Pulumi may take to release its lock.
_GRACE_SECONDS = 60

# Pulumi's errors without a backend and a terminal, and for a stack that the backend doesn't have.
_NO_LOGIN: Final = "PULUMI_ACCESS_TOKEN must be set"
_NO_STACK: Final = "no stack named"


def run_preview(stack: str, folder: Path, environment: Mapping[str, str]) -> Preview:
    """Return what a preview of the working tree would do to a stack; a failed one has problems.

    The environment determines the target: the real account's credentials, or a local cloud's. Raises ToolError if
    Pulumi can't run.
    """
    with tempfile.TemporaryDirectory() as temporary:
        # Pulumi writes the encryption salt to the stack's file. A copy keeps the repository as it is.
        settings = Path(temporary) / f"Pulumi.{stack}.yaml"
        if (own := folder / "stacks" / settings.name).is_file():
            shutil.copyfile(own, settings)
        command = ["pulumi", "preview", "--json", "--show-sames", "--non-interactive", "--stack", stack]
        result = _run([*command, "--config-file", str(settings)], stack, folder, environment)
    try:
        preview = parse_preview(result.stdout, stack=stack)
    except InputError:
        if _NO_LOGIN in result.stderr:
            raise ToolError(
                "`pulumi` isn't logged in to a backend. Run `pulumi login`, use a local cloud's environment "
                "(`hpkit local env`), or remove --preview"
            ) from None
        if _NO_STACK in result.stderr:
            problem = f"the backend has no stack {stack}. To create it: pulumi stack init {stack}"
            return Preview((), 0, (problem,), ran=False)
        # An engine that fails before the program runs reports it on standard error, and writes no JSON.
        return Preview((), 0, (_last_words(result.stderr or result.stdout),))
    if result.returncode == 0 or preview.problems:
        return preview
    return Preview(preview.steps, preview.unchanged, (_last_words(result.stderr),))


def _run(
    command: Sequence[str], stack: str, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run Pulumi; after Ctrl-C or the time limit, it can release the stack's lock, which it couldn't after a kill."""
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - fixed program, the stack's name is one argument
        command, cwd=folder, env=dict(environment), stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=_SECONDS)
        except (KeyboardInterrupt, subprocess.TimeoutExpired) as reason:
            is_late = isinstance(reason, subprocess.TimeoutExpired)
            # A terminal sends its Ctrl-C to Pulumi too, and a second one would end it without delay.
            if is_late or not sys.stdin.isatty():
                process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=_GRACE_SECONDS)
            process.kill()
            if is_late:
                raise ToolError(f"the preview of {stack} took longer than {_SECONDS} seconds") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _last_words(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error:")]
    return (errors or lines or ["pulumi preview failed without output"])[-1].removeprefix("error: ")
