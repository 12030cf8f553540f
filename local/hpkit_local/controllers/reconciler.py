"""The thread that repeatedly reconciles the API server with the state of the endpoint.

It compares everything that should exist, applies differences and deletes what is no longer desired. It remembers
nothing across restarts: the state is in the endpoint and in the API server. It retries what fails because either is
unavailable.

Pending changes: what the AWS endpoint is about to apply, on top of the snapshot of its current state. A change is a
document that is about to take effect, or None for a deletion; its key is `<what>/<name or id>`.
"""

import http.client
import logging
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpkit_local.aws.api import BackendView
from hpkit_local.aws.controllers import ControllerError, RequeueAfter, Snapshot
from hpkit_local.controllers.access import access
from hpkit_local.controllers.dependencies import missing_dependencies
from hpkit_local.controllers.karpenter import CLAIMS, Provisioner, kinds, marks, update_status
from hpkit_local.controllers.nodes import NodeMark, nodes
from hpkit_local.controllers.objects import KINDS, MANAGED, SHIPPED_ANNOTATION, Manifest, Manifests
from hpkit_local.controllers.policy import ADDON, governance
from hpkit_local.controllers.training import run_training, training
from hpkit_local.controllers.wipe import delete_unserved, end_namespaces, wipe
from hpkit_local.kubernetes.api import Api, ApiResource, RejectedError
from hpkit_local.kubernetes.control_plane import READY_ANNOTATION
from hpkit_local.kubernetes.kueue_run import CONFIG_KEY, CONFIG_MAP, POD_LABELS, digest, running

__all__ = ["Reconciler"]


def desired(
    snapshot: Snapshot,
    *,
    namespaces: Collection[str],
    registered: Collection[str],
    marks: Mapping[str, NodeMark],
    kubelet_port: int,
) -> Manifests:
    """Return every object that should exist; nothing without an EKS cluster.

    `namespaces` and `registered` are the names of the existing namespaces and nodes. `marks` is what Karpenter adds to
    its nodes, by logical ID. `kubelet_port` is the port of kwok.
    """
    if not snapshot.eks:
        return Manifests()
    cluster = nodes(snapshot, registered, marks, kubelet_port=kubelet_port) + access(snapshot, namespaces)
    return kinds(snapshot) + training(snapshot) + cluster + governance(snapshot)


PendingChanges = Mapping[str, Mapping[str, Any] | None]
# While Karpenter is being switched off it is still there.
_ON = ("InService", "Deleting")


def with_pending(snapshot: Snapshot, pending: PendingChanges) -> Snapshot:
    """Return the desired state: the snapshot after the pending changes."""
    clusters = _merged(snapshot.clusters, pending, "cluster")
    for name, cluster in clusters.items():
        scaler = cluster.pop("AutoScaling", None)
        change = pending.get(f"autoscaling/{name}", scaler if scaler and scaler["Status"] in _ON else None)
        if change is not None:
            cluster["AutoScaling"] = change
    eks = _merged(snapshot.eks, pending, "eks")
    return replace(
        snapshot,
        eks=eks,
        addons=_merged(snapshot.addons, pending, "addon"),
        clusters=clusters,
        nodes={name: nodes for name, nodes in snapshot.nodes.items() if name in clusters},
        entries=[entry for entry in snapshot.entries if entry["clusterName"] in eks],
        quotas=_merged(snapshot.quotas, pending, "quota"),
        policies=_merged(snapshot.policies, pending, "policy"),
    )


def _merged(live: Mapping[str, Any], pending: PendingChanges, resource_type: str) -> dict[str, dict[str, Any]]:
    result = {name: dict(document) for name, document in live.items()}
    for key, change in pending.items():
        changed, _, name = key.partition("/")
        if changed != resource_type:
            continue
        if change is None:
            result.pop(name, None)
        else:
            result[name] = dict(change)
    return result


_HOOKS = "/apis/admissionregistration.k8s.io/v1"


