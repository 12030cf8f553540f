"""The parts of an admission policy for the teams' namespaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpkit.plan.names import GROUP_PREFIX

__all__ = ["BOTH", "CREATE", "IS_MEMBER", "AdmissionPolicy", "Rejection", "ResourceRule", "cel_list"]

CREATE, BOTH = ("CREATE",), ("CREATE", "UPDATE")
IS_MEMBER = f"request.userInfo.groups.exists(group, group.startsWith('{GROUP_PREFIX}'))"


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """Resources of API groups that a policy checks, in all versions."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """Reject a request with this message unless `expression` (CEL) is true.

    reason: why, for the page of a team's permissions.
    """

    field: str
    expression: str
    message: str
    reason: str


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """A ValidatingAdmissionPolicy of the teams' namespaces.

    conditions: CEL by name; the policy checks only requests for which all are true. variables: CEL by name, which
    expressions read as `variables.<name>`; each can use those before it.
    """

    name: str
    rules: tuple[ResourceRule, ...]
    operations: tuple[str, ...]
    rejections: tuple[Rejection, ...]
    conditions: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


def cel_list(texts: tuple[str, ...] | list[str]) -> str:
    """Return a list of strings as CEL writes it."""
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"
