"""Access entries, bindings, and the matrix of both. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hpkit.cluster.live.model import team_of
from hpkit.errors import SelectionError
from hpkit.plan.access import (
    ADMINISTRATOR_POLICY,
    RELEASES_POLICY,
    TEAM_ROLE,
    VIEWER_GROUP,
    VIEWER_ROLE,
    groups_of,
    release_namespaces,
)
from hpkit.plan.model import NAMESPACE_PREFIX, Plan
from hpkit.plan.names import GROUP_PREFIX
from hpkit.plan.principals import principal_of
from hpkit.text.spelling import near

__all__ = [
    "CLUSTER",
    "Access",
    "Binding",
    "Entry",
    "Grant",
    "Policy",
    "Row",
    "called",
    "differences",
    "find_entry",
    "matrix",
    "without_entry",
]

# The column for cluster-wide roles.
CLUSTER: Final = "cluster"
# Entries of nodes or services are created by these, and don't belong to people.
_OF_PEOPLE: Final = "STANDARD"
# Groups of Kubernetes and EKS, which access entries can't contain (EKS user guide, access entries).
_OF_SYSTEM: Final = ("system:", "eks:")
_POLICY_ROLES: Final = {ADMINISTRATOR_POLICY: "administrator"}


@dataclass(frozen=True, slots=True)
class Policy:
    """An access policy that is associated with an entry; namespaces are empty if it applies to the whole cluster."""

    name: str
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """An access entry: an IAM principal, its user and groups in Kubernetes, and its access policies.

    of_creator: EKS created it together with the cluster, for the cluster's creator.
    """

    principal: str
    username: str
    groups: tuple[str, ...]
    type: str = _OF_PEOPLE
    policies: tuple[Policy, ...] = ()
    of_creator: bool = False


@dataclass(frozen=True, slots=True)
class Binding:
    """A RoleBinding, or a ClusterRoleBinding without a namespace, with the users and groups that it is for."""

    name: str
    namespace: str | None
    role: str
    users: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Return the kind of the object."""
        return "ClusterRoleBinding" if self.namespace is None else "RoleBinding"


