"""Objects related to one that is waited for: a Deployment's pods, the pods of a claim, reported warnings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hpkit.plan.pods import claims_of
from hpkit_local.plugins.kubernetes.api import ApiError, RetryingApi
from hpkit_local.plugins.kubernetes.ready import PodReady
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import ChangeFailedError
from hpkit_provider.engine.values import Props

__all__ = ["Related"]

_MOST: Final = 3


@dataclass(frozen=True)
class Related:
    """Asks the API server for them, when something is missing."""

    api: RetryingApi

    def pods_with_claim(self, call: EngineCall, claim: Props) -> list[str]:
        """Return the pods on nodes that use a claim, with their controllers.

        Kubernetes keeps the claim while they exist.
        """
        name, namespace = claim["metadata"]["name"], claim["metadata"]["namespace"]
        pods = self._list(call, f"/api/v1/namespaces/{namespace}/pods")
        found = [_owned(pod) for pod in pods if pod["spec"].get("nodeName") and name in claims_of(pod["spec"])]
        return [*found[:_MOST], *([f"{len(found) - _MOST} more"] if len(found) > _MOST else [])]

    def pods_lack(self, call: EngineCall, live: Props) -> list[str]:
        """Return what blocks the first few pods of a Deployment that aren't ready."""
        told = [f"pod {name}: {lack}" for name, lack in self._unready(call, live)]
        return [*told[:_MOST], *([f"and {len(told) - _MOST} more pods"] if len(told) > _MOST else [])]

    def warnings(self, call: EngineCall, live: Props) -> list[tuple[str, str]]:
        """Return reason and text of the last few warnings about an object, and about what it created."""
        metadata = live["metadata"]
        if not metadata.get("namespace"):
            return []
        events = self._list(call, f"/api/v1/namespaces/{metadata['namespace']}/events", fieldSelector="type=Warning")
        events = [each for each in events if _concerns(each.get("involvedObject") or {}, metadata)]
        events.sort(key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))
        return list(dict.fromkeys((str(each.get("reason")), str(each.get("message"))) for each in events))[-_MOST:]

    def _unready(self, call: EngineCall, live: Props) -> Iterator[tuple[str, str]]:
        if live.get("kind") != "Deployment":
            return
        selector = ",".join(f"{key}={value}" for key, value in live["spec"]["selector"].get("matchLabels", {}).items())
        for pod in self._list(call, f"/api/v1/namespaces/{live['metadata']['namespace']}/pods", labelSelector=selector):
            if pod["metadata"].get("deletionTimestamp"):
                continue
            try:
                lack = PodReady().lacks(pod)
            except ChangeFailedError as error:
                lack = str(error)
            if lack:
                yield pod["metadata"]["name"], lack

    def _list(self, call: EngineCall, path: str, **query: str) -> list[Props]:
        """Return what can be listed: without the permission, the message has less detail, and the wait continues."""
        try:
            return self.api.ask(call, "GET", path, None, **query).get("items") or []
        except ApiError:
            return []


def _concerns(involved: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    # Objects that a controller creates are named after their owner.
    name = str(involved.get("name"))
    return involved.get("uid") == metadata["uid"] or name.startswith(f"{metadata['name']}-")


def _owned(pod: Props) -> str:
    owners = pod["metadata"].get("ownerReferences") or []
    return str(pod["metadata"]["name"]) + "".join(f" of {each['kind']} {each['name']}" for each in owners[:1])
