"""Waivers: violations that an organization accepts, with a reason and an end date."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpkit.plan.waiver_length import LONGEST_DAYS, is_too_long
from hpkit_policies.model import POLICY_FILE, Parameter, Policy, Resource, Results, Settings, Undecided, Violation

__all__ = ["WAIVERS", "RunState", "configuration_policy"]

WAIVERS = Parameter(
    "waivers",
    "Accepted violations, by resource name, with a reason and an end date.",
    {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["resource", "reason", "until"],
            "additionalProperties": False,
            "properties": {
                "resource": {"type": "string", "minLength": 1},
                "reason": {"type": "string", "minLength": 1},
                "until": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
            },
        },
    },
    [],
)
_CONFIGURATION = "policy-configuration"


@dataclass(slots=True)
class _PolicyRun:
    """The configuration of one policy, and the names of resources that it reported or couldn't check."""

    policy: Policy
    settings: Settings
    violating: set[str] = field(default_factory=set)
    undecided: set[str] = field(default_factory=set)


class RunState:
    """The results of all policies in one run, so that the last policy can check the waivers.

    The engine calls resource policies for one resource at a time, so only this state sees all results. inputs: URN →
    the registered inputs of the resource.
    """

    def __init__(self, today: datetime.date | None = None) -> None:
        self._today = today
        self._runs: dict[str, _PolicyRun] = {}
        self.inputs: dict[str, Mapping[str, Any]] = {}

    @property
    def today(self) -> datetime.date:
        """Return the day that decides which waivers have ended."""
        return self._today or datetime.datetime.now(tz=datetime.UTC).date()

    def observe(self, policy: Policy, settings: Settings) -> None:
        """Record that a policy runs, and its configuration."""
        self._runs.setdefault(policy.name, _PolicyRun(policy, settings))

    def not_waived(
        self, policy: Policy, results: Iterable[Violation | Undecided], resource: Resource | None
    ) -> Results:
        """Pass on what no valid waiver covers, joined if the policy does so; resource: the checked resource."""
        run = self._runs[policy.name]
        kept: list[Violation] = []
        waived = {waiver["resource"] for waiver in self._waivers(run) if not self._void(waiver)}
        for item in results:
            subject = item.resource or resource
            name = subject.name if subject else ""
            if isinstance(item, Undecided):
                run.undecided.add(name)
                yield item
                continue
            run.violating.add(name)
            if name not in waived:
                kept.append(item)
                if policy.join is None:
                    yield item
        if policy.join is not None and kept:
            yield policy.join(kept)

    def validate_configuration(self, _resources: Sequence[Resource], _settings: Settings) -> Results:
        """Report parameters of no policy, and waivers that have expired, have no effect, or aren't allowed."""
        for run in self._runs.values():
            parameter_names = {parameter.name for parameter in run.policy.parameters}
            for name in sorted(set(run.settings) - parameter_names - {WAIVERS.name}):
                yield Violation(
                    f"{run.policy.name} has no parameter {name} (parameters: "
                    f"{', '.join(sorted(parameter_names)) or 'none'})",
                    f"Remove it from {POLICY_FILE}, or correct its name.",
                )
            yield from self._validate_waivers(run)

    def _validate_waivers(self, run: _PolicyRun) -> Results:
        name = run.policy.name
        waivers = run.settings.get(WAIVERS.name) or []
        if waivers and not run.policy.waivable:
            yield Violation(f"{name} can't be waived", f"Remove its waivers from {POLICY_FILE}, and fix the cause.")
            return
        for waiver in waivers:
            resource = waiver["resource"]
            void = self._void(waiver)
            if void:
                yield Violation(
                    f"the waiver of {name} for {resource} {void} ({waiver['reason']})",
                    f"Fix the cause, or set a new date in {POLICY_FILE} and a reason that still applies.",
                )
            elif resource not in run.violating | run.undecided:
                yield Violation(
                    f"the waiver of {name} for {resource} matches no violation", f"Remove it from {POLICY_FILE}."
                )

    @staticmethod
    def _waivers(run: _PolicyRun) -> Sequence[Mapping[str, Any]]:
        return (run.settings.get(WAIVERS.name) or []) if run.policy.waivable else []

    def _void(self, waiver: Mapping[str, Any]) -> str | None:
        """Return why a waiver waives nothing: it has no end, has ended, or ends too late."""
        try:
            until = datetime.date.fromisoformat(waiver["until"])
        except ValueError:
            return f"has no valid end date: {waiver['until']} isn't a date"
        if is_too_long(until, self.today):
            return f"lasts until {until}; the limit is {LONGEST_DAYS} days"
        return f"expired on {until}" if until < self.today else None


def configuration_policy(run_state: RunState) -> Policy:
    """Return the policy that checks the configuration of all others; it must be last."""
    return Policy(
        name=_CONFIGURATION,
        description="Waivers haven't expired and have an effect, and parameters are known.",
        validate_stack=run_state.validate_configuration,
        waivable=False,
    )
