"""Runs `pulumi preview --json` for one stack in a given environment, and reads its output."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hpkit.changes.review.model import Preview
from hpkit.changes.review.preview import parse_preview
from hpkit.errors import InputError, ToolError

__all__ = ["run_preview"]

_SECONDS = 1800

# Pulumi's error without a backend and a terminal.
_NO_LOGIN: Final = "PULUMI_ACCESS_TOKEN must be set"


def run_preview(stack: str, folder: Path, environment: Mapping[str, str]) -> Preview:
    """Return what a preview of the working tree would do to a stack; a failed one has problems.

    The environment determines the target: the real account's credentials, or a local cloud's. Raises ToolError if
    Pulumi can't run.
    """
    command = ["pulumi", "preview", "--json", "--show-sames", "--non-interactive", "--stack", stack]
    try:
        result = subprocess.run(  # noqa: S603 - fixed program, the stack's name is one argument
            command, cwd=folder, env=dict(environment), capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"the preview of {stack} took longer than {_SECONDS} seconds") from None
    try:
        preview = parse_preview(result.stdout, stack=stack)
    except InputError:
        if _NO_LOGIN in result.stderr:
            raise ToolError(
                "`pulumi` isn't logged in to a backend. Run `pulumi login`, use a local cloud's environment "
                "(`hpkit local env`), or remove --preview"
            ) from None
        # An engine that fails before the program runs reports it on standard error, and writes no JSON.
        return Preview((), 0, (_last_words(result.stderr or result.stdout),))
    if result.returncode == 0 or preview.problems:
        return preview
    return Preview(preview.steps, preview.unchanged, (_last_words(result.stderr),))


def _last_words(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error:")]
    return (errors or lines or ["pulumi preview failed without output"])[-1].removeprefix("error: ")
