"""Compares a workspace's objects with the desired ones, without side effects."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from hpkit.grafana.alerts import STACK_LABEL
from hpkit.grafana.desired import KINDS, Desired, GrafanaObject, Kind

__all__ = ["Change", "Found", "changes", "differences", "without_route"]

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A workspace's objects for one stack: hpkit's objects by kind and UID, and the whole notification policy."""

    objects: Mapping[tuple[Kind, str], GrafanaObject]
    policy: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the object to create, update or delete, and its differences.

    uid: empty for the notification policy, because a workspace has only one. body: the request to Grafana, empty for a
    deletion; version: the version to update, or None if Grafana has no versions.
    """

    action: Literal["create", "update", "delete"]
    kind: Kind | Literal["notification policy"]
    title: str
    uid: str
    body: Mapping[str, Any]
    version: int | None = None
    where: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as a line of a diff."""
        sign = {"create": "+", "update": "~", "delete": "-"}[self.action]
        places = list(self.where[:_SHOWN])
        if len(self.where) > _SHOWN:
            places.append(f"and {len(self.where) - _SHOWN} more")
        return f"{sign} {self.kind} {self.title}" + (f": {', '.join(places)}" if places else "")


def changes(desired: Desired, live: Found, *, stack: str) -> list[Change]:
    """Return the changes to a workspace, in an order in which each one succeeds."""
    desired_by_key = {(each.kind, each.uid): each for each in desired.objects}
    steps = [step for each in desired.objects if (step := _step(each, live.objects.get((each.kind, each.uid))))]
    deletions = [
        Change("delete", live_object.kind, live_object.title, live_object.uid, {})
        for kind in reversed(KINDS)
        for key, live_object in sorted(live.objects.items())
        if live_object.kind == kind and key not in desired_by_key
    ]
    policy = _policy_step(desired.route, live.policy, stack)
    # A rule can't fire before its branch exists; a contact point that a branch uses can't be deleted.
    rules = [each for each in steps if each.kind == "alert rule"]
    others = [each for each in steps if each.kind != "alert rule"]
    gone_rules = [each for each in deletions if each.kind == "alert rule"]
    return [*others, *gone_rules, *policy, *rules, *(each for each in deletions if each.kind != "alert rule")]


def _step(desired: GrafanaObject, live: GrafanaObject | None) -> Change | None:
    if live is None:
        return Change("create", desired.kind, desired.title, desired.uid, desired.body)
    where = tuple(differences(desired.body, live.body))
    if not where:
        return None
    return Change("update", desired.kind, desired.title, desired.uid, desired.body, live.body.get("version"), where)


def differences(desired: Any, live: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of differences from the desired object; Grafana's other settings are ignored."""
    if isinstance(desired, Mapping) and isinstance(live, Mapping):
        for key, value in desired.items():
            yield from differences(value, live.get(key), f"{path}.{key}" if path else key)
    elif _is_list(desired) and _is_list(live) and len(desired) == len(live):
        for index, (one, other) in enumerate(zip(desired, live, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif desired != live:
        yield path


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def without_route(policy: Mapping[str, Any], stack: str) -> dict[str, Any]:
    """Return the notification policy without the branches of one stack."""
    return {**policy, "routes": [each for each in policy.get("routes") or () if not _belongs_to(each, stack)]}


def _belongs_to(branch: Mapping[str, Any], stack: str) -> bool:
    return [STACK_LABEL, "=", stack] in [list(each) for each in branch.get("object_matchers") or ()]


def _policy_step(route: dict[str, Any] | None, policy: Mapping[str, Any], stack: str) -> list[Change]:
    own = [each for each in policy.get("routes") or () if _belongs_to(each, stack)]
    if route is None and not own:
        return []
    if route is not None and len(own) == 1 and not list(differences(route, own[0])):
        return []
    rest = without_route(policy, stack)
    # First, because other branches might match everything.
    routes = [*([route] if route else []), *rest["routes"]]
    action: Literal["create", "update", "delete"] = "delete" if route is None else "update" if own else "create"
    return [Change(action, "notification policy", f"branch of {stack}", "", {**rest, "routes": routes})]
