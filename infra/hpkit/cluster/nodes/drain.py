"""Drains nodes: cordons them, then evicts each pod, as far as PodDisruptionBudgets allow.

The rules are those of `kubectl drain`: pods of DaemonSets and of the node itself stay, and a pod without a controller
needs `force`. Source: Kubernetes documentation, "Safely Drain a Node" and "API-initiated Eviction".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kubernetes.client import ApiException

from hpkit.cluster.live.kubernetes import NOT_FOUND, TOO_MANY_REQUESTS, Kubernetes, message_of
from hpkit.errors import ToolError
from hpkit.text.plural import plural

__all__ = ["Clock", "Drain", "DrainedPods", "cordon", "drain"]

_MIRROR: Final = "kubernetes.io/config.mirror"
_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
_PAUSE_SECONDS: Final = 2.0
_NAMED: Final = 5

Document = Mapping[str, Any]


class Clock(Protocol):
    """The functions of `time` that waiting needs."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    def sleep(self, seconds: float, /) -> None:
        """Wait for some seconds."""


@dataclass(frozen=True, slots=True)
class Drain:
    """How nodes are drained.

    grace: seconds that each pod has to stop, None for its own. force: also evict pods without a controller and, after
    timeout (seconds), those that a budget blocks. unresponsive: nodes whose kubelet doesn't stop pods any more, so the
    drain doesn't wait there.
    """

    grace: int | None = None
    force: bool = False
    timeout: float = 900.0
    unresponsive: frozenset[str] = frozenset()


@dataclass(slots=True)
class DrainedPods:
    """The result of a drain: evicted pods, pods deleted against a budget, and cordoned nodes."""

    evicted: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    cordoned: list[str] = field(default_factory=list)


def cordon(api: Kubernetes, node: str, *, unschedulable: bool) -> bool:
    """Cordon or uncordon a node; return whether that changed it. A missing node isn't changed."""
    try:
        before = api.get(f"/api/v1/nodes/{node}")
    except ApiException as error:
        if error.status == NOT_FOUND:
            return False
        raise
    if bool((before.get("spec") or {}).get("unschedulable")) == unschedulable:
        return False
    api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": unschedulable or None}})
    return True


def drain(
    api: Kubernetes, nodes: Sequence[str], how: Drain, *, clock: Clock, say: Callable[[str], None]
) -> DrainedPods:
    """Cordon nodes and evict their pods; returns when none is left that should go.

    Raises ToolError, with the nodes as they were, where a pod has no controller and `force` is not set, and where
    timeout is over.
    """
    done = DrainedPods()
    try:
        _refuse_unmanaged(api, nodes, how)
        for node in nodes:
            if cordon(api, node, unschedulable=True):
                done.cordoned.append(node)
        _evict_all(api, nodes, how, done, clock=clock, say=say)
    except (ToolError, ApiException, KeyboardInterrupt):
        for node in done.cordoned:
            cordon(api, node, unschedulable=False)
        raise
    return done


def _refuse_unmanaged(api: Kubernetes, nodes: Sequence[str], how: Drain) -> None:
    alone = [_name(pod) for node in nodes for pod in _leaving(api, node) if _controller(pod) is None]
    if alone and not how.force:
        raise ToolError(f"no controller would recreate these pods: {_listed(alone)}. Delete them, or add --force")


def _evict_all(
    api: Kubernetes,
    nodes: Sequence[str],
    how: Drain,
    done: DrainedPods,
    *,
    clock: Clock,
    say: Callable[[str], None],
) -> None:
    until, against_budgets = clock.monotonic() + how.timeout, False
    blocked: dict[str, str] = {}
    while True:
        remaining = 0
        for node in nodes:
            for pod in _leaving(api, node):
                if _is_terminating(pod):
                    remaining += node not in how.unresponsive
                    continue
                remaining += 1
                _send_away(api, pod, how, done, blocked, against_budgets=against_budgets, say=say)
        if not remaining:
            return
        if clock.monotonic() >= until:
            if against_budgets or not how.force:
                raise _too_late(how, remaining, blocked)
            against_budgets, until = True, clock.monotonic() + how.timeout
            continue
        clock.sleep(_PAUSE_SECONDS)


def _send_away(
    api: Kubernetes,
    pod: Document,
    how: Drain,
    done: DrainedPods,
    blocked: dict[str, str],
    *,
    against_budgets: bool,
    say: Callable[[str], None],
) -> None:
    name, metadata = _name(pod), pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    options: dict[str, Any] = {"preconditions": {"uid": metadata["uid"]}}
    if how.grace is not None:
        options["gracePeriodSeconds"] = how.grace
    try:
        if against_budgets:
            api.delete(path, options)
            done.deleted.add(name)
            say(f"deleted {name}, although its disruption budget forbids it")
        else:
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": _place(metadata),
                "deleteOptions": options,
            }
            api.create(f"{path}/eviction", body)
            done.evicted.add(name)
            say(f"evicted {name}")
        blocked.pop(name, None)
    except ApiException as error:
        if error.status == NOT_FOUND:
            blocked.pop(name, None)
        elif error.status == TOO_MANY_REQUESTS:
            if name not in blocked:
                say(f"{name} can't be evicted yet: {message_of(error)}")
            blocked[name] = message_of(error)
        else:
            raise


def _place(metadata: Document) -> dict[str, str]:
    return {"name": metadata["name"], "namespace": metadata["namespace"]}


def _leaving(api: Kubernetes, node: str) -> list[Document]:
    """Return the pods of a node that a drain sends away."""
    found = api.pages("/api/v1/pods", (("fieldSelector", f"spec.nodeName={node},{_ENDED}"),))
    return [pod for pod in found if _controller(pod) != "DaemonSet" and not _is_mirror(pod)]


def _is_mirror(pod: Document) -> bool:
    return _MIRROR in (pod["metadata"].get("annotations") or {})


def _is_terminating(pod: Document) -> bool:
    return pod["metadata"].get("deletionTimestamp") is not None


def _controller(pod: Document) -> str | None:
    return next((each["kind"] for each in pod["metadata"].get("ownerReferences") or () if each.get("controller")), None)


def _name(pod: Document) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _too_late(how: Drain, remaining: int, blocked: Mapping[str, str]) -> ToolError:
    reasons = "; ".join(f"{name}: {said}" for name, said in list(blocked.items())[:_NAMED])
    why = f" ({reasons})" if reasons else ""
    advice = (
        "find out why this doesn't end"
        if how.force
        else "wait for the pods that budgets protect, raise --timeout, or add --force to ignore the budgets"
    )
    return ToolError(
        f"{plural(remaining, 'pod')} still running after {how.timeout:g} s{why}; the nodes accept pods again. What to "
        f"do: {advice}"
    )
