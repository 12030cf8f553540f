"""Executes a page as a new user would: its commands in one shell, compared with the output that it shows."""

import re
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Shell", "Step", "agrees", "steps_of"]

SECONDS = 600
# Kueue or kubelets update these a moment after kubectl returns.
PATIENCE = 90.0
_HEREDOC = re.compile(r"<<'(\w+)'")
# What varies: times and dates, hours and prices, random parts of names, numbers of a stack's resources, and what some
# versions of kubectl add.
_VARYING = re.compile(
    r"""(?<![\w.])\d+(\.\d+)?\ s\b | (?<![\w.])(\d+[dhms])+\b | (?<=\bin\ )\d+\ min\b
    | \d{4}-\d\d-\d\d(\ \d\d:\d\d\ UTC)? | (?<![\w.])\d+\.\d\d\b
    | (?<=\bi-)[0-9a-f]{17}\b | (?<=\w-)([0-9a-f]{5} | [bcdfghj-np-tv-xz2-9]{5} | [bcdfghj-np-tv-xz2-9]{8,10})\b
    | \d{2,}(?=\ (resources\ )?(created|unchanged|deleted))
    | (?<="\ deleted)(\ from\ \S+\ namespace)?$""",
    re.VERBOSE,
)
_LOOKS = re.compile(r"kubectl (--\S+ )*(get|describe) |hpkit (cluster status|job why) ")


@dataclass(frozen=True)
class Step:
    """A command on a page, and the lines that follow it."""

    command: str
    shown: tuple[str, ...]

    @property
    def rejected(self) -> bool:
        """Return whether the page states that the command fails."""
        return self.command.splitlines()[0].endswith("# fails")


def steps_of(page: str) -> list[Step]:
    """Return the commands of a page's console blocks, in order.

    A comment `<!-- edit ... -->` makes an edit that the page shows as YAML.
    """
    steps: list[Step] = []
    for block in re.findall(r"(?:```console|<!-- edit)\n(.*?)(?:```|-->)", page, re.DOTALL):
        lines, command, shown = block.splitlines(), [], []
        until = None
        for line in lines:
            if until is not None or (command and command[-1].endswith("\\") and not shown):
                command.append(line)
                until = None if line == until else until
            elif line.startswith("$ "):
                if command:
                    steps.append(Step("\n".join(command), tuple(shown)))
                command, shown = [line.removeprefix("$ ")], []
                begun = _HEREDOC.search(line)
                until = begun[1] if begun else None
            else:
                shown.append(line)
        steps.append(Step("\n".join(command), tuple(shown)))
    return steps


def agrees(shown: tuple[str, ...], said: str) -> bool:
    """Return whether the output contains all lines that a page shows, in order.

    `…` matches anything, and what varies matches other values.
    """
    lines = iter(" ".join(line.split()) for line in said.splitlines())
    wanted = [" ".join(line.split()) for line in shown if line.strip() not in ("", "…")]
    patterns = [re.compile(re.escape(_VARYING.sub("…", line)).replace("…", ".*")) for line in wanted]
    return all(any(pattern.fullmatch(line) for line in lines) for pattern in patterns)


class Shell:
    """A bash that keeps its folder and variables from command to command, as a terminal does."""

    def __init__(self, folder: Path, environment: dict[str, str], scripts: Path) -> None:
        self._scripts = scripts
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """Return exit code and output of both streams."""
        mark = uuid.uuid4().hex
        script = self._scripts / f"{mark}.sh"
        script.write_text(f"{command}\n", encoding="utf-8")
        self._process.stdin.write(f". {script} < /dev/null; __code=$?; echo; echo {mark} $__code\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(f"{mark} "):
                return int(line.split()[1]), "".join(lines).removesuffix("\n")
            lines.append(line)
        raise AssertionError(f"the shell ended in {command!r}: {''.join(lines)}")

    def follow(self, step: Step) -> str:
        """Run a step, and compare its output; commands that only read (such as kubectl get) are repeated."""
        deadline = time.monotonic() + PATIENCE
        while True:
            code, output = self.run(step.command)
            if (code != 0) is step.rejected and agrees(step.shown, output):
                return output
            looks = _LOOKS.match(step.command) is not None
            wanted = "\n".join(step.shown)
            assert looks, f"$ {step.command}\n{output}\nends with {code}; the page shows\n{wanted}"
            assert time.monotonic() < deadline, f"$ {step.command}\n{output}\nis not, after a while,\n{wanted}"
            time.sleep(0.5)

    def close(self) -> None:
        """End the shell, as `exit` does."""
        self._process.stdin.close()
        self._process.wait(SECONDS)
        self._process.stdout.close()
