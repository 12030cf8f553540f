"""Create, read, update and delete of any object, by server-side apply; a deletion is waited for until it is gone."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from hpkit_local.kubernetes.api import ApiResource
from hpkit_local.plugins.kubernetes.api import ApiError, RetryingApi
from hpkit_local.plugins.kubernetes.objects import LiveObject, Ref, annotation, clean, metadata_of, ref_of
from hpkit_local.plugins.kubernetes.ready import Readiness, Related, why
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.values import Props

__all__ = ["Cluster"]

_FIRST, _MOST = 0.1, 2.0
_REJECTED_FOR_NOW = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
_PROPAGATION: Final = {"orphan": "Orphan", "background": "Background"}
# Kinds whose deletion is not waited for with skipAwait, as with the official plugin (provider/pkg/metadata).
_SKIPPED_WHEN_DELETED: Final = frozenset(
    {"DaemonSet", "Deployment", "Job", "Namespace", "Pod", "ReplicationController", "StatefulSet"}
)


@dataclass(frozen=True)
class Cluster:
    """The API server."""

    api: RetryingApi

    def ref(self, call: EngineCall, inputs: Props) -> tuple[ApiResource, Ref]:
        """Return kind and reference of an object; PluginError when its kind is not served."""
        kind = self.api.kind(call, str(inputs["apiVersion"]), str(inputs["kind"]))
        if kind is None:
            raise PluginError(
                f"the API server doesn't serve {inputs['kind']} of {inputs['apiVersion']}. To fix: check "
                f"apiVersion and kind. A custom resource must depend on its CustomResourceDefinition (depends_on)."
            )
        return kind, ref_of(inputs, default_namespace=self.api.namespace, namespaced=kind.namespaced)

    @property
    def _ready(self) -> Readiness:
        return Readiness(self.api)

    def lacking(self, call: EngineCall, inputs: Props, live: Props) -> str:
        """Return what prevents an object from being ready, or ""."""
        return self._ready.lacking(call, inputs, live)

    def preview(self, call: EngineCall, inputs: Props, manager: str, *, new: bool) -> Props | None:
        """Return the result of a dry run; None if the API server can't run it yet."""
        kind = self.api.kind(call, str(inputs["apiVersion"]), str(inputs["kind"]))
        if kind is None:
            return None
        try:
            if new:
                return self._post(call, kind, inputs, manager, dryRun="All")
            ref = ref_of(inputs, default_namespace=self.api.namespace, namespaced=kind.namespaced)
            return self._apply(call, kind, ref, inputs, manager=manager, dryRun="All")
        except ApiError as error:
            # Namespace not there yet; or the object to be replaced still there; or a webhook that has side effects.
            if (new and error.code in _REJECTED_FOR_NOW) or "does not support dry run" in error.message:
                return None
            # Without write permission, the real plugin shows the program's values (provider.go, Create and Update).
            if error.code == HTTPStatus.FORBIDDEN:
                return None
            raise _readable(error, inputs) from None

    def create(self, call: EngineCall, inputs: Props, manager: str, *, patch: bool) -> LiveObject:
        """Create, or for a patch type change the existing object; wait until it's ready."""
        kind, ref = self.ref(call, inputs)
        present = self._present(call, kind, ref)
        if patch and present is None:
            raise _nothing_to_patch(ref)
        if present is not None and not patch:
            raise PluginError(f"{ref} already exists. To fix: `pulumi import` it, or choose another metadata.name.")
        live = self._call(inputs, lambda: self._apply(call, kind, ref, inputs, manager=manager))
        return self._ready.wait(call, LiveObject(ref, live, manager), kind, inputs)

    def update(self, call: EngineCall, inputs: Props, *, manager: str, patch: bool) -> LiveObject:
        """Apply again; wait until it's ready."""
        kind, ref = self.ref(call, inputs)
        if patch and self._present(call, kind, ref) is None:
            raise _nothing_to_patch(ref)
        live = self._call(inputs, lambda: self._apply(call, kind, ref, inputs, manager=manager))
        return self._ready.wait(call, LiveObject(ref, live, manager), kind, inputs)

    def read(self, call: EngineCall, ref: Ref, manager: str) -> LiveObject | None:
        """Return an object as it is; None when it, or its kind, is not there."""
        kind = self.api.kind(call, ref.api_version, ref.kind)
        live = self.api.find(call, kind.path(ref.namespace, ref.name)) if kind else None
        return LiveObject(ref, live, manager) if live is not None else None

    def delete(self, call: EngineCall, inputs: Props, *, manager: str, patch: bool) -> None:
        """Delete and wait until it's deleted; for a patch, release only its fields."""
        kind = self.api.kind(call, str(inputs["apiVersion"]), str(inputs["kind"]))
        if kind is None:
            return
        ref = ref_of(inputs, default_namespace=self.api.namespace, namespaced=kind.namespaced)
        path = kind.path(ref.namespace, ref.name)
        live = self.api.find(call, path)
        if live is None:
            return
        if patch:
            self._relinquish(call, kind, ref, live, manager=manager)
            return
        uid = live["metadata"]["uid"]
        policy = _PROPAGATION.get(annotation(inputs, "deletionPropagationPolicy").lower(), "Foreground")
        options = {"propagationPolicy": policy, "preconditions": {"uid": uid}}
        try:
            self.api.ask(call, "DELETE", path, options)
        except ApiError as error:
            if error.code not in _REJECTED_FOR_NOW:
                raise
        if annotation(inputs, "skipAwait") != "true" or ref.kind not in _SKIPPED_WHEN_DELETED:
            self.until_gone(call, kind, ref, uid)

    def until_gone(self, call: EngineCall, kind: ApiResource, ref: Ref, uid: str) -> None:
        """Wait until an object that is being deleted no longer exists."""
        holding, todo = "", "let the controller that owns the finalizer do its work, or remove it"
        try:
            for delay in call.delays(_FIRST, _MOST):
                live = self.api.find(call, kind.path(ref.namespace, ref.name))
                if live is None or live["metadata"]["uid"] != uid:
                    return
                holding = _holding(live)
                if ref.kind == "PersistentVolumeClaim" and (pods := Related(self.api).pods_with_claim(call, live)):
                    holding, todo = (
                        f"{holding}; pods use it: {', '.join(pods)}",
                        "delete these pods, or the job that created them",
                    )
                call.progress(f"deleting; held by {holding}")
                call.pause(delay)
        except PluginError as error:
            if isinstance(error, ApiError):
                raise
            raise type(error)(
                f"{ref} is still being deleted, blocked by {holding}: {why(call, error)}. To fix: "
                f"{todo}, and run Pulumi again."
            ) from None

    def _present(self, call: EngineCall, kind: ApiResource, ref: Ref) -> Props | None:
        """Return the existing object, after a running deletion has ended."""
        live = self.api.find(call, kind.path(ref.namespace, ref.name))
        if live is not None and live["metadata"].get("deletionTimestamp"):
            self.until_gone(call, kind, ref, live["metadata"]["uid"])
            return None
        return live

    def _apply(
        self, call: EngineCall, kind: ApiResource, ref: Ref, inputs: Props, *, manager: str, **query: str
    ) -> Props:
        force = "true" if annotation(inputs, "patchForce") == "true" else "false"
        path = kind.path(ref.namespace, ref.name)
        return self.api.apply(call, path, _document(inputs, ref), fieldManager=manager, force=force, **query)

    def _post(self, call: EngineCall, kind: ApiResource, inputs: Props, manager: str, **query: str) -> Props:
        namespace = str(metadata_of(inputs).get("namespace") or self.api.namespace)
        query |= {"fieldManager": manager, "fieldValidation": "Strict"}
        return self.api.ask(call, "POST", kind.folder(namespace), clean(inputs), **query)

    def _relinquish(self, call: EngineCall, kind: ApiResource, ref: Ref, live: Props, *, manager: str) -> Props:
        """Apply nothing, so that fields of only this manager are removed.

        The uid prevents it from being created again.
        """
        empty = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": {"uid": live["metadata"]["uid"]}}
        try:
            path = kind.path(ref.namespace, ref.name)
            return self.api.apply(call, path, _document(empty, ref), fieldManager=manager, force="true")
        except ApiError as error:
            if error.code in _REJECTED_FOR_NOW:
                return live
            raise

    def _call(self, inputs: Props, call: Callable[[], Props]) -> Props:
        try:
            return call()
        except ApiError as error:
            raise _readable(error, inputs) from None


