"""Checks organizations' policy files without an engine.

Pulumi checks the parameters of known policies, and ignores unknown policy names.
"""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, get_args

from hpkit_policies.model import Level, Parameter, Policy
from hpkit_policies.pack import POLICIES
from hpkit_policies.values import unknown_names, wrong
from hpkit_policies.waivers import WAIVERS, RunState, configuration_policy

__all__ = ["problems"]

_POLICIES: Final = {policy.name: policy for policy in (*POLICIES, configuration_policy(RunState()))}
_LEVELS: Final = get_args(Level)
_REGIONS: Final = "regions-allowed"
_LEVEL: Final = "enforcementLevel"
# Both stop an update; other levels would let through violations that can't be waived.
_STOPPING: Final = ("mandatory", "remediate")


def problems(text: str) -> list[str]:
    """Return the problems of a policy file, one sentence each."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        return [f"invalid JSON at line {error.lineno}, column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"]
    if not isinstance(data, dict):
        return ["must be a JSON object that maps policies to settings"]
    return [problem for name, given in data.items() for problem in _entry(name, given)]


def _entry(name: str, given: Any) -> list[str]:
    settings: Any = {_LEVEL: given} if isinstance(given, str) else given
    if not isinstance(settings, Mapping):
        return [f"{name}: must be an enforcement level or an object of parameters"]
    level = settings.get(_LEVEL)
    if level is not None and level not in _LEVELS:
        return [f"{name}: {level} isn't a valid enforcement level (levels: {', '.join(_LEVELS)})"]
    if name == "all":
        # Pulumi's key for all policies that have no key of their own.
        lowered = level is not None and level not in _STOPPING
        return ["all: would lower policies that can't be waived; name the policies instead"] if lowered else []
    policy = _POLICIES.get(name)
    if policy is None:
        near = ", ".join(get_close_matches(name, _POLICIES, n=1))
        return [f"{name}: no such policy{f', did you mean {near}?' if near else ''}"]
    return _parameters(policy, settings)


def _parameters(policy: Policy, settings: Mapping[str, Any]) -> list[str]:
    known_names = [parameter.name for parameter in policy.parameters] + ([WAIVERS.name] if policy.waivable else [])
    problems = [
        f"{policy.name}: unknown parameter {name} (parameters: {', '.join(known_names) or 'none'})"
        for name in settings
        if name not in (*known_names, _LEVEL)
    ]
    for parameter in (*policy.parameters, *((WAIVERS,) if policy.waivable else ())):
        if parameter.name in settings:
            problems += _values(policy, parameter, settings[parameter.name])
    if not policy.waivable and settings.get(_LEVEL, "mandatory") not in _STOPPING:
        problems.append(f"{policy.name}: can't be lowered to {settings[_LEVEL]}, because it can't be waived")
    return problems


def _values(policy: Policy, parameter: Parameter, value: Any) -> list[str]:
    where = f"{policy.name}: {parameter.name}"
    found = list(wrong(parameter.schema, value, where))
    return found or list(unknown_names(parameter.schema, value, where, regions=policy.name == _REGIONS))