def foreign_kueue(api: Api) -> str:
    """Return why the add-on cannot be installed, or nothing."""
    foreign = [
        f"Deployment {deployment['metadata']['namespace']}/{deployment['metadata']['name']}"
        for deployment in api.items("/apis/apps/v1/deployments")
        if not deployment["metadata"].get("labels", {}).items() >= MANAGED.items()
        if "kueue"
        in (deployment["metadata"]["name"], deployment["metadata"].get("labels", {}).get("app.kubernetes.io/name"))
        or deployment["metadata"]["name"].endswith("kueue-controller-manager")
    ]
    for plural, object_kind in (
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    ):
        for webhooks in api.items(f"{_HOOKS}/{plural}"):
            services = [hook["clientConfig"].get("service") or {} for hook in webhooks.get("webhooks", [])]
            if any("-kueue-x-k8s-io-" in service.get("path", "") for service in services):
                foreign.append(f"{object_kind} {webhooks['metadata']['name']}")
    if not foreign:
        return ""
    return (
        f"Kueue is already installed in the cluster: {', '.join(foreign)}. Task governance brings its own: "
        "remove that one, then delete the add-on and create it again"
    )


_log = logging.getLogger(__name__)
_FIELD_MANAGER = "sagemaker.amazonaws.com"
_IDLE_SECONDS = 1.5
_BUSY_SECONDS = 0.1
# What takes long is looked at less often.
_LONGEST_BUSY_SECONDS = 0.5
_ASK_SECONDS = 0.05
_END_SECONDS = 3.0
_FORGET_SECONDS = 10.0
_NODES = f"{KINDS['Node'].folder()}/"
_KUEUE_PODS = f"{CONFIG_MAP.rpartition('/configmaps')[0]}/pods"
# The API server's responses to requests that can never succeed.
_INVALID = (http.client.BAD_REQUEST, http.client.UNPROCESSABLE_ENTITY)

Document = Mapping[str, Any]
# Metadata of existing objects, by kind and path.
_Present = dict[str, dict[str, dict[str, Any]]]


