"""The plugin as the engine talks to it: gRPC in, handlers in threads."""

# ruff: noqa: ARG002, N802 - names and arguments of the methods are those of the gRPC service
import json
import os
from typing import Any, Final

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from hpkit_provider import VERSION
from hpkit_provider.aws.client import SageMakerApi, settings_from
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.plugin_server import PluginServicer, readable, urn_type
from hpkit_provider.engine.results import CheckFailure, check_response, diff_response, read_response
from hpkit_provider.engine.values import UNKNOWN, Props, from_struct, is_unknown, to_struct
from hpkit_provider.resources.autoscaled_group import AutoscaledGroupHandler
from hpkit_provider.resources.change_guard import ChangeGuardHandler
from hpkit_provider.resources.cluster.handler import ClusterHandler
from hpkit_provider.resources.governance import ClusterSchedulerConfigHandler, ComputeQuotaHandler
from hpkit_provider.resources.handler import Clients, Handler
from hpkit_provider.resources.quota_lists import QuotaLists
from hpkit_provider.resources.readiness import ReadinessHandler
from hpkit_provider.schema.check import check
from hpkit_provider.schema.field_table import RESOURCES
from hpkit_provider.schema.settings import SETTINGS, allows_replacement, changed_settings, leaving_teams

__all__ = ["HyperpodServicer"]

_HANDLERS: tuple[type[Handler], ...] = (
    ClusterHandler,
    AutoscaledGroupHandler,
    ComputeQuotaHandler,
    ClusterSchedulerConfigHandler,
    ChangeGuardHandler,
    ReadinessHandler,
)
_GET_CLUSTER: Final = "hyperpod:index:getCluster"
_ENGINE_SETTINGS = ("version", "pluginDownloadURL", "__internal")  # set by the engine itself


class HyperpodServicer(PluginServicer):
    """The `hyperpod` provider."""

    package = "hyperpod"
    version = VERSION

    def __init__(self, engine: str = "") -> None:
        super().__init__(engine)
        self.clients = _clients({})

    def _handler(self, urn: str) -> Handler:
        token = urn_type(urn)
        for kind in _HANDLERS:
            if RESOURCES[kind.name].token == token:
                return kind(self.clients)
        known = ", ".join(resource.token for resource in RESOURCES.values())
        raise PluginError(f"package `hyperpod` has no resource {token!r}; known: {known}.")

    def _call(self, request: Any, handler: Handler) -> EngineCall:
        seconds = getattr(request, "timeout", 0.0) or handler.seconds
        return EngineCall(
            request.urn, seconds, self.cancelled, self.log, best_effort=getattr(request, "preview", False)
        )

    @readable
    def GetSchema(self, request: Any, context: Any) -> Any:
        """Return no more than the engine needs: `hpkit.hyperpod` has the classes of the resources."""
        return provider_pb2.GetSchemaResponse(schema=json.dumps({"name": self.package, "version": VERSION}))

    @readable
    def CheckConfig(self, request: Any, context: Any) -> Any:
        """Reject settings that do not exist."""
        news, known = from_struct(request.news), ", ".join(SETTINGS)
        failures = [
            CheckFailure(name, f"unknown setting {name!r}; known: {known}")
            for name in news
            if name not in {*SETTINGS, *_ENGINE_SETTINGS}
        ]
        return check_response(request.news, failures)

    @readable
    def DiffConfig(self, request: Any, context: Any) -> Any:
        """Compare settings: another account or region is rejected, all else is taken over."""
        changed = changed_settings(from_struct(request.old_inputs), from_struct(request.news))
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE,
            diffs=changed,
        )

    @readable
    def Configure(self, request: Any, context: Any) -> Any:
        """Read the settings; the client is created at the first call."""
        settings = {key.rpartition(":")[2]: value for key, value in request.variables.items()}
        settings.update({key: str(value) for key, value in from_struct(request.args).items() if not is_unknown(value)})
        self.clients = _clients(settings)
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    @readable
    def Check(self, request: Any, context: Any) -> Any:
        """Name everything that is wrong with the inputs."""
        handler = self._handler(request.urn)
        return check_response(request.news, check(handler.name, from_struct(request.news)))

    @readable
    def Diff(self, request: Any, context: Any) -> Any:
        """Compare old and new inputs."""
        handler = self._handler(request.urn)
        state = from_struct(request.olds)
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        difference = handler.diff(old, new, state)
        for warning in handler.diff_warnings(old, new, state):
            self.log("warning", warning, False, request.urn)
        # Names are the program's own and unique.
        return diff_response(difference.changes, deletes_first=True)

    @readable
    def Create(self, request: Any, context: Any) -> Any:
        """Create, or preview the creation."""
        handler, inputs = self._handler(request.urn), from_struct(request.properties)
        if request.preview:
            unknown = {output.name: UNKNOWN for output in handler.table.outputs if output.kind == "string"}
            return provider_pb2.CreateResponse(properties=to_struct({**unknown, **inputs}))
        live = handler.create(self._call(request, handler), inputs)
        return provider_pb2.CreateResponse(id=live.resource_id, properties=to_struct(live.state))

    @readable
    def Read(self, request: Any, context: Any) -> Any:
        """Refresh or import."""
        handler = self._handler(request.urn)
        inputs, state = from_struct(request.inputs), from_struct(request.properties)
        live = handler.read(self._call(request, handler), request.id, inputs, state)
        if live is None:
            return provider_pb2.ReadResponse()
        return read_response(live.resource_id, to_struct(live.state), live.inputs)

    @readable
    def Invoke(self, request: Any, context: Any) -> Any:
        """Return a cluster that no resource of the program describes."""
        if request.tok != _GET_CLUSTER:
            raise PluginError(f"package `hyperpod` has no function {request.tok!r}; known: {_GET_CLUSTER}.")
        handler = ClusterHandler(self.clients)
        call = EngineCall("", handler.seconds, self.cancelled, self.log, best_effort=False)
        found = handler.find(call, str(from_struct(request.args)["clusterName"]))
        return provider_pb2.InvokeResponse(**{"return": to_struct(found)})

    @readable
    def Update(self, request: Any, context: Any) -> Any:
        """Update, or preview the update."""
        handler, state, new = self._handler(request.urn), from_struct(request.olds), from_struct(request.news)
        if request.preview:
            kept = {output.name: state[output.name] for output in handler.table.outputs if output.name in state}
            return provider_pb2.UpdateResponse(properties=to_struct({**kept, **new}))
        old = from_struct(request.old_inputs)
        live = handler.update(self._call(request, handler), request.id, old=old, new=new, state=state)
        return provider_pb2.UpdateResponse(properties=to_struct(live.state))

    @readable
    def Delete(self, request: Any, context: Any) -> Any:
        """Delete the resource; the engine calls this after its dependents are deleted."""
        handler = self._handler(request.urn)
        handler.delete(self._call(request, handler), request.id)
        return empty_pb2.Empty()


def _clients(settings: Props) -> Clients:
    api = SageMakerApi(settings_from(settings, os.environ))
    return Clients(
        api,
        QuotaLists(api),
        allow_replace=allows_replacement(settings),
        capacity_wait=float(settings.get("capacityWaitSeconds", 300)),
        leaving_teams=leaving_teams(settings),
        where=str(settings.get("where", "")),
    )
