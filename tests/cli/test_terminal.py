"""Color is only for terminals, and NO_COLOR is honored."""

import os
import pty
import subprocess

import pytest

from tests.builders import text_of
from tests.cli.test_validate import BROKEN, HPKIT, ROOT


def on_a_terminal(*arguments, **environment):
    """Run hpkit with a real pseudo-terminal as its output."""
    main, end = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [HPKIT, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=end,
        stderr=subprocess.DEVNULL,
        env={**clean, "TERM": "xterm-256color", **environment},
    )
    os.close(end)
    output = b""
    try:
        while chunk := os.read(main, 65536):
            output += chunk
    except OSError:
        pass  # The other end is closed, so all output has been read.
    finally:
        os.close(main)
    process.wait(timeout=300)
    return output.decode()


@pytest.mark.parametrize("arguments", [("validate",), ("quota",)], ids=str)
def test_a_terminal_gets_colour_unless_no_color_is_set(arguments, tmp_path):
    if arguments == ("validate",):
        file = tmp_path / "broken.yaml"
        file.write_bytes(text_of(BROKEN))
        arguments = ("validate", str(file))
    assert "\x1b[" in on_a_terminal(*arguments)
    assert "\x1b[3" not in on_a_terminal(*arguments, NO_COLOR="1")