class Reconciler:
    """One thread for one API server; `submit` is called under the endpoint's lock, all else happens in the thread."""

    def __init__(self, kubeconfig: Path, view: BackendView, *, kubelet_port: int) -> None:
        self._kubeconfig = kubeconfig
        self._kubelet_port = kubelet_port
        self._view = view
        self._api: Api | None = None
        self._pending: dict[str, Document | None] = {}
        self._asked: dict[str, float] = {}
        self._outcomes: dict[str, tuple[Document | None, str]] = {}
        self._applied: dict[str, tuple[str, object]] = {}
        self._provisioner = Provisioner(view)
        self._empty = False
        # What a pass without changes saw: the endpoint's state, and the API server's version. It's settled after two
        # equal passes, because the first one's data could have been a moment old.
        self._quiet: tuple[Snapshot, str] | None = None
        self._settled: tuple[Snapshot, str] | None = None
        self._busy_seconds = _BUSY_SECONDS
        self._idle_seconds = _IDLE_SECONDS
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the pass that runs."""
        self._stopping = True
        self._wake.set()
        # A hanging API server must not prevent the endpoint from ending.
        self._thread.join(timeout=_END_SECONDS)

    def wake(self) -> None:
        """Reconcile soon."""
        self._wake.set()

    def submit(self, key: str, document: Document | None) -> None:
        """Return when the API server is so; until then raise RequeueAfter, and ControllerError if it cannot be."""
        outcome = self._outcomes.pop(key, None)
        if outcome is not None and key in self._pending and outcome[0] == document:
            del self._pending[key]
            if outcome[1]:
                raise ControllerError(outcome[1])
            return
        if key not in self._pending or self._pending[key] != document:
            self._pending[key] = document
            self._busy_seconds = self._idle_seconds = _BUSY_SECONDS
            self._wake.set()
        self._asked[key] = time.monotonic()
        raise RequeueAfter(_ASK_SECONDS)

    def _run(self) -> None:
        while not self._stopping:
            pause = _IDLE_SECONDS
            try:
                pause = self._reconcile()
            except OSError as error:
                # The API server is unavailable or rejects temporarily, which it states itself.
                _log.debug("to be tried again: %s", error)
            except Exception as error:  # noqa: BLE001 - a defect must not end the thread
                _log.exception("reconciling failed")
                self._fail(f"{type(error).__name__}: {error}; the log of part aws shows where")
            self._wake.wait(pause)
            self._wake.clear()
        if self._api is not None:
            self._api.close()

    def _reconcile(self) -> float:
        """Do all there is to do once, and return how long to pause."""
        with self._view.held():
            self._forget()
            pending = dict(self._pending)
            before = self._view.snapshot()
        snapshot = with_pending(before, pending)
        api = self._api = self._api or Api.of_kubeconfig(self._kubeconfig, field_manager=_FIELD_MANAGER)
        if not snapshot.eks and self._empty and not pending:
            # Without an EKS cluster there is nothing to reconcile; the API server can be used for itself.
            return _IDLE_SECONDS
        seen = (snapshot, api.revision())
        # A query that changes nothing in the cluster waits for a result all the same.
        if seen == self._settled and not pending:
            return self._idle()
        present = {name: _present(api, kind) for name, kind in KINDS.items()}
        claims = api.items(CLAIMS)
        manifests = desired(
            snapshot,
            namespaces=_names(present["Namespace"]),
            registered=_names(present["Node"]),
            marks=marks(claims),
            kubelet_port=self._kubelet_port,
        )
        rejected = {**manifests.rejected, **_foreign(api, pending), **_without_dependencies(api, pending)}
        late = self._apply(api, manifests.items, rejected, present)
        left = self._prune(api, {manifest.path for manifest in manifests.items}, present)
        if any(key.startswith("eks/") and change is None for key, change in pending.items()):
            left = wipe(api) or left
        delete_unserved(api)
        ending = {each["name"] for each in present["Namespace"].values() if "deletionTimestamp" in each}
        end_namespaces(api, ending)
        update_status(api, snapshot, claims)
        coming = self._provisioner.step(api, snapshot, claims)
        starting = _kueue_starts(api)
        run_training(api, snapshot)
        self._empty = not snapshot.eks and not left
        self._settle(pending, rejected, late, left=left)
        busy = late or left or coming or starting or ending or self._pending
        # Nodes of Karpenter's are taken away by the clock.
        quiet = None if busy or claims else seen
        self._settled, self._quiet = quiet if quiet == self._quiet else None, quiet
        if not busy:
            self._busy_seconds = _BUSY_SECONDS
            return self._idle()
        self._busy_seconds = min(self._busy_seconds * 1.2, _LONGEST_BUSY_SECONDS)
        return self._busy_seconds

    def _idle(self) -> float:
        """Return the pause: consequences of a change, such as Kueue's new pod, are noticed soon."""
        self._idle_seconds = min(self._idle_seconds * 1.2, _IDLE_SECONDS)
        return self._idle_seconds

    def _forget(self) -> None:
        """Drop pending changes that are no longer queried, because their object is deleted."""
        now = time.monotonic()
        for key in [key for key in self._pending if now - self._asked[key] > _FORGET_SECONDS]:
            del self._pending[key]

    def _fail(self, why: str) -> None:
        """Fail every waiting change, so that none waits forever."""
        with self._view.held():
            self._outcomes.update({key: (change, why) for key, change in self._pending.items()})

    def _settle(
        self, pending: Mapping[str, Document | None], rejected: Mapping[str, str], late: Collection[str], *, left: bool
    ) -> None:
        for key, document in pending.items():
            if key in rejected:
                self._outcomes[key] = (document, rejected[key])
            elif key not in late and not (document is None and left):
                self._outcomes[key] = (document, "")

    def _apply(self, api: Api, items: Iterable[Manifest], rejected: dict[str, str], present: _Present) -> set[str]:
        """Apply what differs; return which changes have to wait, and add to `rejected` those whose object cannot be."""
        late: set[str] = set()
        for manifest in items:
            if manifest.owners and manifest.owners <= rejected.keys():
                continue
            live = present[manifest.kind.kind].get(manifest.path, {})
            if "deletionTimestamp" in live:
                late |= manifest.owners or {""}
                continue
            if manifest.path not in self._applied and _is_shipped(manifest, live):
                self._applied[manifest.path] = (manifest.digest(), live.get("generation"))
            try:
                if not live or self._applied.get(manifest.path) != (manifest.digest(), live.get("generation")):
                    self._applied[manifest.path] = (manifest.digest(), _put(api, manifest))
            except RejectedError as error:
                if error.status in _INVALID:
                    rejected.update(dict.fromkeys(manifest.owners, str(error)))
                _log.debug("%s: %s", manifest.path, error)
                # Impossible objects without a waiting change are retried, but slowly.
                late |= manifest.owners or (set() if error.status in _INVALID else {""})
            if manifest.path == CONFIG_MAP and not _kueue_follows(api):
                late |= manifest.owners
        return late - rejected.keys()

    def _prune(self, api: Api, paths: Collection[str], present: _Present) -> bool:
        """Delete objects of this controller that are no longer desired; return whether some still exist."""
        live = {path: metadata for name in reversed(present) for path, metadata in present[name].items()}
        surplus = [
            path
            for path, metadata in live.items()
            if path not in paths and metadata.get("labels", {}).items() >= MANAGED.items()
        ]
        for path in surplus:
            self._applied.pop(path, None)
            if "deletionTimestamp" not in live[path]:
                api.delete(path)
                if path.startswith(_NODES):
                    _end_pods(api, live[path]["name"])
        return bool(surplus)


