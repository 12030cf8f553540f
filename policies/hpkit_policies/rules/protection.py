"""Resources that must not be replaced by accident: the HyperPod cluster, the EKS cluster, the VPC.

Policies don't see replacements: the engine shows them the future state, without the operation or the previous state.
The engine won't replace a resource that was and is protected, and a ChangeGuard rejects even earlier.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hpkit_policies.model import Parameter, Policy, Resource, Results, Settings, Violation, of_type
from hpkit_policies.stack_inputs import CLUSTER

__all__ = ["GUARD", "POLICIES"]

# Resource type → its name in `allowReplace` of an organization's file and of a ChangeGuard.
_PROTECTED: Final = {CLUSTER: "cluster", "aws:eks/cluster:Cluster": "eks", "aws:ec2/vpc:Vpc": "vpc"}
GUARD: Final = "hyperpod:index:ChangeGuard"
_NAMES: Final = ("bucket", "cluster", "eks", "fileSystem", "grafana", "key", "prometheus", "vpc")
_ALLOW = Parameter(
    "allowReplace",
    "What the organization file may list in allowReplace. Default: everything. Empty: replacement is forbidden.",
    {"type": "array", "items": {"enum": list(_NAMES)}},
    list(_NAMES),
)


def _protected(resources: Sequence[Resource], settings: Settings) -> Results:
    guards = of_type(resources, GUARD)
    guarded = {name for guard in guards for name in _identity(guard)}
    for resource in of_type(resources, *_PROTECTED):
        if not resource.protect and _PROTECTED[resource.type] not in guarded:
            yield Violation(
                f"`{resource.name}` isn't protected: changing certain inputs replaces it, with everything that runs on "
                "it",
                "Set the resource option protect, or add it to a ChangeGuard.",
                resource,
            )
    for guard in guards:
        yield from _allowed(guard, settings[_ALLOW.name])


def _identity(guard: Resource) -> Sequence[str]:
    identity = guard.get_or_unknown("identity", {})
    return tuple(identity) if isinstance(identity, Mapping) else ()


def _allowed(guard: Resource, accepted: Sequence[Any]) -> Results:
    """Report what a guard allows to be replaced but the settings don't accept.

    Names with a slash, such as `teams/nlp`, are parts that allowDelete lists one by one.
    """
    stated = guard.get_or_unknown("allowReplace", [])
    subject = guard.get_or_unknown("subject")
    for name in stated if isinstance(stated, list) else []:
        if isinstance(name, str) and "/" not in name and name not in accepted:
            yield Violation(
                f"`{guard.name}` allows the replacement of {name} of "
                f"{subject if isinstance(subject, str) else 'this stack'}",
                f"Remove `{name}` from `allowReplace` of the environment, or list it in this policy's `{_ALLOW.name}`.",
                guard,
                f"allowReplace[{name}]",
            )


POLICIES = (
    Policy(
        name="protected-from-replacement",
        description="HyperPod cluster, EKS cluster and VPC are protected by the engine or by a ChangeGuard. A guard "
        "allows only the replacements that allowReplace in the organization file lists.",
        validate_stack=_protected,
        parameters=(_ALLOW,),
    ),
)
