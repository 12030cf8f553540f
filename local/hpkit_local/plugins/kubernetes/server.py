"""The plugin as the engine talks to it: gRPC in, one object or one release recorded out."""

import copy
import difflib
import json
import os
from typing import Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from hpkit_local.plugins.kubernetes import VERSION
from hpkit_local.plugins.kubernetes.access import KNOWN, connect
from hpkit_local.plugins.kubernetes.api import RetryingApi
from hpkit_local.plugins.kubernetes.cluster import Cluster
from hpkit_local.plugins.kubernetes.helm import Helm, failures
from hpkit_local.plugins.kubernetes.objects import (
    Ref,
    annotation,
    applied,
    changes,
    deletes_first,
    is_patch,
    manager_of,
    metadata_of,
    named,
    seen_inputs,
    typed,
)
from hpkit_local.plugins.kubernetes.ready import tests_of
from hpkit_local.plugins.kubernetes.release import SECONDS, TOKEN, Release, checked
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import InitFailedError, PluginError
from hpkit_provider.engine.plugin_server import PluginServicer, readable, urn_type
from hpkit_provider.engine.results import CheckFailure, PropertyChange, check_response, diff_response, read_response
from hpkit_provider.engine.values import UNKNOWN, Props, from_struct, has_unknown, is_unknown, to_struct

__all__ = ["KubernetesServicer"]

# Fields that differ in each new object, although a dry run sets them.
_PER_OBJECT = ("creationTimestamp", "generation", "resourceVersion", "uid")
_PER_CHANGE = ("generation", "resourceVersion")
_ALLOCATED = ("clusterIP", "clusterIPs")
# ruff: noqa: ARG002, N802 - names and arguments of the methods are those of the gRPC service


_SECONDS = 600.0  # the official plugin's default
_LOOKING_SECONDS = 15.0  # for a chart that could not be had when its release was recorded


def preview_outputs(
    cluster: Cluster, call: EngineCall, inputs: Props, state: Props, *, manager: str, patch: bool
) -> Props:
    """Return the outputs of a preview. Raises PluginError for what the API server would reject."""
    dry_run = None
    if not has_unknown(inputs):
        tests_of(inputs)  # a malformed annotation shows here, not after the object is made
        # The official plugin doesn't ask the API server about a patch before it exists.
        if state or not patch:
            dry_run = cluster.preview(call, inputs, manager, new=not state)
    if state:
        return _updated(dry_run, inputs, state)
    result = copy.deepcopy(dry_run or inputs)
    result["status"] = UNKNOWN
    metadata = result.setdefault("metadata", {})
    if not is_unknown(metadata):
        metadata.update(dict.fromkeys(_PER_OBJECT, UNKNOWN))
        metadata.pop("managedFields", None)
    spec = result.get("spec")
    if inputs.get("kind") == "Service" and isinstance(spec, dict):
        stated = inputs.get("spec") or {}
        spec.update({key: UNKNOWN for key in _ALLOCATED if key not in stated})
    return result


def _updated(dry_run: Props | None, inputs: Props, state: Props) -> Props:
    # The answer is whole: a field that the program no longer states isn't in it.
    below = state if dry_run is None else {key: value for key, value in state.items() if key.startswith("__")}
    result = {**below, **(inputs if dry_run is None else dry_run)}
    metadata = {**metadata_of(below), **metadata_of(result)}
    metadata.update({key: UNKNOWN for key in _PER_CHANGE if key in metadata})
    metadata.pop("managedFields", None)
    return {**result, "metadata": UNKNOWN if is_unknown(inputs.get("metadata")) else metadata}


