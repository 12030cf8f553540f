"""The folder of a trial: its project, its state, its logs, and the commands that run there."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from boto3 import Session
from kubernetes.client import ApiException

from hpkit.changes.steps import steps_of
from hpkit.clients.kubernetes import KUBERNETES_ERRORS, api_client
from hpkit.clients.processes import Interrupts, run
from hpkit.cluster.live.kubernetes import TOO_MANY_REQUESTS, Kubernetes
from hpkit.cluster.live.read import find
from hpkit.errors import ToolError
from hpkit.plan.model import Plan
from hpkit.program.recording import Recording, record
from hpkit.program.teardown import resources_in
from hpkit.project import load_stack
from hpkit.scaffold import Choice, project_files
from hpkit.trial.events import Changes, changes_in
from hpkit.trial.organization import NAME, STACK, Place, organization_text

__all__ = ["Site", "StepError", "now", "region_left"]

_POLL_SECONDS: Final = 1.0
_SILENT_SECONDS: Final = 120.0
# They change where, when or in which format Pulumi writes the state, which is also read without Pulumi.
_OTHER_STATE: Final = ("PULUMI_DIY_BACKEND_", "PULUMI_SELF_MANAGED_STATE_", "PULUMI_SKIP_CHECKPOINTS")
_FILES: Final = ("Pulumi.yaml", "__main__.py")
# How services and Kubernetes report a missing permission; the action follows if the message names it.
_ACTION: Final = re.compile(r"is not authorized to perform: ([\w-]+:\w+)|(cannot \w+ resource \"[^\"]+\")")
_CODE: Final = re.compile(r"AccessDenied\w*|UnauthorizedOperation")
# The SDKs of Python and Go word an ended login of IAM Identity Center in several ways.
_EXPIRED: Final = re.compile(
    r"(?i)ExpiredToken|RequestExpired|token (?:included in the request )?(?:is|has) expired|loading SSO token"
    r"|SSO (?:session|token)\b.*\b(?:expired|invalid|failed)|failed to refresh cached credentials"
)
_CLOCK: Final = re.compile(r"(?i)RequestTimeTooSkewed|Signature (?:expired|not yet current)|RequestInTheFuture")
# What Pulumi adds to the program's own error.
_AGAIN: Final = "an unhandled error occurred"


def now() -> float:
    """Return the seconds of a clock that also counts while this machine sleeps, as AWS does."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def region_left(folder: Path) -> str | None:
    """Return the region of what an earlier trial left, by its aws provider; None if it left nothing."""
    resources = _state_in(_stack_file(folder)).get("resources") or []
    regions = [each["inputs"]["region"] for each in resources if each["type"] == "pulumi:providers:aws"]
    return str(regions[0]) if regions and resources_in(resources) else None


class StepError(Exception):
    """A step failed; the text is the reason."""


class _EndedError(StepError):
    """A command was ended, for a reason that its own errors don't name."""