def _present(api: Api, api_resource: ApiResource) -> dict[str, dict[str, Any]]:
    """Return the metadata of all objects of a kind, by path."""
    metadata = [each["metadata"] for each in api.items(api_resource.folder(), metadata_only=True, cached=True)]
    return {api_resource.path(each.get("namespace", ""), each["name"]): each for each in metadata}


def _is_shipped(manifest: Manifest, live: Mapping[str, Any]) -> bool:
    """Return whether an editable object was written from this manifest, by this process or an earlier one."""
    shipped = manifest.annotations.get(SHIPPED_ANNOTATION)
    return shipped is not None and live.get("annotations", {}).get(SHIPPED_ANNOTATION) == shipped


def _put(api: Api, manifest: Manifest) -> object:
    """Apply an object and its status; return its generation then."""
    document = manifest.document()
    answer = api.apply(manifest.path, document)
    if manifest.kind.kind == "Node" and answer["spec"].get("taints", []) != document["spec"]["taints"]:
        # Admission marks every new node as not ready, and leaves it to a controller to take that away.
        answer = api.apply(manifest.path, document)
    if manifest.status is not None:
        api.apply(f"{manifest.path}/status", {**document, "status": manifest.status})
    if manifest.kind.kind == "CustomResourceDefinition":
        spec = answer["spec"]
        for version in spec["versions"]:
            # Being established is not enough: objects are rejected until this is answered.
            api.read(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}?limit=1")
    return answer["metadata"].get("generation")


def _end_pods(api: Api, node: str) -> None:
    """Delete the pods of a node that is gone; the garbage collector of pods would take a minute to find them."""
    for pod in api.items("/api/v1/pods", fields=f"spec.nodeName={node}", metadata_only=True):
        metadata = pod["metadata"]
        api.delete(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}")


def _names(found: Mapping[str, Document]) -> set[str]:
    """Return the names of objects that aren't being deleted."""
    return {each["name"] for each in found.values() if "deletionTimestamp" not in each}


def _kueue_starts(api: Api) -> bool:
    """Make the pod that represents Kueue ready when Kueue is, with its settings; return whether that is pending."""
    labels = ",".join(f"{key}={value}" for key, value in POD_LABELS.items())
    pods = [
        pod["metadata"]
        for pod in api.items(_KUEUE_PODS, labels=labels, metadata_only=True)
        if pod["metadata"].get("annotations", {}).get(READY_ANNOTATION) == "false"
        and "deletionTimestamp" not in pod["metadata"]
    ]
    if pods and _kueue_follows(api):
        for pod in pods:
            api.merge(f"{_KUEUE_PODS}/{pod['name']}", {"metadata": {"annotations": {READY_ANNOTATION: "true"}}})
        return False
    return bool(pods)


def _kueue_follows(api: Api) -> bool:
    """Return whether Kueue runs with the settings that are in the cluster."""
    found = api.read(CONFIG_MAP)
    return running(api) == digest(found.get("data", {}).get(CONFIG_KEY, ""))


def _foreign(api: Api, pending: Mapping[str, Document | None]) -> dict[str, str]:
    """Reject the task governance add-on if the cluster has a Kueue that isn't the local cloud's."""
    addon_keys = [
        key for key, change in pending.items() if key.startswith("addon/") and key.endswith(f"|{ADDON}") and change
    ]
    found = foreign_kueue(api) if addon_keys else ""
    return dict.fromkeys(addon_keys, found) if found else {}


def _without_dependencies(api: Api, pending: Mapping[str, Document | None]) -> dict[str, str]:
    """Reject HyperPod clusters on a cluster without the dependencies chart."""
    asked = [key for key in pending if key.startswith("dependencies/")]
    found = missing_dependencies(api) if asked else ""
    return dict.fromkeys(asked, found) if found else {}
