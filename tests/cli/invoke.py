"""Runs `hpkit` in this process, to test its output; test_validate.py runs it as a separate process."""

import contextlib
import subprocess
import sys
from pathlib import Path
from unittest import mock

from click.testing import CliRunner

from hpkit.cli import main
from tests.program.recorder import recording_of

__all__ = ["hpkit"]


def hpkit(*arguments, cwd, **environment):
    """Run the command in a folder, with additional variables, and return its result."""
    words = [str(Path(sys.executable).parent / "hpkit"), *map(str, arguments)]
    with (
        CliRunner().isolation(env=environment) as (stdout, stderr, _),
        contextlib.chdir(cwd),
        mock.patch.object(sys, "argv", words),
        mock.patch("hpkit.program.recording.record", recording_of),
    ):
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        said = stdout.getvalue().decode(), stderr.getvalue().decode()
    return subprocess.CompletedProcess(words, code, *said)
