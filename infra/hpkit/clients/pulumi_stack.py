"""A Pulumi stack: the commands of Pulumi's CLI."""

import json
import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hpkit.clients.processes import run_attended
from hpkit.errors import ToolError

__all__ = ["PulumiStack"]

_LOCKED = "the stack is currently locked"
# A line of that message: created by user@host (pid 42) at 2026-11-27T18:00:00Z.
_HOLDER = re.compile(r"created by \S*@(\S+) \(pid (\d+)\)")
# Pulumi's message about a truncated state file.
_CUT_OFF = re.compile(r"\bEOF\b|unexpected end of JSON input")


class PulumiStack:
    """One stack; root is the folder of Pulumi.yaml. Every method raises ToolError with Pulumi's message.

    environment: that of Pulumi's processes, with `pulumi` on its PATH.
    """

    def __init__(self, stack: str, *, root: Path, environment: Mapping[str, str]) -> None:
        self.stack, self._root, self._environment = stack, root, environment

    def create(self) -> None:
        """Create the stack unless the backend has it."""
        if not self.exists():
            self.run("stack", "init", self.stack)

    def export(self, *options: str) -> dict[str, Any]:
        """Return the stack's state; options: of `pulumi stack export`."""
        state: dict[str, Any] = json.loads(self.run("stack", "export", "--stack", self.stack, *options))
        return state

    def exists(self) -> bool:
        """Return whether the backend has the stack."""
        listed = json.loads(self.run("stack", "ls", "--json"))
        return any(each["name"].rpartition("/")[2] == self.stack for each in listed)

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Replace the stack's state."""
        with _file(state) as path:
            self.run("stack", "import", "--stack", self.stack, "--file", path)

    def import_file(self, document: Mapping[str, Any]) -> None:
        """Import the resources of an import file and show Pulumi's output; they are protected until the first `up`."""
        with _file(document) as path:
            options = ["--generate-code=false", "--yes", "--skip-preview"]
            command = self._command("import", "--stack", self.stack, "--file", path, *options)
            code = run_attended(command, folder=self._root, environment=self._environment)
        if code != 0:
            raise ToolError(
                f"`pulumi import` ended with {code}. What it imported is kept: "
                "fix the errors above, and run the same command again"
            )

    def preview(self) -> str:
        """Return the output of `pulumi preview --json`; raises ToolError with its errors where it fails."""
        done = self._done("preview", "--stack", self.stack, "--json")
        if done.returncode == 0:
            return done.stdout
        raise ToolError(f"the first preview fails, and `pulumi up` would too: {_errors(done)}")

    def replace_state(self, before: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Replace the state unless another run changed or locked it; release the lock of one that was killed here."""
        if self.export()["deployment"] != before["deployment"]:
            raise ToolError(f"another run has changed the state of {self.stack}. Nothing was changed; run this again")
        try:
            self.write_state(state)
        except ToolError as error:
            if not _is_of_dead_run(str(error)):
                raise
            self.run("cancel", "--yes", "--stack", self.stack)
            self.write_state(state)

    def refresh(self, *urns: str) -> None:
        """Read live resources into the state; urns: by default all."""
        targets = [word for urn in urns for word in ("--target", urn)]
        self.run("refresh", "--stack", self.stack, "--yes", "--skip-preview", *targets)

    def _command(self, *arguments: str) -> list[str]:
        return ["pulumi", *arguments, "--non-interactive"]

    def _done(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - the arguments are hpkit's own
            self._command(*arguments),
            cwd=self._root,
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
        )

    def run(self, *arguments: str) -> str:
        """Run a command of Pulumi without questions, and return its output."""
        done = self._done(*arguments)
        if done.returncode == 0:
            return done.stdout
        output = (done.stderr or done.stdout).strip().removeprefix("error: ")
        if _LOCKED in output:
            output = f"{output}\nIf no other run is active: `pulumi cancel --yes --stack {self.stack}`"
        if _CUT_OFF.search(output):
            output = (
                f"{output}\nThe state file is incomplete: a run was killed while Pulumi wrote it. A file backend keeps "
                f"the previous state in .pulumi/stacks/. Delete {self.stack}.json.attrs there if it's empty. "
                f"Copy {self.stack}.json.bak over {self.stack}.json otherwise. Then run the same command again"
            )
        raise ToolError(f"pulumi {' '.join(arguments[:2])}: {output}")


def _is_of_dead_run(message: str) -> bool:
    """Return whether each lock in Pulumi's message is one of a process of this machine that has ended."""
    holders = _HOLDER.findall(message)
    return bool(holders) and all(host == socket.gethostname() and not _runs(int(pid)) for host, pid in holders)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _errors(done: subprocess.CompletedProcess[str]) -> str:
    try:
        diagnostics = json.loads(done.stdout).get("diagnostics", [])
    except ValueError:
        return (done.stderr or done.stdout).strip()
    return (
        "\n".join(each["message"].strip() for each in diagnostics if each["severity"] == "error") or done.stderr.strip()
    )


@contextmanager
def _file(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield a temporary JSON file, in a folder that only its owner can read, because a state can contain secrets."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "content.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        yield str(path)
