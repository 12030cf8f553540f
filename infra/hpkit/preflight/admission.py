"""Checks whether the admission policies that limit teams are in effect, as the program creates them.

A user with permissions in the cluster can set a binding to `Warn`, delete it, narrow a policy or lower the level of a
namespace. Otherwise only the next `pulumi preview --refresh` would show that. Source: Kubernetes, "Validating Admission
Policy" (validationActions, failurePolicy, matchResources), "Pod Security Admission" (labels of namespaces).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from hpkit.clients.calls import FailedCall, Responses
from hpkit.preflight.calls import ADMISSION
from hpkit.preflight.model import CheckResult, call_failed, changed, ok

if TYPE_CHECKING:
    from hpkit.program.recording import Recording

__all__ = ["check_admission"]

_AREA: Final = "kubernetes"
_WHAT: Final = "admission of the teams' namespaces"
_GROUP: Final = "kubernetes:admissionregistration.k8s.io/v1:"
_POLICY, _BINDING, _NAMESPACE = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "Namespace"
_KINDS: Final = {
    f"{_GROUP}{_POLICY}": _POLICY,
    f"{_GROUP}{_BINDING}": _BINDING,
    "kubernetes:core/v1:NamespacePatch": _NAMESPACE,
}
# Defaults that the API server adds (Kubernetes API reference, MatchResources, NamedRuleWithOperations).
_DEFAULTS: Final = {"matchPolicy": "Equivalent", "scope": "*"}


def check_admission(recording: Recording, responses: Responses) -> Iterator[CheckResult]:
    """Compare policies, bindings and levels with the program's, where the platform is there; without teams, nothing."""
    live = responses.of(ADMISSION)
    registered = _wanted(recording)
    if isinstance(live, FailedCall):
        if live.code != "NotAsked":
            yield call_failed(_AREA, _WHAT, live)
        return
    namespaces = live[_NAMESPACE]
    if not any(kind == _NAMESPACE and name in namespaces for kind, name in registered):
        return
    differing = [
        _differing(object_kind, name, expected, live[object_kind].get(name), recording.plan.stack)
        for (object_kind, name), expected in registered.items()
        # A team that is new has no namespace yet.
        if object_kind != _NAMESPACE or name in namespaces
    ]
    deviations = [each for each in differing if each is not None]
    yield from deviations or [
        ok(_AREA, _WHAT, found=f"{len(differing)} objects as the program creates them", needed="in force")
    ]


def _wanted(recording: Recording) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the program's objects, by kind and name: a specification, or a namespace's labels."""
    return {
        (_KINDS[resource.type], metadata["name"]): metadata.get("labels", {})
        if _KINDS[resource.type] == _NAMESPACE
        else resource.inputs["spec"]
        for resource in recording.resources.values()
        if resource.type in _KINDS and (metadata := resource.inputs["metadata"])
    }


def _differing(
    object_kind: str, name: str, expected: Mapping[str, Any], live: Mapping[str, Any] | None, stack: str
) -> CheckResult | None:
    subject = f"{object_kind} {name}"
    fix = (
        f"`pulumi up --refresh --stack {stack}` restores it; without --refresh, it stays as it is. If neither the "
        "file nor hpkit changed since the last update, find out which principal changed it"
    )
    if live is None:
        return changed(_AREA, subject, found="missing", needed="in force", fix=fix)
    # A namespace has labels of others as well.
    keys = expected if object_kind == _NAMESPACE else {**expected, **live}
    plain, plain_expected = _without_defaults(live), _without_defaults(expected)
    differing = sorted(key for key in keys if plain.get(key) != plain_expected.get(key))
    if not differing:
        return None
    return changed(
        _AREA, subject, found=_described(plain, differing), needed=_described(plain_expected, differing), fix=fix
    )


def _without_defaults(value: Any) -> Any:
    if isinstance(value, Mapping):
        plain = {key: _without_defaults(each) for key, each in value.items() if _DEFAULTS.get(key) != each}
        return {key: each for key, each in plain.items() if each not in ({}, [], None)}
    return [_without_defaults(each) for each in value] if isinstance(value, (list, tuple)) else value


def _described(values: Mapping[str, Any], keys: list[str]) -> str:
    """Return keys with their values; for nested values only the key, because expressions are long."""
    texts = []
    for key in keys:
        value = values.get(key, "none")
        nested = isinstance(value, Mapping) or (
            isinstance(value, list) and any(isinstance(each, Mapping) for each in value)
        )
        text = "another" if nested else ", ".join(value) if isinstance(value, list) else str(value)
        texts.append(f"{key}: {text}")
    return "; ".join(texts)