class KubernetesServicer(PluginServicer):
    """The `kubernetes` provider of the local cloud."""

    package = "kubernetes"
    version = VERSION

    def __init__(self, engine: str = "") -> None:
        super().__init__(engine)
        self._connected: Cluster | PluginError = PluginError("the provider isn't configured yet")

    @property
    def _cluster(self) -> Cluster:
        if isinstance(self._connected, PluginError):
            raise self._connected
        return self._connected

    @property
    def _release(self) -> Release:
        return Release(self._cluster, Helm(self._cluster.api))

    def _call(self, request: Any, inputs: Props | None = None) -> EngineCall:
        """Return the operation; its time is that of customTimeouts, else of `pulumi.com/timeoutSeconds`."""
        stated = annotation(inputs or {}, "timeoutSeconds")
        usual = SECONDS if urn_type(request.urn) == TOKEN else _SECONDS
        seconds = float(stated) if stated.isdecimal() else usual
        return EngineCall(request.urn, getattr(request, "timeout", 0.0) or seconds, self.cancelled, self.log)

    @readable
    def GetSchema(self, request: Any, context: Any) -> Any:
        """Return a schema without types: the SDK that programs use is the official one."""
        return provider_pb2.GetSchemaResponse(schema=json.dumps({"name": self.package, "version": VERSION}))

    @readable
    def CheckConfig(self, request: Any, context: Any) -> Any:
        """Name settings that do not exist."""
        failures = []
        for name in from_struct(request.news):
            if name not in KNOWN:
                near = difflib.get_close_matches(name, KNOWN, n=1)
                reason = f"setting {name!r} doesn't exist" + (f"; did you mean {near[0]!r}?" if near else "")
                failures.append(CheckFailure(name, reason))
        return check_response(request.news, failures)

    @readable
    def Configure(self, request: Any, context: Any) -> Any:
        """Read the settings; reject an API server elsewhere immediately, other problems when it's first used."""
        config: Props = {key.rpartition(":")[2]: value for key, value in request.variables.items()}
        config.update(from_struct(request.args))
        if is_unknown(config.get("kubeconfig")):
            self._connected = PluginError("the kubeconfig isn't known yet")
            return provider_pb2.ConfigureResponse(supportsPreview=True)
        self._connected = _connected(str(config.get("kubeconfig") or ""))
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    @readable
    def Invoke(self, request: Any, context: Any) -> Any:
        """Reject the functions, none of which the program calls."""
        raise PluginError(
            f"function {request.tok!r} doesn't exist in the local cloud's fake Kubernetes plugin. To fix: leave it "
            "out locally."
        )

    @readable
    def Construct(self, request: Any, context: Any) -> Any:
        """Reject the components that the official plugin implements itself."""
        raise PluginError(
            f"{request.type} is a component of the official Kubernetes plugin, and the local cloud's fake plugin has "
            f"no components. To fix: use single resources."
        )

    @readable
    def Check(self, request: Any, context: Any) -> Any:
        """Fill in type, name and namespace."""
        token, inputs, old = urn_type(request.urn), from_struct(request.news), from_struct(request.olds)
        name, seed = request.urn.rpartition("::")[2], request.randomSeed
        if token == TOKEN:
            namespace = self._cluster.api.namespace
            inputs = checked(inputs, old, name=name, namespace=namespace, seed=seed)
            return check_response(to_struct(inputs), (CheckFailure(*each) for each in failures(inputs)))
        api_version, kind = typed(token, inputs)
        inputs = {"apiVersion": api_version, "kind": kind, **inputs}
        if is_patch(token, inputs):
            if not is_unknown(inputs.get("metadata")) and not metadata_of(inputs).get("name"):
                missing = CheckFailure("metadata.name", "is required, because it identifies the object to patch")
                return check_response(to_struct(inputs), [missing])
        else:
            inputs = named(inputs, old, name=name, seed=seed)
        return check_response(to_struct(self._placed(request, inputs)), [])

    def _placed(self, request: Any, inputs: Props) -> Props:
        """Put a namespaced object into the default namespace if it names none."""
        metadata = metadata_of(inputs)
        if is_unknown(inputs.get("metadata")) or metadata.get("namespace") or is_unknown(inputs["apiVersion"]):
            return inputs
        kind = self._cluster.api.kind(self._call(request), inputs["apiVersion"], inputs["kind"])
        if kind is None or not kind.namespaced:
            return inputs
        return {**inputs, "metadata": {**metadata, "namespace": self._cluster.api.namespace}}

    @readable
    def Diff(self, request: Any, context: Any) -> Any:
        """Compare old and new inputs."""
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        token = urn_type(request.urn)
        release = token == TOKEN
        property_changes = changes(token, old, new, release=release)
        if release and not property_changes:
            call = EngineCall(request.urn, _LOOKING_SECONDS, self.cancelled, self.log)
            if self._release.may_come(call, new, from_struct(request.olds)):
                property_changes = [PropertyChange("chart", "update", input=False)]
        return diff_response(property_changes, deletes_first=not release and deletes_first(old, new))

    @readable
    def Create(self, request: Any, context: Any) -> Any:
        """Create, or preview the creation."""
        token, inputs = urn_type(request.urn), from_struct(request.properties)
        call = self._call(request, inputs)
        if token == TOKEN:
            if request.preview:
                return provider_pb2.CreateResponse(properties=to_struct(self._release.preview(inputs)))
            release_id, outputs = self._release.create(call, inputs)
            return provider_pb2.CreateResponse(id=release_id, properties=to_struct(outputs))
        manager, patch = manager_of(request.urn, {}), is_patch(token, inputs)
        if request.preview:
            outputs = preview_outputs(self._cluster, call, inputs, {}, manager=manager, patch=patch)
            return provider_pb2.CreateResponse(properties=to_struct(outputs))
        live = self._cluster.create(call, inputs, manager, patch=patch)
        return provider_pb2.CreateResponse(id=live.ref.id, properties=to_struct(live.state))

    @readable
    def Read(self, request: Any, context: Any) -> Any:
        """Refresh or import."""
        call, token = self._call(request), urn_type(request.urn)
        inputs, state = from_struct(request.inputs), from_struct(request.properties)
        if token == TOKEN:
            found = self._release.read(call, request.id, inputs, state)
            if found is None:
                return provider_pb2.ReadResponse()
            seen, outputs = found
            return read_response(request.id, to_struct(outputs), seen)
        ref = self._ref(call, request.id, *typed(token, inputs or state))
        live = self._cluster.read(call, ref, manager_of(request.urn, state))
        if live is None:
            return provider_pb2.ReadResponse()
        seen = seen_inputs(inputs, live.object) if inputs else applied(live.object)
        lacks = self._cluster.lacking(call, inputs, live.object) if inputs else ""
        if lacks:
            reason = f"{live.ref} is not ready: {lacks}"
            raise InitFailedError(reason, resource_id=request.id, state=live.state, inputs=seen)
        return read_response(live.ref.id, to_struct(live.state), seen)

    def _ref(self, call: EngineCall, resource_id: str, api_version: str, name: str) -> Ref:
        kind = self._cluster.api.kind(call, api_version, name)
        namespace, _, object_name = resource_id.rpartition("/")
        if kind is not None and kind.namespaced and not namespace:
            namespace = self._cluster.api.namespace
        return Ref(api_version, name, namespace, object_name)

    @readable
    def Update(self, request: Any, context: Any) -> Any:
        """Update, or preview the update."""
        token, state, inputs = urn_type(request.urn), from_struct(request.olds), from_struct(request.news)
        call = self._call(request, inputs)
        if token == TOKEN:
            if request.preview:
                return provider_pb2.UpdateResponse(properties=to_struct(self._release.preview(inputs)))
            return provider_pb2.UpdateResponse(properties=to_struct(self._release.update(call, inputs, state)))
        manager = manager_of(request.urn, state)
        if request.preview:
            outputs = preview_outputs(
                self._cluster, call, inputs, state, manager=manager, patch=is_patch(token, inputs)
            )
            return provider_pb2.UpdateResponse(properties=to_struct(outputs))
        live = self._cluster.update(call, inputs, manager=manager, patch=is_patch(token, inputs))
        return provider_pb2.UpdateResponse(properties=to_struct(live.state))

    @readable
    def Delete(self, request: Any, context: Any) -> Any:
        """Delete, and wait until it is gone."""
        token, state = urn_type(request.urn), from_struct(request.properties)
        call = self._call(request, state)
        if token == TOKEN:
            self._release.delete(call, request.id, state)
        else:
            self._cluster.delete(call, state, manager=_manager(state), patch=is_patch(token, state))
        return empty_pb2.Empty()


def _connected(kubeconfig: str) -> Cluster | PluginError:
    try:
        return Cluster(RetryingApi(connect(kubeconfig)))
    except PluginError as error:
        if kubeconfig or os.environ.get("KUBECONFIG"):
            raise
        return error  # a program might not need an API server


def _manager(state: Props) -> str:
    return str(state.get("__fieldManager") or "pulumi-kubernetes")
