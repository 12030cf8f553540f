"""The plugin as the engine talks to it: gRPC in, handlers in threads, clean errors out.

The servicer stands on the SDK's own protocol stubs. The SDK's ready-made server turns every exception into its
text with a Python stack and cannot keep what a failed creation made; this one does both rightly. Every call has
a thread of its own, so that a call to AWS that takes long holds nothing else up.
"""

# ruff: noqa: ARG002, N802 - names and arguments of the methods are those of the gRPC service
from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2

from provider import VERSION
from provider.check import check
from provider.client import Api, settings_from
from provider.cluster import Cluster
from provider.cluster_scheduler_config import ClusterSchedulerConfig
from provider.compute_quota import ComputeQuota
from provider.diff import Change
from provider.errors import PartlyDoneError, PluginError
from provider.fields import RESOURCES
from provider.handler import Cloud, Handler, Live
from provider.room import Room
from provider.schema import CONFIG, schema_text
from provider.task import Task
from provider.values import UNKNOWN, Props, from_struct, is_unknown, to_struct

__all__ = ["OPTIONS", "HyperpodServicer", "announce", "serve"]

_THREADS = 256
_MESSAGE = 400 * 1024 * 1024
_HANDLERS: tuple[type[Handler], ...] = (Cluster, ComputeQuota, ClusterSchedulerConfig)
_SEVERITY = {"info": engine_pb2.INFO, "warning": engine_pb2.WARNING}
_KINDS = {"add": "ADD", "delete": "DELETE", "update": "UPDATE"}
OPTIONS = [("grpc.max_receive_message_length", _MESSAGE), ("grpc.max_send_message_length", _MESSAGE)]


class _Status(grpc.Status):  # type: ignore[misc] # grpc ships no types
    def __init__(self, details: str, error: status_pb2.Status) -> None:
        self.code = grpc.StatusCode.UNKNOWN
        self.details = details
        self.trailing_metadata = (("grpc-status-details-bin", error.SerializeToString()),)


def _readable(method: Callable[..., Any]) -> Callable[..., Any]:
    """Turn every error into one the engine shows as it stands; a fault of this kit says so, without a stack."""

    @wraps(method)
    def wrapper(self: HyperpodServicer, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(self, request, context)
        except PartlyDoneError as error:
            details = provider_pb2.ErrorResourceInitFailed(
                id=error.resource_id,
                properties=to_struct(error.state),
                inputs=to_struct(error.inputs),
                reasons=[str(error)],
            )
            packed = any_pb2.Any()
            packed.Pack(details)
            status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error), details=[packed])
            context.abort_with_status(_Status(str(error), status))
        except PluginError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        except Exception as error:
            if context.code() is not None:  # an abort is on its way already
                raise
            if os.environ.get("HYPERPOD_DEBUG"):
                raise
            text = f"{method.__name__}: unexpected {type(error).__name__}: {error}"
            context.abort(
                grpc.StatusCode.INTERNAL, f"{text}. This is a fault of the plugin; HYPERPOD_DEBUG=1 shows it."
            )

    return wrapper


