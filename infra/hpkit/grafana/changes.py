"""What differs between what a workspace should hold and what it holds; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from hpkit.grafana.alerts import STACK_LABEL
from hpkit.grafana.desired import KINDS, Desired, GrafanaObject, Kind

__all__ = ["Change", "Found", "changes", "differences", "without_route"]

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Found:
    """What a workspace holds of one stack: hpkit's objects by kind and uid, and the whole notification policy."""

    objects: Mapping[tuple[Kind, str], GrafanaObject]
    policy: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what is made, updated or deleted, and where it differs.

    uid: empty for the notification policy, of which a workspace has one. body: what Grafana is sent, empty for a
    deletion; version: what an update is made of, None where Grafana counts none.
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
    """Return what brings a workspace to what it should hold, in an order in which each change can be made."""
    desired_by_key = {(each.kind, each.uid): each for each in desired.objects}
    steps = [step for each in desired.objects if (step := _step(each, live.objects.get((each.kind, each.uid))))]
    deletions = [
        Change("delete", live_object.kind, live_object.title, live_object.uid, {})
        for kind in reversed(KINDS)
        for key, live_object in sorted(live.objects.items())
        if live_object.kind == kind and key not in desired_by_key
    ]
    policy = _policy_step(desired.route, live.policy, stack)
    # A rule may not fire before its branch is there; a contact point that a branch names cannot be deleted.
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
    """Yield the paths at which something is not as wanted; Grafana's other settings are left alone."""
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
    # First, since the branches of others may match everything.
    routes = [*([route] if route else []), *rest["routes"]]
    action: Literal["create", "update", "delete"] = "delete" if route is None else "update" if own else "create"
    return [Change(action, "notification policy", f"branch of {stack}", "", {**rest, "routes": routes})]
