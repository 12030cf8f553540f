"""Runs the pack without an engine: every policy on the registered resources, with an organization's settings.

It doesn't remediate: what the pack would set is a violation here, as for a reader of the review.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpkit_policies.adapter import plain
from hpkit_policies.model import Level, Policy, Resource, Settings, Undecided, Violation, unknown_as_undecided
from hpkit_policies.pack import POLICIES
from hpkit_policies.waivers import RunState, configuration_policy

if TYPE_CHECKING:
    from hpkit.program.recording import RecordedResource

__all__ = ["PolicyFinding", "parse_recording", "run_policies"]

_PROVIDER = "pulumi:providers:"
_LEVEL = "enforcementLevel"


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """A policy's result at its level, for a resource (type and name) or, if these are empty, for the stack.

    cause and property_path: the violating resource and input, if a violation states them.
    """

    policy: str
    level: Level
    type: str
    name: str
    message: str
    fix: str
    cause: Resource | None = None
    property_path: str = ""


def parse_recording(recording: "Iterable[RecordedResource]") -> list[Resource]:
    """Return registered resources as policies see them, without providers, which no policy checks."""
    registered = list(recording)
    providers = {resource.urn: plain(resource.inputs) for resource in registered if resource.type.startswith(_PROVIDER)}
    return [
        Resource(
            resource.type,
            resource.name,
            resource.urn,
            plain(resource.inputs),
            protect=resource.protect,
            ignored=resource.ignore_changes,
            provider=providers.get(resource.provider, {}),
            dependencies=tuple(sorted(resource.after)),
            property_dependencies={name: tuple(sorted(urns)) for name, urns in resource.uses.items()},
        )
        for resource in registered
    ]


def run_policies(
    resources: Sequence[Resource], settings: Mapping[str, Any], today: datetime.date | None = None
) -> list[PolicyFinding]:
    """Return what the pack reports, mandatory violations first.

    settings: the contents of `stacks/<organization>.policy.json`; today determines which waivers have expired.
    """
    run_state = RunState(today)
    findings: list[PolicyFinding] = []
    for policy in (*POLICIES, configuration_policy(run_state)):
        level, parameters = _merge_settings(policy, settings)
        if level != "disabled":
            run_state.observe(policy, parameters)
            findings += _findings(policy, level, _results(policy, resources, parameters, run_state))
    return sorted(
        findings,
        key=lambda finding: (finding.level == "advisory", finding.policy, finding.type, finding.name, finding.message),
    )


def _merge_settings(policy: Policy, settings: Mapping[str, Any]) -> tuple[Level, Settings]:
    """Return level and parameters, merged as the engine does: the pack's values, then `all`'s, then the policy's."""
    level: Level = policy.level
    parameters: dict[str, Any] = dict(policy.defaults)
    for name in ("all", policy.name):
        setting: Any = settings.get(name, {})
        entry: dict[str, Any] = {_LEVEL: setting} if isinstance(setting, str) else setting
        level = entry.get(_LEVEL, level)
        parameters |= {key: value for key, value in entry.items() if key != _LEVEL}
    return level, parameters


def _results(
    policy: Policy, resources: Sequence[Resource], parameters: Settings, run_state: RunState
) -> Iterator[tuple[Violation | Undecided, Resource | None]]:
    if policy.validate_stack is not None:
        results = unknown_as_undecided(policy.validate_stack(resources, parameters))
        yield from ((item, item.resource) for item in run_state.not_waived(policy, results, None))
        return
    for resource in resources:
        if policy.validate is None or not policy.applies_to(resource.type):
            continue
        results = unknown_as_undecided(policy.validate(resource, parameters))
        for item in run_state.not_waived(policy, results, resource):
            yield item, item.resource or resource


def _findings(
    policy: Policy, level: Level, results: Iterable[tuple[Violation | Undecided, Resource | None]]
) -> Iterator[PolicyFinding]:
    for item, resource in results:
        resource_type, name = (resource.type, resource.name) if resource else ("", "")
        if isinstance(item, Violation):
            cause = item.cause or resource
            fix = policy.advice(item.fix)
            yield PolicyFinding(policy.name, level, resource_type, name, item.message, fix, cause, item.property_path)
        else:
            message = f"not checked: {item.message}"
            fix = "`pulumi up` checks it once the value is known."
            yield PolicyFinding(policy.name, "advisory", resource_type, name, message, fix, resource)