class HyperpodServicer(provider_pb2_grpc.ResourceProviderServicer):
    """The `hyperpod` provider."""

    def __init__(self, engine: str = "") -> None:
        self._cancel = threading.Event()
        self._engine: engine_pb2_grpc.EngineStub | None = None
        self._attach(engine)
        self.cloud = _cloud({})

    def _attach(self, address: str) -> None:
        if address:
            self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address, options=OPTIONS))

    def log(self, severity: str, message: str, ephemeral: bool, urn: str) -> None:
        """Show something at the resource; the engine not listening is no reason to fail."""
        if self._engine is None:
            return
        request = engine_pb2.LogRequest(severity=_SEVERITY[severity], message=message, urn=urn, ephemeral=ephemeral)
        try:
            self._engine.Log(request, timeout=5)
        except grpc.RpcError:
            self._engine = None

    def _handler(self, urn: str) -> Handler:
        token = urn.split("::")[2].rpartition("$")[2]
        for kind in _HANDLERS:
            if RESOURCES[kind.name].token == token:
                return kind(self.cloud)
        known = ", ".join(resource.token for resource in RESOURCES.values())
        raise PluginError(f"There is no resource {token!r} in package hyperpod; known: {known}.")

    def _task(self, request: Any, handler: Handler) -> Task:
        seconds = getattr(request, "timeout", 0.0) or handler.seconds
        return Task(request.urn, seconds, self._cancel, self.log)

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        """Return the version."""
        from pulumi.runtime.proto import plugin_pb2

        return plugin_pb2.PluginInfo(version=VERSION)

    @_readable
    def Attach(self, request: Any, context: Any) -> Any:
        """Take the address of the engine, when the plugin ran before it."""
        self._attach(request.address)
        self._cancel.clear()
        return empty_pb2.Empty()

    @_readable
    def GetSchema(self, request: Any, context: Any) -> Any:
        """Return the package schema."""
        return provider_pb2.GetSchemaResponse(schema=schema_text())

    @_readable
    def CheckConfig(self, request: Any, context: Any) -> Any:
        """Name configuration keys that do not exist."""
        news = from_struct(request.news)
        failures = [
            provider_pb2.CheckFailure(property=name, reason=f"there is no setting {name!r}; known: {', '.join(CONFIG)}")
            for name in news
            if name not in CONFIG and name not in ("version", "pluginDownloadURL", "__internal")
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    @_readable
    def DiffConfig(self, request: Any, context: Any) -> Any:
        """Say no: settings never make a resource a different one."""
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    @_readable
    def Configure(self, request: Any, context: Any) -> Any:
        """Take the settings; the client is made at the first call."""
        settings = {key.rpartition(":")[2]: value for key, value in request.variables.items()}
        settings.update({key: str(value) for key, value in from_struct(request.args).items() if not is_unknown(value)})
        self.cloud = _cloud(settings)
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    @_readable
    def Check(self, request: Any, context: Any) -> Any:
        """Name everything that is wrong with the inputs."""
        handler = self._handler(request.urn)
        failures = check(handler.name, from_struct(request.news))
        return provider_pb2.CheckResponse(
            inputs=request.news,
            failures=[provider_pb2.CheckFailure(property=fail.path, reason=fail.reason) for fail in failures],
        )

    @_readable
    def Diff(self, request: Any, context: Any) -> Any:
        """Compare inputs of then and now."""
        handler = self._handler(request.urn)
        state = from_struct(request.olds)
        found = handler.diff(_old_inputs(handler, request, state), from_struct(request.news), state)
        some = provider_pb2.DiffResponse.DIFF_SOME if found.changes else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(
            changes=some,
            replaces=found.replaces,
            # Names are the program's own and unique: the old one must be gone before the new one can be.
            deleteBeforeReplace=bool(found.replaces),
            diffs=sorted({change.path.partition(".")[0].partition("[")[0] for change in found.changes}),
            detailedDiff={change.path: _property_diff(change) for change in found.changes},
            hasDetailedDiff=True,
        )

    @_readable
    def Create(self, request: Any, context: Any) -> Any:
        """Create, or say what would be."""
        handler, inputs = self._handler(request.urn), from_struct(request.properties)
        if request.preview:
            handler.foresee(self._task(request, handler), {}, inputs)
            unknown = {output.name: UNKNOWN for output in handler.table.outputs if output.kind == "string"}
            return provider_pb2.CreateResponse(properties=to_struct({**unknown, **inputs}))
        live = handler.create(self._task(request, handler), inputs)
        return provider_pb2.CreateResponse(id=live.resource_id, properties=to_struct(live.state))

    @_readable
    def Read(self, request: Any, context: Any) -> Any:
        """Refresh or import."""
        handler = self._handler(request.urn)
        inputs, state = from_struct(request.inputs), from_struct(request.properties)
        live = handler.read(self._task(request, handler), request.id, inputs, state)
        if live is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=live.resource_id, properties=to_struct(live.state), inputs=to_struct(live.inputs)
        )

    @_readable
    def Update(self, request: Any, context: Any) -> Any:
        """Update, or say what would be."""
        handler, state, new = self._handler(request.urn), from_struct(request.olds), from_struct(request.news)
        if request.preview:
            handler.foresee(self._task(request, handler), _old_inputs(handler, request, state), new)
            kept = {output.name: state[output.name] for output in handler.table.outputs if output.name in state}
            return provider_pb2.UpdateResponse(properties=to_struct({**kept, **new}))
        old = _old_inputs(handler, request, state)
        live: Live = handler.update(self._task(request, handler), request.id, old=old, new=new, state=state)
        return provider_pb2.UpdateResponse(properties=to_struct(live.state))

    @_readable
    def Delete(self, request: Any, context: Any) -> Any:
        """Delete."""
        handler = self._handler(request.urn)
        handler.delete(self._task(request, handler), request.id)
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        """End every wait; what runs in AWS goes on there and stays in state."""
        self._cancel.set()
        return empty_pb2.Empty()


def _old_inputs(handler: Handler, request: Any, state: Props) -> Props:
    """Return the inputs of then; an engine that does not send them leaves them in the state."""
    if request.HasField("old_inputs"):
        return from_struct(request.old_inputs)
    names = {member.name for member in handler.spec.members}
    return {name: value for name, value in state.items() if name in names}


def _property_diff(change: Change) -> Any:
    kind = _KINDS[change.kind] + ("_REPLACE" if change.replaces else "")
    return provider_pb2.PropertyDiff(kind=provider_pb2.PropertyDiff.Kind.Value(kind), inputDiff=True)


def _cloud(settings: dict[str, str]) -> Cloud:
    api = Api(settings_from(settings, os.environ))
    room = Room(api, patience=float(settings.get("roomWaitSeconds", 20)))
    return Cloud(api, room, node_wait=float(settings.get("nodeWaitSeconds", 1200)))


def serve(servicer: HyperpodServicer, *, port: int = 0) -> tuple[grpc.Server, int]:
    """Start serving on loopback; return the server and its port."""
    server = grpc.server(ThreadPoolExecutor(max_workers=_THREADS), options=OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, bound


def announce(port: int) -> None:
    """Tell the engine where the plugin listens: the first line it reads."""
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
