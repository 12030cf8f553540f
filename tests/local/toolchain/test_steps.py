"""Steps report their progress, and a failed one keeps its log."""

import os
import re
import sys
import threading

import pytest

from hpkit.errors import ToolError
from hpkit_local.toolchain.steps import Steps, spoken


def run(steps, code, tmp_path, **more):
    return steps.run(
        [sys.executable, "-c", code], doing="building 1.0.0", cwd=tmp_path, env=os.environ, usual_seconds=90, **more
    )


def test_a_step_says_what_it_does_and_how_long_it_usually_takes(tmp_path, messages):
    assert run(Steps("tiny", messages.append), "print('made')", tmp_path) == "made\n"
    assert messages == ["tiny: building 1.0.0 (usually 90 s)"]


def test_a_long_step_reports_how_far_it_is(tmp_path, messages):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    reported = threading.Event()

    def say(line):
        messages.append(line)
        if "two lines" in line:
            reported.set()

    def open_gate():
        reported.wait(30)
        gate.write_text("go on")

    opener = threading.Thread(target=open_gate)
    opener.start()
    code = (
        f"import sys; print('a', file=sys.stderr); print('b', file=sys.stderr, flush=True); open({str(gate)!r}).read()"
    )
    steps = Steps("tiny", say, every=0.05)
    run(steps, code, tmp_path, done=lambda log: "two lines" if log.endswith("a\nb\n") else "")
    opener.join()
    assert any(re.fullmatch(r"tiny: building 1\.0\.0: two lines, \d+ s of usually 90 s", line) for line in messages), (
        messages
    )


def test_a_failed_step_keeps_its_log_and_says_where(tmp_path, messages):
    steps = Steps("tiny", messages.append)
    code = "import sys; print('\\n'.join(f'line {n}' for n in range(50)), file=sys.stderr); sys.exit(3)"
    with pytest.raises(ToolError) as raised:
        run(steps, code, tmp_path)
    message = str(raised.value)
    assert message.startswith(f"tiny: building 1.0.0 failed with exit code 3. Whole log: {steps.log}\n")
    assert message.endswith("    line 49")
    assert "line 10\n" not in message, "only the end of a long log is shown"
    assert "line 10\n" in steps.log.read_text()


@pytest.mark.parametrize(
    ("printed", "remedy"),
    [
        ("write /x: no space left on device", "Free some space"),
        ("verifying module: checksum mismatch", "doesn't match its pinned hash"),
        ("dial tcp: lookup registry: no such host", "Set GOPROXY or PIP_INDEX_URL"),
        ("No module named pip", "python -m ensurepip"),
    ],
)
def test_a_known_cause_comes_with_its_remedy(tmp_path, messages, printed, remedy):
    with pytest.raises(ToolError, match=remedy):
        run(Steps("tiny", messages.append), f"import sys; sys.exit({printed!r})", tmp_path)


def test_a_killed_step_names_the_signal(tmp_path, messages):
    with pytest.raises(ToolError, match="was killed by signal 9"):
        run(Steps("tiny", messages.append), "import os; os.kill(os.getpid(), 9)", tmp_path)


def test_steps_that_went_well_leave_no_log(tmp_path, messages):
    steps = Steps("tiny", messages.append)
    run(steps, "pass", tmp_path)
    assert steps.log.exists()
    steps.finish()
    assert not steps.log.exists()


@pytest.mark.parametrize(("seconds", "words"), [(5, "5 s"), (119, "119 s"), (120, "2 min 00 s"), (275, "4 min 35 s")])
def test_seconds_are_spoken_as_a_person_says_them(seconds, words):
    assert spoken(seconds) == words
