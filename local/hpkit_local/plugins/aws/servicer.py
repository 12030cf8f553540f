"""The fake plugin as the engine talks to it: gRPC in, entries of the table at work."""

# ruff: noqa: ARG002, N802 - names and arguments of the methods are those of the gRPC service
import json
import os
import threading
from typing import Any

from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import provider_pb2

from hpkit_local.plugins.aws import VERSION
from hpkit_local.plugins.aws.calls import Calls, Clients
from hpkit_local.plugins.aws.check import check, deletes_first, named
from hpkit_local.plugins.aws.config import CONFIG, settings_from
from hpkit_local.plugins.aws.lifecycle import create, delete, differences, preview_outputs, read, update
from hpkit_local.plugins.aws.resource_type import Function, ResourceType
from hpkit_local.plugins.aws.table import FUNCTIONS, RESOURCE_TYPES
from hpkit_provider.engine.call import EngineCall, silent
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.plugin_server import PluginServicer, readable, urn_type
from hpkit_provider.engine.results import CheckFailure, check_response, diff_response, read_response
from hpkit_provider.engine.values import Props, from_struct, is_unknown, to_struct

__all__ = ["AwsServicer"]

_OWN = ("version", "pluginDownloadURL", "__internal")
_INVOKE_SECONDS = 120.0


