"""Runs Pulumi on the repository's program against an instance, without a trace in the repository.

Pulumi writes a stack's salt into its settings file; here it gets a copy of that file, which lives with the instance.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpkit.errors import ToolError
from hpkit.teardown import teardown_of
from local.processes.process import identify
from local.supervisor.control import environment
from local.supervisor.instance import Instance
from local.toolchain import tool_path

__all__ = ["VERBS", "Stack"]

VERBS = ("up", "preview", "refresh", "destroy")
_WITHOUT_QUESTIONS = {"up": ("--yes", "--skip-preview"), "refresh": ("--yes",), "destroy": ("--yes",)}
_SALT = re.compile(r"^encryptionsalt:.*$", re.MULTILINE)


class Stack:
    """One stack of the repository on one instance."""

    def __init__(self, instance: Instance, name: str, *, root: Path) -> None:
        """Raise ToolError when the repository has no such stack."""
        self._instance, self._name, self._root = instance, name, root
        self._settings_of_users = root / "stacks" / f"Pulumi.{name}.yaml"
        if not self._settings_of_users.is_file():
            known = sorted(file.name[7:-5] for file in (root / "stacks").glob("Pulumi.*.yaml"))
            raise ToolError(f"there is no stack {name}; the repository has: {', '.join(known) or 'none'}")
        self._project = instance.folder / "project"
        self.environment = {**os.environ, **self._variables(environment(instance))}

    def run(self, verb: str, *extra: str) -> int:
        """Run one of VERBS without questions, output as it comes; return Pulumi's exit code.

        destroy is the word for the whole stack, so it lets go of what is protected; ToolError when the cluster is.
        Ctrl-C lets Pulumi end what it has under way, a second one does not; ToolError then.
        """
        self._prepare()
        if verb == "destroy":
            self.unprotect()
        command = ["pulumi", verb, *_WITHOUT_QUESTIONS.get(verb, ()), *self._which(), "--non-interactive", *extra]
        code, interrupted = _run(command, self._root, self.environment)
        if code != 0 and interrupted:
            raise ToolError(f"{verb} was interrupted. What it made is kept: run it again, it goes on from there")
        return code

    def unprotect(self) -> None:
        """Let go of what the engine keeps; raises ToolError when the cluster itself is protected."""
        ending = teardown_of(self._name, self.read("stack", "export"))
        if ending.refusal:
            raise ToolError(ending.refusal)
        if ending.protected:
            command = ["pulumi", "state", "unprotect", "--all", "--yes", "--stack", self._name, "--non-interactive"]
            self._quietly(command, self._project)

    def read(self, *arguments: str) -> str:
        """Run a Pulumi command that only reads, and return what it says."""
        self._prepare()
        command = ["pulumi", *arguments, "--stack", self._name, "--non-interactive"]
        return self._quietly(command, self._project)

    def remove(self) -> None:
        """Forget the stack; Pulumi refuses while resources are in it."""
        self._quietly(["pulumi", "stack", "rm", "--yes", "--stack", self._name, "--non-interactive"], self._project)

    def _which(self) -> Sequence[str]:
        return ("--stack", self._name, "--config-file", str(self._settings))

    @property
    def _settings(self) -> Path:
        return self._project / "stacks" / self._settings_of_users.name

    def _prepare(self) -> None:
        """Make the stack where it is not, carry the user's settings over, and let go of a dead run's lock."""
        self._write_project()
        self._release()
        _link_language_host(tool_path("pulumi"), tool_path("pulumi-language-python"))
        salt = self._salt()
        if salt is None:
            self._carry("")
            listed = json.loads(self._quietly(["pulumi", "stack", "ls", "--json"], self._project))
            if not any(stack["name"].rpartition("/")[2] == self._name for stack in listed):
                self._quietly(["pulumi", "stack", "init", self._name, "--non-interactive"], self._project)
        else:
            self._carry(salt)

    def _write_project(self) -> None:
        folder = self._settings.parent
        folder.mkdir(parents=True, exist_ok=True)
        project = {"name": "hpkit", "runtime": "python", "stackConfigDir": "stacks"}
        (self._project / "Pulumi.yaml").write_text(json.dumps(project), encoding="utf-8")

    def _salt(self) -> str | None:
        if not self._settings.is_file():
            return None
        found = _SALT.search(self._settings.read_text(encoding="utf-8"))
        return found.group() if found else None

    def _carry(self, salt: str) -> None:
        """Copy the user's settings; a salt of theirs belongs to another passphrase."""
        text = _SALT.sub("", self._settings_of_users.read_text(encoding="utf-8")).rstrip()
        self._settings.write_text(f"{text}\n{salt}\n" if salt else f"{text}\n", encoding="utf-8")

    def _release(self) -> None:
        """Remove locks of runs that are dead: a killed Pulumi leaves them, and the next one would refuse."""
        locks = self._instance.folder / "pulumi-state" / ".pulumi" / "locks"
        for lock in locks.rglob(f"{self._name}/*.json"):
            try:
                held = json.loads(lock.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if held.get("hostname") == socket.gethostname() and not _runs(int(held.get("pid", 0))):
                lock.unlink(missing_ok=True)

    def _quietly(self, command: Sequence[str], folder: Path) -> str:
        done = subprocess.run(  # noqa: S603 - commands are the kit's own
            command, cwd=folder, env=self.environment, check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise ToolError(f"{' '.join(command[:3])}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def _variables(self, given: Mapping[str, str]) -> dict[str, str]:
        # The program runs on this Python, whatever the shell has active.
        own = str(Path(sys.executable).parent)
        return {**given, "PATH": os.pathsep.join([own, given["PATH"]])}


def _link_language_host(pulumi: Path, language_host: Path) -> None:
    """Link the language host beside a Pulumi of the kit's own: the engine warns of one that it finds elsewhere."""
    if pulumi.parent == language_host.parent or pulumi.parents[3] != language_host.parents[3]:
        return
    for file in language_host.parent.iterdir():
        beside = pulumi.parent / file.name
        if not beside.exists():
            beside.unlink(missing_ok=True)
            beside.symlink_to(file)


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, bool]:
    """Run a command that hears of interruptions from here alone; return its exit code, and whether there was one.

    A terminal would interrupt its plugins too, and what they make at that moment would be lost.
    """
    interrupted = False
    process: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, frame: object) -> None:
        del number, frame
        nonlocal interrupted
        interrupted = True
        if process is not None:
            process.send_signal(signal.SIGINT)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)  # noqa: S603
        if interrupted:
            process.send_signal(signal.SIGINT)
        return process.wait(), interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _runs(pid: int) -> bool:
    return pid > 0 and identify(pid) is not None
