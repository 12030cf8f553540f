"""The plugin as the engine talks to it: gRPC in, handlers in threads."""

# ruff: noqa: ARG002, N802 - names and arguments of the methods are those of the gRPC service
from __future__ import annotations

import os
from typing import Any

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from provider import VERSION
from provider.autoscaled_group import AutoscaledGroup
from provider.change_guard import ChangeGuard
from provider.check import check
from provider.client import Api, settings_from
from provider.cluster import Cluster
from provider.cluster_scheduler_config import ClusterSchedulerConfig
from provider.compute_quota import ComputeQuota
from provider.config_diff import allows, config_changes
from provider.diff import Change
from provider.errors import PluginError
from provider.fields import RESOURCES
from provider.frame import PluginServicer, old_settings, readable, token_of
from provider.handler import Cloud, Handler, Live
from provider.room import Room
from provider.schema import CONFIG, schema_text
from provider.task import Task
from provider.values import UNKNOWN, Props, from_struct, is_unknown, to_struct

__all__ = ["HyperpodServicer"]

_HANDLERS: tuple[type[Handler], ...] = (
    Cluster,
    AutoscaledGroup,
    ComputeQuota,
    ClusterSchedulerConfig,
    ChangeGuard,
)
_KINDS = {"add": "ADD", "delete": "DELETE", "update": "UPDATE"}


class HyperpodServicer(PluginServicer):
    """The `hyperpod` provider."""

    package = "hyperpod"
    version = VERSION

    def __init__(self, engine: str = "") -> None:
        super().__init__(engine)
        self.cloud = _cloud({})
        self._said: set[str] = set()

    def _handler(self, urn: str) -> Handler:
        token = token_of(urn)
        for kind in _HANDLERS:
            if RESOURCES[kind.name].token == token:
                return kind(self.cloud)
        known = ", ".join(resource.token for resource in RESOURCES.values())
        raise PluginError(f"There is no resource {token!r} in package hyperpod; known: {known}.")

    def _task(self, request: Any, handler: Handler) -> Task:
        seconds = getattr(request, "timeout", 0.0) or handler.seconds
        return Task(request.urn, seconds, self.cancelled, self.log, hasty=getattr(request, "preview", False))

    @readable
    def GetSchema(self, request: Any, context: Any) -> Any:
        """Return the package schema."""
        return provider_pb2.GetSchemaResponse(schema=schema_text())

    @readable
    def CheckConfig(self, request: Any, context: Any) -> Any:
        """Name configuration keys that do not exist."""
        news = from_struct(request.news)
        failures = [
            provider_pb2.CheckFailure(property=name, reason=f"there is no setting {name!r}; known: {', '.join(CONFIG)}")
            for name in news
            if name not in CONFIG and name not in ("version", "pluginDownloadURL", "__internal")
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    @readable
    def DiffConfig(self, request: Any, context: Any) -> Any:
        """Compare settings: another region is other resources, all else is taken over."""
        changed = config_changes(old_settings(request), from_struct(request.news))
        for warning in changed.warnings:
            # The engine asks once more for every resource of a provider that is replaced.
            if warning not in self._said:
                self._said.add(warning)
                self.log("warning", warning, False, request.urn)
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if changed.names else provider_pb2.DiffResponse.DIFF_NONE,
            replaces=changed.replaces,
            diffs=changed.names,
        )

    @readable
    def Configure(self, request: Any, context: Any) -> Any:
        """Take the settings; the client is made at the first call."""
        settings = {key.rpartition(":")[2]: value for key, value in request.variables.items()}
        settings.update({key: str(value) for key, value in from_struct(request.args).items() if not is_unknown(value)})
        self.cloud = _cloud(settings)
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    @readable
    def Check(self, request: Any, context: Any) -> Any:
        """Name everything that is wrong with the inputs."""
        handler = self._handler(request.urn)
        failures = check(handler.name, from_struct(request.news))
        return provider_pb2.CheckResponse(
            inputs=request.news,
            failures=[provider_pb2.CheckFailure(property=fail.path, reason=fail.reason) for fail in failures],
        )

    @readable
    def Diff(self, request: Any, context: Any) -> Any:
        """Compare inputs of then and now."""
        handler = self._handler(request.urn)
        state = from_struct(request.olds)
        old, new = _old_inputs(handler, request, state), from_struct(request.news)
        found = handler.diff(old, new, state)
        for remark in handler.remarks(old, new, state):
            self.log("warning", remark, False, request.urn)
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

    @readable
    def Create(self, request: Any, context: Any) -> Any:
        """Create, or say what would be."""
        handler, inputs = self._handler(request.urn), from_struct(request.properties)
        if request.preview:
            handler.foresee(self._task(request, handler), {}, inputs)
            unknown = {output.name: UNKNOWN for output in handler.table.outputs if output.kind == "string"}
            return provider_pb2.CreateResponse(properties=to_struct({**unknown, **inputs}))
        live = handler.create(self._task(request, handler), inputs)
        return provider_pb2.CreateResponse(id=live.resource_id, properties=to_struct(live.state))

    @readable
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

    @readable
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

    @readable
    def Delete(self, request: Any, context: Any) -> Any:
        """Delete."""
        handler = self._handler(request.urn)
        handler.delete(self._task(request, handler), request.id)
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


def _cloud(settings: Props) -> Cloud:
    api = Api(settings_from(settings, os.environ))
    room = Room(api, patience=float(settings.get("roomWaitSeconds", 20)))
    return Cloud(
        api,
        room,
        node_wait=float(settings.get("nodeWaitSeconds", 1200)),
        allow_replace=allows(settings),
    )
