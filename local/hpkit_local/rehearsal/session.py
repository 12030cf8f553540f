"""A rehearsal on a local cloud: creates what it needs, and deletes all of it afterward."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hpkit.errors import ToolError
from hpkit.kueue.model import Node
from hpkit_local.controllers.objects import KINDS
from hpkit_local.kubernetes.api import Api, ApiResource, RejectedError
from hpkit_local.kubernetes.kueue_run import CONFIG_KEY, digest, running
from hpkit_local.rehearsal.jobs import JOBS, REHEARSED, node_objects, path_of
from hpkit_local.rehearsal.scheduler import KueueScheduler, Metrics

if TYPE_CHECKING:
    from hpkit_local.supervisor.local_cloud import LocalCloud

__all__ = ["Session", "rehearsal"]

_KUEUE = "kueue.x-k8s.io/v1beta2"
_WORKLOADS = ApiResource(_KUEUE, "Workload", "workloads", namespaced=True)
_LABELS = ",".join(f"{name}={value}" for name, value in REHEARSED.items())
# What is compared with the model of a plan.
_COMPARED = ("ClusterQueue", "WorkloadPriorityClass")
# In this order, because an object that others refer to can't be deleted.
_DELETED = (
    *("LocalQueue", "ClusterQueue", "WorkloadPriorityClass", "ResourceFlavor", "Topology", "Node", "ConfigMap"),
    "Namespace",
)
_POLL_SECONDS = 0.2
_HANGS_SECONDS = 300.0


@dataclass(frozen=True)
class Session:
    """The scheduler to rehearse on, and the objects that it decides by, as the API server has them."""

    scheduler: KueueScheduler
    objects: list[dict[str, Any]]


@contextmanager
def rehearsal(
    cloud: LocalCloud, objects: Sequence[Mapping[str, Any]], nodes: Sequence[Node], *, classes: Mapping[int, str]
) -> Iterator[Session]:
    """Yield a local cloud's Kueue with a stack's objects, and delete the created ones afterward.

    objects, nodes: created if the local cloud has no stack; otherwise its own are used. classes: names of the priority
    classes by weight. Raises ToolError for an API server that isn't on loopback, or if other jobs wait or run.
    """
    api = Api.of_kubeconfig(cloud.kubeconfig, field_manager="hpkit-rehearsal")
    reject_remote(api.host)
    metrics = Metrics(api, cloud.ports()["kueue-metrics"])
    try:
        _clean(api)
        _reject_work(api, cloud.name)
        queues = {each["metadata"]["name"] for each in api.items(KINDS["ClusterQueue"].folder())}
        if not queues:
            _make(api, objects, nodes)
        else:
            reject_other_queues(queues, objects, cloud.name)
        _await_active(api)
        metrics.prepare()
        there = [{**each, "kind": kind} for kind in _COMPARED for each in api.items(KINDS[kind].folder())]
        yield Session(KueueScheduler(api, metrics, classes=classes), there)
    except OSError as error:
        raise ToolError(f"{cloud.name}: {error}. To fix: run `tail {cloud.folder}/logs/*.log`") from None
    finally:
        metrics.close()
        _clean(api)
        api.close()


def reject_remote(host: str) -> None:
    """Raise ToolError for the address of an API server that is not on this machine."""
    name = urlsplit(host).hostname
    if name not in ("127.0.0.1", "::1", "localhost"):
        raise ToolError(
            f"{host} isn't on this machine: a rehearsal creates and ends Jobs, so it runs only on a local cloud. "
            "To fix: omit --name to start a new one"
        )


def _reject_work(api: Api, name: str) -> None:
    work = [
        f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"
        for workload in api.items(_WORKLOADS.folder())
        if not any(one["type"] == "Finished" for one in workload.get("status", {}).get("conditions", ()))
    ]
    if work:
        raise ToolError(
            f"{name} has other pending or running work: {', '.join(sorted(work)[:5])}. To fix: end it, or omit "
            "--name to start a new local cloud"
        )


def reject_other_queues(queues: Container[str], objects: Iterable[Mapping[str, Any]], name: str) -> None:
    """Raise ToolError for a local cloud whose queues aren't those that a stack would have."""
    wanted = (each["metadata"]["name"] for each in objects if each["kind"] == "ClusterQueue")
    missing = [queue for queue in wanted if queue not in queues]
    if missing:
        raise ToolError(
            f"{name} has queues, but not {', '.join(missing[:5])}: its queues belong to another stack, or to an older "
            "version of this one. To fix: use the local cloud that runs the stack, or omit --name to start another"
        )


def _make(api: Api, objects: Sequence[Mapping[str, Any]], nodes: Sequence[Node]) -> None:
    for node, status in node_objects(nodes):
        path = KINDS["Node"].path("", node["metadata"]["name"])
        api.apply(path, node)
        api.merge(f"{path}/status", status)
        # A new node has the not-ready taint, and no controller here removes it.
        api.merge(path, {"spec": {"taints": None}})
    for manifest in objects:
        _insist(api, manifest)
        if manifest["kind"] == "ConfigMap":
            _await_settings(api, digest(manifest["data"][CONFIG_KEY]))


def _await_settings(api: Api, wanted: str) -> None:
    _await(lambda: running(api) == wanted, "Kueue runs with the stack's settings")


def _insist(api: Api, document: Mapping[str, Any]) -> None:
    """Apply an object, again while Kueue's webhook does not answer yet."""
    ends = time.monotonic() + _HANGS_SECONDS
    while True:
        try:
            api.apply(path_of(document), document)
        except RejectedError as error:
            if "failed calling webhook" not in str(error) or time.monotonic() > ends:
                raise ToolError(f"{document['kind']} {document['metadata']['name']}: {error}") from None
            time.sleep(_POLL_SECONDS)
        else:
            return


def _await_active(api: Api) -> None:
    def active() -> bool:
        queues = api.items(KINDS["ClusterQueue"].folder())
        conditions = [each.get("status", {}).get("conditions", ()) for each in queues]
        return all(any(one["type"] == "Active" and one["status"] == "True" for one in found) for found in conditions)

    _await(active, "all queues are active")


def _await(holds: Callable[[], bool], expectation: str) -> None:
    ends = time.monotonic() + _HANGS_SECONDS
    while not holds():
        if time.monotonic() > ends:
            raise ToolError(
                f"not within {_HANGS_SECONDS:.0f} s: {expectation}. To fix: run `tail .local/*/logs/kueue.log`"
            )
        time.sleep(_POLL_SECONDS)


def _clean(api: Api) -> None:
    """Delete what this or a killed rehearsal created, and wait until Kueue has released it."""
    for api_resource in (JOBS, *(KINDS[name] for name in _DELETED)):
        for each in api.items(api_resource.folder(), labels=_LABELS, metadata_only=True):
            api.delete(api_resource.path(each["metadata"].get("namespace", ""), each["metadata"]["name"]))
        _await_gone(api, api_resource)


def _await_gone(api: Api, kind: ApiResource) -> None:
    _await(lambda: not api.items(kind.folder(), labels=_LABELS, metadata_only=True), f"{kind.plural} are gone")