@dataclass(frozen=True, slots=True)
class Access:
    """All that was read; unknown: what could not be, each with the reason."""

    entries: tuple[Entry, ...]
    bindings: tuple[Binding, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """A role that a principal has somewhere, and through what."""

    role: str
    through: str


@dataclass(frozen=True, slots=True)
class Row:
    """A principal's roles: place (CLUSTER, or a namespace) → roles.

    file: its role in the organization file; of_creator: it has none, but created the cluster, so EKS gave it access.
    unread: bindings couldn't be read, so it might have more roles.
    """

    principal: str
    file: tuple[str, ...]
    grants: Mapping[str, tuple[Grant, ...]] = field(default_factory=dict)
    of_creator: bool = False
    unread: bool = False

    def cell(self, place: str) -> str:
        """Return the roles in a place as text; `?` if there might be more."""
        roles = dict.fromkeys(grant.role for grant in self.grants.get(place, ()))
        return ", ".join([*roles, "?"] if self.unread else roles)


def matrix(access: Access, plan: Plan) -> tuple[Row, ...]:
    """Return a row for each principal with an entry for people, and for each in the organization file, by name."""
    rows = {}
    for entry in access.entries:
        if entry.type == _OF_PEOPLE:
            file = _in_file(plan, entry.principal)
            made = entry.of_creator and not file
            rows[entry.principal] = Row(entry.principal, file, dict(_grants(access, entry)), made, bool(access.unknown))
    for principal in _named(plan):
        rows.setdefault(principal, Row(principal, _in_file(plan, principal)))
    return tuple(rows[name] for name in sorted(rows))


def _grants(access: Access, entry: Entry) -> Iterator[tuple[str, tuple[Grant, ...]]]:
    grants: defaultdict[str, list[Grant]] = defaultdict(list)
    for policy in entry.policies:
        for place in policy.namespaces or (CLUSTER,):
            grants[place].append(Grant(_POLICY_ROLES.get(policy.name, policy.name), f"access policy {policy.name}"))
    for binding in access.bindings:
        held = next((group for group in binding.groups if group in entry.groups), None)
        if held is None and entry.username not in binding.users:
            continue
        subject = f"user {entry.username}" if held is None else f"group {held}"
        grants[binding.namespace or CLUSTER].append(Grant(binding.role, f"{binding.kind} {binding.name}, {subject}"))
    for place in sorted(grants, key=lambda each: (each != CLUSTER, each)):
        yield place, tuple(dict.fromkeys(grants[place]))


def _named(plan: Plan) -> Iterator[str]:
    yield from plan.spec.eks.administrators
    yield from groups_of(plan)


def _in_file(plan: Plan, principal: str) -> tuple[str, ...]:
    """Return a principal's role in the organization file: administrator, viewer, member of a team."""
    principal_key = principal_of(principal)
    eks = plan.spec.eks
    roles = [
        name
        for name, principals in (("administrator", eks.administrators), ("viewer", eks.viewers))
        if principal_key in map(principal_of, principals)
    ]
    return (
        *roles,
        *(f"member of {team.name}" for team in plan.teams if principal_key in map(principal_of, team.spec.members)),
    )


def called(row: Row) -> str:
    """Return a principal's roles in the organization file as text, that it created the cluster, or `no`."""
    return "; ".join(row.file) or ("no; it created the cluster" if row.of_creator else "no")


def differences(access: Access, plan: Plan) -> tuple[str, ...]:
    """Return differences between the entries and bindings and the organization file, as sentences."""
    return (*_of_entries(access.entries, plan), *_of_bindings(access.bindings, plan))


def _of_entries(entries: Iterable[Entry], plan: Plan) -> Iterator[str]:
    live = {principal_of(entry.principal): entry for entry in entries if entry.type == _OF_PEOPLE}
    groups = {principal_of(member): (member, names) for member, names in groups_of(plan).items()}
    for principal in dict.fromkeys(_named(plan)):
        principal_key = principal_of(principal)
        entry = live.pop(principal_key, None)
        if entry is None:
            yield f"{principal} is in the file, but has no access entry; `pulumi up` creates it"
            continue
        wanted = set(groups.get(principal_key, ("", ()))[1])
        yield from _of_groups(entry, wanted)
        yield from _of_policies(entry, _policies_of(plan, _in_file(plan, principal)))
    for entry in (each for each in live.values() if not each.of_creator):
        what = ", ".join((*(policy.name for policy in entry.policies), *entry.groups)) or "no permissions"
        yield f"{entry.principal} has an access entry ({what}), but isn't in the file"


def _of_groups(entry: Entry, groups: set[str]) -> Iterator[str]:
    for group in sorted(groups - set(entry.groups)):
        role = "a viewer" if group == VIEWER_GROUP else f"a member of team {group.removeprefix(GROUP_PREFIX)}"
        yield f"{entry.principal} is {role} in the file, but not in its access entry"
    for group in sorted(set(entry.groups) - groups):
        yield f"{entry.principal} has the group {group} in its access entry, but not in the file"


def _policies_of(plan: Plan, roles: Sequence[str]) -> set[tuple[str, tuple[str, ...]]]:
    """Return the access policies of a principal that the file calls this, with their namespaces."""
    if "administrator" in roles:
        return {(ADMINISTRATOR_POLICY, ())}
    namespaces = release_namespaces(plan) if "viewer" in roles else ()
    return {(RELEASES_POLICY, namespaces)} if namespaces else set()


def _of_policies(entry: Entry, policies: set[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    live_policies = {(policy.name, tuple(sorted(policy.namespaces))) for policy in entry.policies}
    for name, namespaces in sorted(policies - live_policies):
        yield f"{entry.principal} has {name}{_within(namespaces)} in the file, but not in its access entry"
    for name, namespaces in sorted(live_policies - policies):
        yield f"{entry.principal} has {name}{_within(namespaces)}, but not in the file"


def _within(namespaces: Sequence[str]) -> str:
    return f" in {', '.join(namespaces)}" if namespaces else ""


def _of_bindings(bindings: Iterable[Binding], plan: Plan) -> Iterator[str]:
    teams = {f"{GROUP_PREFIX}{team.name}": team for team in plan.teams if team.spec.members}
    bound = {
        (group, binding.namespace, binding.role)
        for binding in bindings
        for group in binding.groups
        if not group.startswith(_OF_SYSTEM)
    }
    for group, team in teams.items():
        for namespace in (team.namespace, None):
            if (group, namespace, TEAM_ROLE) not in bound:
                where = "the cluster" if namespace is None else namespace
                yield f"team {team.name} has no binding to {TEAM_ROLE} in {where}; `pulumi up` creates it"
    viewers = {(VIEWER_GROUP, None, VIEWER_ROLE)} if plan.spec.eks.viewers else set()
    if viewers - bound:
        yield f"viewers have no binding to {VIEWER_ROLE}; `pulumi up` creates it"
    expected = {(group, namespace, TEAM_ROLE) for group, team in teams.items() for namespace in (team.namespace, None)}
    for group, place, role in sorted(bound - expected, key=str):
        if group.startswith(GROUP_PREFIX) or (place or "").startswith(NAMESPACE_PREFIX):
            where = "the whole cluster" if place is None else f"the namespace of {team_of(place)}"
            yield f"group {group} has {role} in {where}, which doesn't come from the file"


def find_entry(access: Access, principal: str) -> Entry | None:
    """Return a principal's entry: by the ARN of a role or session, or by the name at its end; None without one.

    Raises SelectionError if several have that name.
    """
    arn = principal.startswith("arn:")
    matching = [
        entry
        for entry in access.entries
        if (principal_of(entry.principal) == principal_of(principal) if arn else _short(entry.principal) == principal)
    ]
    if len(matching) > 1:
        raise SelectionError(
            f"{principal} matches several entries: {', '.join(each.principal for each in matching)}; use the full ARN"
        )
    return matching[0] if matching else None


def without_entry(access: Access, principal: str) -> str:
    """Return a text about a principal without an entry, with similar ones."""
    # The common beginning of all ARNs must not count as similarity.
    known = {_short(entry.principal): entry.principal for entry in access.entries}
    name = near(_short(principal), known)
    likely = known[name] if name and principal.startswith("arn:") else name
    meant = f"did you mean {likely}?" if likely else "to list principals with an entry, run `hpkit cluster access`"
    return f"{principal} has no access entry, so it has no permissions; {meant}"


def _short(principal: str) -> str:
    return principal.rpartition("/")[2]
