"""What belongs to an object that is waited for: a workload's pods, a Service's endpoints, the warnings reported."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hpkit.plan.pods import claims_of
from hpkit_local.plugins.kubernetes.api import ApiError, RetryingApi
from hpkit_local.plugins.kubernetes.ready import PodReady
from hpkit_provider.engine.errors import ChangeFailedError
from hpkit_provider.engine.task import Task
from hpkit_provider.engine.values import Props

__all__ = ["Related"]

_WORKLOADS: Final = frozenset({"DaemonSet", "Deployment", "Job", "ReplicationController", "StatefulSet"})
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_MOST: Final = 3


@dataclass(frozen=True)
class Related:
    """Asks the API server for them, when something is missing."""

    api: RetryingApi

    def endpoints_lack(self, task: Task, service: Props) -> str:
        """Say what keeps the pods of a Service from getting its traffic; empty if nothing.

        A Service that selects no pod is ready, as with the official plugin (provider/pkg/await/service.go).
        """
        namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        answer = self.api.ask(task, "GET", path, labelSelector=f"kubernetes.io/service-name={name}")
        slices: list[Props] = answer.get("items") or []
        if not slices:
            return "its pods have not been looked for yet"
        endpoints = [each for found in slices for each in found.get("endpoints") or []]
        waiting = [each for each in endpoints if (each.get("conditions") or {}).get("ready") is False]
        return f"{len(waiting)} of {len(endpoints)} pods behind it are not ready" if waiting else ""

    def binds_later(self, task: Task, claim: Props) -> tuple[bool, bool]:
        """Say of a claim whether its class waits for a first pod, and whether its class has to make its volume.

        A claim that names its volume, or that a volume names, takes that one.
        """
        spec, metadata = claim.get("spec") or {}, claim["metadata"]
        if spec.get("volumeName") or any(
            reference.get("namespace") == metadata["namespace"] and reference.get("name") == metadata["name"]
            for volume in self._list(task, "/api/v1/persistentvolumes")
            if (reference := volume["spec"].get("claimRef") or {})
        ):
            return False, False
        name = spec.get("storageClassName")
        found = self.api.find(task, f"/apis/storage.k8s.io/v1/storageclasses/{name}") if name else None
        if found is None:
            return False, False
        return found.get("volumeBindingMode") == "WaitForFirstConsumer", found.get("provisioner") != _NO_PROVISIONER

    def pods_with_claim(self, task: Task, claim: Props) -> list[str]:
        """Return the pods on nodes that use a claim, with their controllers: Kubernetes keeps it for as long."""
        name, namespace = claim["metadata"]["name"], claim["metadata"]["namespace"]
        pods = self._list(task, f"/api/v1/namespaces/{namespace}/pods")
        found = [_owned(pod) for pod in pods if pod["spec"].get("nodeName") and name in claims_of(pod["spec"])]
        return [*found[:_MOST], *([f"{len(found) - _MOST} more"] if len(found) > _MOST else [])]

    def pods_lack(self, task: Task, live: Props) -> list[str]:
        """Say of the first few pods of a workload that are not ready what keeps them."""
        told = [f"pod {name}: {lack}" for name, lack in self._unready(task, live)]
        return [*told[:_MOST], *([f"and {len(told) - _MOST} pods more"] if len(told) > _MOST else [])]

    def warnings(self, task: Task, live: Props) -> list[tuple[str, str]]:
        """Return reason and text of the last few warnings that were reported of an object, and of what it made."""
        metadata = live["metadata"]
        if not metadata.get("namespace"):
            return []
        found = self._list(task, f"/api/v1/namespaces/{metadata['namespace']}/events", fieldSelector="type=Warning")
        found = [each for each in found if _concerns(each.get("involvedObject") or {}, metadata)]
        found.sort(key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))
        return list(dict.fromkeys((str(each.get("reason")), str(each.get("message"))) for each in found))[-_MOST:]

    def _unready(self, task: Task, live: Props) -> Iterator[tuple[str, str]]:
        selector = _selector((live.get("spec") or {}).get("selector") or {})
        if live.get("kind") not in _WORKLOADS or not selector:
            return
        for pod in self._list(task, f"/api/v1/namespaces/{live['metadata']['namespace']}/pods", labelSelector=selector):
            if pod["metadata"].get("deletionTimestamp"):
                continue
            try:
                lack = PodReady().lacks(pod)
            except ChangeFailedError as error:
                lack = str(error)
            if lack:
                yield pod["metadata"]["name"], lack

    def _list(self, task: Task, path: str, **query: str) -> list[Props]:
        """Return what can be listed: who may not is told less, and waits all the same."""
        try:
            return self.api.ask(task, "GET", path, None, **query).get("items") or []
        except ApiError:
            return []


def _selector(selector: Mapping[str, Any]) -> str:
    """Return a label selector as the API server's lists take it; a ReplicationController has labels alone."""
    labels = selector.get("matchLabels") or ({} if "matchExpressions" in selector else selector)
    terms = [f"{key}={value}" for key, value in labels.items()]
    for each in selector.get("matchExpressions") or []:
        values = f"({','.join(each.get('values') or [])})"
        key = each["key"]
        known = {"In": f"{key} in {values}", "NotIn": f"{key} notin {values}", "DoesNotExist": f"!{key}"}
        terms.append(known.get(each["operator"], key))
    return ",".join(terms)


def _concerns(involved: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    # What a controller makes is named after what it makes it of.
    name = str(involved.get("name"))
    return involved.get("uid") == metadata["uid"] or name.startswith(f"{metadata['name']}-")


def _owned(pod: Props) -> str:
    owners = pod["metadata"].get("ownerReferences") or []
    return str(pod["metadata"]["name"]) + "".join(f" of {each['kind']} {each['name']}" for each in owners[:1])
