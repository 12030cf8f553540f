"""Runs the steps of a trial, and deletes what they created, whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError
from kubernetes.client import ApiException

from hpkit.clients.kubernetes import KUBERNETES_ERRORS
from hpkit.cluster.live.kubernetes import message_of
from hpkit.errors import HpkitError
from hpkit.text.plural import plural
from hpkit.trial.account import admit
from hpkit.trial.organization import STACK, Place
from hpkit.trial.report import Status, StepReport, differences, flat
from hpkit.trial.site import Site, StepError
from hpkit.trial.steps import STEPS, Step, sweep

__all__ = ["TEARDOWN_SECONDS", "run_steps", "tear_down"]

# The time limit of a teardown, for which the budget suffices: half an hour for a creation that must finish first, and
# an hour.
TEARDOWN_SECONDS: Final = 5400.0
_ATTEMPTS: Final = 5
# Before the second attempt, then three times as long each: AWS refuses deletions while something is still in use, and
# a network can be gone for minutes.
_PAUSE_SECONDS: Final = 20.0
_LONGER: Final = 3
# How long expired credentials can be renewed before the teardown gives up.
_RENEWAL_SECONDS: Final = 3600.0
_HINTS: Final = {
    "expired": "The credentials have expired. Log in again, such as with `aws sso login`",
    "clock": "This machine's clock is wrong, so AWS rejects its requests. Set the clock",
}
# Steps that --keep skips.
_DELETING: Final = ("destroy", "again", "destroy-again", "leftovers")


def run_steps(site: Site, place: Place, *, keep: bool, say: Callable[[str], None]) -> list[StepReport]:
    """Run the steps until one fails; return a report of each.

    keep: skip the steps from the first deletion on.
    """
    reports: list[StepReport] = []
    failed = ""
    for number, step in enumerate(STEPS, 1):
        if failed or (keep and step.name in _DELETING):
            reports.append(
                _report(site, step, "skipped", 0.0, f"after {failed} failed" if failed else "because of --keep")
            )
            continue
        say(f"{number}/{len(STEPS)} {step.title} …")
        site.log = site.folder / "logs" / f"{number:02}-{step.name}.log"
        site.commands, site.longest = [], []
        site.interrupts.meaning = (
            f"Interrupted: the running operations finish, then everything is {'kept' if keep else 'deleted'}"
        )
        begun = time.monotonic()
        site.step_until = begun + step.seconds
        facts, differing, reason = _facts(site, step, place)
        seconds = time.monotonic() - begun
        reports.append(_report(site, step, "failed" if reason else "ok", seconds, reason, facts, differing))
        say(f"   {'failed: ' + reason if reason else 'ok'}, {seconds:.0f} s")
        failed = step.name if reason else ""
    return reports


def _facts(site: Site, step: Step, place: Place) -> tuple[dict[str, str], list[str], str]:
    """Return the facts of a step, how they differ from the local cloud's, and the reason of its failure or ""."""
    try:
        found, expected = map(flat, step.run(site, place))
        return found, differences(found, expected), ""
    except ApiException as error:
        reason = f"the Kubernetes API refuses the request: {message_of(error)}"
    except (StepError, HpkitError, BotoCoreError, ClientError, *KUBERNETES_ERRORS) as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - an answer without an expected part must not cost the report
        reason = f"{type(error).__name__}: {error}"
    site.note(reason)
    hints = [_HINTS[cause] for cause in sorted(site.causes)]
    return {}, [], ". ".join([reason, *hints])


def _report(
    site: Site,
    step: Step,
    status: Status,
    seconds: float,
    reason: str,
    facts: Mapping[str, str] | None = None,
    differing: Sequence[str] = (),
) -> StepReport:
    ran = status != "skipped"
    return {
        "name": step.name,
        "title": step.title,
        "status": status,
        "seconds": round(seconds, 1),
        "reason": reason,
        "facts": dict(facts or {}),
        "differences": list(differing),
        "longest": [{"resource": name, "seconds": each} for name, each in site.longest] if ran else [],
        "commands": list(site.commands) if ran else [],
    }


def tear_down(site: Site, *, say: Callable[[str], None]) -> list[str]:
    """Delete what the state has, in several attempts; return the resources that are left."""
    site.log = site.folder / "logs" / "teardown.log"
    site.budget_until = float("inf")
    site.limited, site.step_until = "deletion", time.monotonic() + TEARDOWN_SECONDS
    site.accepted_interrupts = site.interrupts.count
    site.interrupts.meaning = "Interrupted again: the teardown ends, and what is left is listed"
    renewal_until = time.monotonic() + _RENEWAL_SECONDS
    attempt = 0
    while left := site.resources():
        if site.stop_reason() or attempt == _ATTEMPTS:
            break
        say(f"deleting {plural(len(left), 'resource')} …")
        site.causes.clear()
        try:
            admit(site)
            sweep(site)
            # A plugin that was killed alone leaves no unfinished operation in the state.
            if site.unfinished() or site.is_locked() or attempt:
                _recover(site, say)
            site.pulumi("destroy")
        except (StepError, HpkitError) as error:
            say(f"   {error}")
            for cause in sorted(site.causes):
                say(f"   {_HINTS[cause]}; the teardown is tried again for an hour")
            # To log in again can take longer than all attempts.
            attempt += not site.causes or time.monotonic() > renewal_until
            if attempt < _ATTEMPTS:
                _pause(site, _PAUSE_SECONDS * _LONGER ** max(attempt - 1, 0))
    return left


def _recover(site: Site, say: Callable[[str], None]) -> None:
    try:
        site.command("hpkit", "aws", "recover", "--stack", STACK, "--yes")
    except StepError as error:
        # What the state has can be deleted without it.
        say(f"   {error}")


def _pause(site: Site, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not site.stop_reason():
        time.sleep(0.2)