class Site:
    """A trial's folder, and what its steps share."""

    def __init__(
        self,
        folder: Path,
        *,
        session: Session,
        environment: Mapping[str, str],
        interrupts: Interrupts,
        version: str,
    ) -> None:
        self.folder, self.session, self.interrupts = folder, session, interrupts
        self._version = version
        self.environment = {
            **{name: value for name, value in environment.items() if not name.startswith(_OTHER_STATE)},
            "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(folder / "passphrase"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # The engine writes its event log only then; Pulumi's Automation API uses it in the same way.
            "PULUMI_DEBUG_COMMANDS": "true",
            "HPKIT_STACK": "",
        }
        self.environment.pop("PULUMI_CONFIG_PASSPHRASE", None)
        self.log = folder / "logs" / "start.log"
        self.denied: dict[str, None] = {}
        self.causes: set[str] = set()
        self.longest: list[tuple[str, float]] = []
        self.commands: list[str] = []
        # When the current step must end, as time.monotonic, and all steps but the teardown, as now.
        self.step_until = self.budget_until = float("inf")
        self.limited = "step"
        self.accepted_interrupts = 0
        self._recording: Recording | None = None
        self._held = -1

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder. Raises ToolError while another trial, or a command that it began, uses it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ToolError(
                    f"a trial is running in {self.folder}, or a command of a trial that was killed. Wait until it ends"
                ) from None
            yield
        finally:
            os.close(self._held)

    def prepare(self, place: Place) -> None:
        """Write the project."""
        for name in ("state", "logs", "stacks"):
            (self.folder / name).mkdir(exist_ok=True)
        passphrase = self.folder / "passphrase"
        if not passphrase.exists():
            passphrase.touch(0o600)
            passphrase.write_text(secrets.token_urlsafe(32), encoding="utf-8")
        files = project_files(Choice(NAME, "handson", "none", self._version))
        for name in _FILES:
            (self.folder / name).write_text(files[name], encoding="utf-8")
        link = self.folder / ".venv"
        link.unlink(missing_ok=True)
        link.symlink_to(sys.prefix)
        self.write(place)

    def create_stack(self) -> None:
        """Create the Pulumi stack unless an earlier trial did."""
        if not _stack_file(self.folder).exists():
            self.command("pulumi", "stack", "init", STACK, "--non-interactive")

    def write(self, place: Place, *, third_team: bool = False, shifted: bool = False) -> None:
        """Write the organization file."""
        text = organization_text(place, third_team=third_team, shifted=shifted)
        (self.folder / "stacks" / f"{NAME}.yaml").write_text(text, encoding="utf-8")

    def foretell(self, *, deletion: bool = False) -> dict[str, int]:
        """Return the changes that `hpkit review` predicts from the last call on, as `Changes.counts` has them."""
        before, self._recording = self._recording, None if deletion else record(self.plan())
        if deletion:
            steps = [replace(step, action="delete") for step in steps_of(None, before)]
        else:
            steps = list(steps_of(before, self._recording))
        counts = Counter(f"{step.action} {step.type}" for step in steps if step.holds)
        return dict(sorted(counts.items()))

    def plan(self) -> Plan:
        """Return the plan of the organization file."""
        (plan,) = load_stack(STACK, root=self.folder).plans.values()
        return plan

    def command(self, *words: str, ok: tuple[int, ...] = (0,)) -> str:
        """Run a command in the folder and return its output. Raises StepError for other exit codes than `ok`."""
        self.commands.append(" ".join(words).replace(f"{self.folder}/", ""))
        before = self.log.stat().st_size if self.log.exists() else 0
        code, reason = run(
            words,
            folder=self.folder,
            environment=self.environment,
            log=self.log,
            held=self._held,
            stop_reason=self.stop_reason,
        )
        with self.log.open("rb") as log:
            log.seek(before)
            output = log.read().decode("utf-8", "replace").partition("\n")[2]
        self.note(output)
        if reason:
            raise _EndedError(f"{reason}, so `{' '.join(words[:2])}` was ended")
        if code not in ok:
            raise StepError(f"`{' '.join(words[:3])}` failed with exit code {code}: {_last(output)}")
        return output

    def pulumi(self, verb: str, *options: str, ok: tuple[int, ...] = (0,)) -> Changes:
        """Run `pulumi up` or `preview`, or `hpkit aws destroy`, and return the changes. Raises StepError."""
        log = self.log.with_suffix(".events.json")
        log.unlink(missing_ok=True)
        logged = ("--event-log", str(log), *options)
        failure: StepError | None = None
        try:
            if verb == "destroy":
                self.command(
                    "hpkit", "aws", "destroy", "--stack", STACK, "--yes", "--", "--skip-preview", *logged, ok=ok
                )
            else:
                always = ("--yes", "--skip-preview") if verb == "up" else ()
                self.command("pulumi", verb, "--stack", STACK, "--non-interactive", *always, *logged, ok=ok)
        except StepError as error:
            failure = error
        changes = changes_in(log)
        self.longest += changes.longest
        if failure is None:
            return changes
        errors = [each for each in changes.errors if not each.startswith(_AGAIN)]
        if isinstance(failure, _EndedError) or not errors:
            raise failure
        raise StepError("\n".join(errors))

    def resources(self) -> list[str]:
        """Return the type and ID of each resource in the state."""
        found = resources_in(_state_in(_stack_file(self.folder)).get("resources") or [])
        return [f"{each['type']} {each.get('id', '')}".strip() for each in found]

    def unfinished(self) -> int:
        """Return the number of operations that a killed run left in the state."""
        return len(_state_in(_stack_file(self.folder)).get("pending_operations") or ())

    def is_locked(self) -> bool:
        """Return whether a run holds the state, also one that was killed."""
        return any((self.folder / "state" / ".pulumi" / "locks").rglob("*.json"))

    @contextmanager
    def kubernetes(self, session: Session | None = None) -> Iterator[Kubernetes]:
        """Return a client of the cluster's API; session: whose identity it uses, the trial's by default."""
        clusters = find(self.session, NAME)
        with api_client(session or self.session, clusters.eks) as client:
            yield Kubernetes(client)

    def wait(self, holds: Callable[[], bool], what: str) -> float:
        """Wait until a condition holds, and return the seconds. Raises StepError with `what` if it never does.

        A Kubernetes API that doesn't answer for a while, as one of EKS that is scaled, is asked again.
        """
        begun = answered = time.monotonic()
        while True:
            try:
                if holds():
                    return time.monotonic() - begun
                answered = time.monotonic()
            except KUBERNETES_ERRORS as error:
                is_answer = isinstance(error, ApiException) and 0 < int(error.status or 0) < TOO_MANY_REQUESTS
                if is_answer or time.monotonic() - answered > _SILENT_SECONDS:
                    raise
            if reason := self.stop_reason():
                raise StepError(f"{reason} while waiting for {what}")
            time.sleep(_POLL_SECONDS)

    def note(self, output: str) -> None:
        """Keep the missing permissions that a text names, and what ends every call."""
        for line in output.splitlines():
            actions = [action or rule for action, rule in _ACTION.findall(line)]
            self.denied |= dict.fromkeys(actions or _CODE.findall(line))
        if _EXPIRED.search(output):
            self.causes.add("expired")
        if _CLOCK.search(output):
            self.causes.add("clock")

    def stop_reason(self) -> str:
        """Return why the current step must end, or ""."""
        if self.interrupts.count > self.accepted_interrupts:
            return "the trial was interrupted"
        if now() > self.budget_until:
            return "the budget allows only the teardown now"
        return f"the {self.limited}'s time limit is over" if time.monotonic() > self.step_until else ""


def _stack_file(folder: Path) -> Path:
    return folder / "state" / ".pulumi" / "stacks" / NAME / f"{STACK}.json"


def _state_in(file: Path) -> dict[str, Any]:
    """Return the state that the backend holds, without a command: it must be readable whatever happens.

    A state file that was cut off is replaced with the previous one, because Pulumi refuses it.
    """
    try:
        return _latest(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError):
        text = file.with_suffix(".json.bak").read_text(encoding="utf-8")
        latest = _latest(text)
        file.write_text(text, encoding="utf-8")
        return latest


def _latest(checkpoint: str) -> dict[str, Any]:
    latest: dict[str, Any] | None = json.loads(checkpoint)["checkpoint"]["latest"]
    return latest or {}


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no output"])[-1]