def _nothing_to_patch(ref: Ref) -> PluginError:
    return PluginError(f"{ref} doesn't exist, so it can't be patched. To fix: create it first.")


def _document(inputs: Props, ref: Ref) -> Props:
    document = clean(inputs)
    uid = metadata_of(inputs).get("uid")
    metadata = document.setdefault("metadata", {})
    metadata.update({"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {}))
    metadata.update({"uid": uid} if uid else {})
    return document


def _holding(live: Props) -> str:
    """Return what blocks an object's deletion: finalizers, including those in the spec of a namespace."""
    finalizers = [*live["metadata"].get("finalizers", []), *((live.get("spec") or {}).get("finalizers") or [])]
    text = f"finalizers {', '.join(map(str, finalizers)) or '(none)'}"
    # A namespace's controller reports what remains in it.
    conditions = (live.get("status") or {}).get("conditions") or []
    remains = [str(each.get("message")) for each in conditions if each.get("status") == "True"]
    return "; ".join([text, *remains]) if live.get("kind") == "Namespace" else text


def _readable(error: ApiError, inputs: Props) -> PluginError:
    """Add the object and the fix to a rejection, if the server's own text lacks them."""
    object_name = f"{inputs.get('kind')} {metadata_of(inputs).get('name', '')}"
    conflicts = [cause for cause in error.causes if cause.get("reason") == "FieldManagerConflict"]
    if conflicts:
        told = "; ".join(f"{cause.get('field')}: {cause.get('message')}" for cause in conflicts)
        return PluginError(
            f"{object_name}: fields are set by another field manager: {told}. To fix: leave them out of the "
            "program, or "
            'take them over with the annotation pulumi.com/patchForce: "true".'
        )
    if "immutable" in error.message:
        return PluginError(
            f"{object_name}: {error.message} To fix: let Pulumi replace it (`pulumi up --replace URN`, or the "
            "resource "
            f"option replace_on_changes)."
        )
    return PluginError(f"{object_name} was rejected ({error.code} {error.reason}): {error.message}")