class AwsServicer(PluginServicer):
    """The `aws` provider of the local cloud."""

    package = "aws"
    version = VERSION

    def __init__(self, engine: str = "") -> None:
        super().__init__(engine)
        self._made: Clients | None = None
        self._making = threading.Lock()

    @property
    def clients(self) -> Clients:
        """Return the configuration's clients; an engine that sent no configuration means the environment's."""
        with self._making:
            if self._made is None:
                self._made = Clients(settings_from({}, os.environ), self.cancelled)
            return self._made

    @property
    def _common(self) -> dict[str, str]:
        return dict(self.clients.settings.default_tags)

    def _calls(self, resource_type: ResourceType, request: Any, region: object, minutes: int = 20) -> Calls:
        seconds = getattr(request, "timeout", 0.0) or minutes * 60.0
        return Calls(
            self.clients,
            EngineCall(request.urn, seconds, self.cancelled, self.log),
            service=resource_type.service,
            region=region if isinstance(region, str) and region else self.clients.settings.region,
            allowed=resource_type.allowed,
            owner=resource_type.token,
            retries=resource_type.retries,
        )

    @readable
    def GetSchema(self, request: Any, context: Any) -> Any:
        """Return the names of existing types; properties are the real package's."""
        schema = {
            "name": self.package,
            "version": VERSION,
            "resources": {token: {} for token in RESOURCE_TYPES},
            "functions": {token: {} for token in FUNCTIONS},
        }
        return provider_pb2.GetSchemaResponse(schema=json.dumps(schema))

    @readable
    def CheckConfig(self, request: Any, context: Any) -> Any:
        """Reject settings that this plugin doesn't know, and an endpoint that isn't on loopback."""
        news = from_struct(request.news)
        failures = [
            CheckFailure(name, f"the local cloud's aws plugin has no setting {name!r}; known: {', '.join(CONFIG)}")
            for name in news
            if name not in CONFIG and name not in _OWN
        ]
        if not failures and not is_unknown(news.get("region")):
            settings_from(news, os.environ)
        return check_response(request.news, failures)

    @readable
    def Configure(self, request: Any, context: Any) -> Any:
        """Read the settings, and verify the account if they set one."""
        config = {key.rpartition(":")[2]: value for key, value in request.variables.items()}
        config.update(from_struct(request.args))
        self._made = Clients(settings_from(config, os.environ), self.cancelled)
        if self._made.settings.allowed_accounts or self._made.settings.forbidden_accounts:
            self._made.whoami()
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    @readable
    def Check(self, request: Any, context: Any) -> Any:
        """Name everything that is wrong with the inputs; make up a name where one may be left out."""
        resource_type = _resource_type(request.urn)
        old, new = from_struct(request.olds), from_struct(request.news)
        news = named(resource_type, request.urn.rpartition("::")[2], old=old, new=new, seed=request.randomSeed)
        return check_response(to_struct(news), check(resource_type, news))

    @readable
    def Diff(self, request: Any, context: Any) -> Any:
        """Compare old and new inputs."""
        resource_type = _resource_type(request.urn)
        old, new, state = from_struct(request.old_inputs), from_struct(request.news), from_struct(request.olds)
        found = differences(resource_type, old=old, new=new, state=state, common=self._common)
        return diff_response(found, deletes_first=deletes_first(resource_type, new))

    @readable
    def Create(self, request: Any, context: Any) -> Any:
        """Create, or preview the creation."""
        resource_type, inputs = _resource_type(request.urn), from_struct(request.properties)
        if request.preview:
            region = inputs.get("region", self.clients.settings.region)
            return provider_pb2.CreateResponse(
                properties=to_struct(preview_outputs(resource_type, inputs, {}, self._common, region=region))
            )
        call = self._calls(resource_type, request, inputs.get("region"), resource_type.minutes[0])
        live = create(resource_type, call, inputs, self._common)
        return provider_pb2.CreateResponse(id=live.resource_id, properties=_outputs(resource_type, live.state))

    @readable
    def Read(self, request: Any, context: Any) -> Any:
        """Refresh or import."""
        resource_type = _resource_type(request.urn)
        inputs, state = from_struct(request.inputs), from_struct(request.properties)
        call = self._calls(resource_type, request, state.get("region", inputs.get("region")))
        live = read(resource_type, call, request.id, inputs=inputs, state=state, common=self._common)
        if live is None:
            return provider_pb2.ReadResponse()
        return read_response(live.resource_id, _outputs(resource_type, live.state), live.inputs)

    @readable
    def Update(self, request: Any, context: Any) -> Any:
        """Update, or preview the update."""
        resource_type = _resource_type(request.urn)
        old, new, state = from_struct(request.old_inputs), from_struct(request.news), from_struct(request.olds)
        if request.preview:
            return provider_pb2.UpdateResponse(
                properties=to_struct(
                    preview_outputs(resource_type, new, state, self._common, region=state.get("region", ""))
                )
            )
        call = self._calls(resource_type, request, state.get("region"), resource_type.minutes[1])
        live = update(resource_type, call, request.id, old=old, new=new, state=state, common=self._common)
        return provider_pb2.UpdateResponse(properties=_outputs(resource_type, live.state))

    @readable
    def Delete(self, request: Any, context: Any) -> Any:
        """Delete."""
        resource_type, state = _resource_type(request.urn), from_struct(request.properties)
        call = self._calls(resource_type, request, state.get("region"), resource_type.minutes[2])
        delete(resource_type, call, request.id, state)
        return empty_pb2.Empty()

    @readable
    def Invoke(self, request: Any, context: Any) -> Any:
        """Answer a function."""
        function = _function(request.tok)
        args: Props = from_struct(request.args)
        unknown = sorted(args.keys() - {*function.takes, "region"})
        if unknown:
            takes = ", ".join(function.takes) or "nothing"
            raise PluginError(
                f"The local cloud's {request.tok} doesn't accept {', '.join(unknown)}; it accepts {takes}."
            )
        region = args.get("region") or self.clients.settings.region
        engine_call = EngineCall(request.tok, _INVOKE_SECONDS, self.cancelled, silent)
        call = Calls(
            self.clients,
            engine_call,
            service=function.service,
            region=region,
            allowed=frozenset(function.calls.split()),
            owner=request.tok,
        )
        answer = function.answer(call, args)
        return provider_pb2.InvokeResponse(**{"return": to_struct({**args, "region": region, **answer})})


def _outputs(resource_type: ResourceType, state: Props) -> Any:
    """Return outputs with an explicit null for each property that isn't set, as the official plugin does.

    Source: pulumi-terraform-bridge 3.136.0, pkg/tfbridge/schema.go, MakeTerraformOutput, and provider.go, which
    marshals nulls.
    """
    struct = to_struct(state)
    for name in {*resource_type.spec.by_name, *resource_type.outputs} - state.keys():
        struct.fields[name].null_value = struct_pb2.NULL_VALUE
    return struct


def _resource_type(urn: str) -> ResourceType:
    token = urn_type(urn)
    if token not in RESOURCE_TYPES:
        raise PluginError(
            f"The local cloud has no fake of {token}. Try it on AWS, or add an entry to "
            "local/hpkit_local/plugins/aws/resources in hpkit's repository."
        )
    return RESOURCE_TYPES[token]


def _function(token: str) -> Function:
    if token not in FUNCTIONS:
        raise PluginError(f"The local cloud has no fake of the function {token}; known: {', '.join(FUNCTIONS)}.")
    return FUNCTIONS[token]
