"""A whole `up` in one process: the program with Pulumi's mocks, which call the plugins on an endpoint.

It doesn't do other work of an engine: no state, no preview, and no order except the program's own dependencies.
Kubernetes objects are only recorded; other tests send them to an API server.
"""

import asyncio

import grpc
import pulumi
from google.protobuf import struct_pb2
from pulumi.runtime import mocks
from pulumi.runtime.proto import provider_pb2, resource_pb2

from hpkit.program.components import build
from hpkit.program.recording import PROJECT
from hpkit.program.recording.record import answer_inline
from hpkit_local.plugins.aws.servicer import AwsServicer
from hpkit_provider.engine.values import from_struct, to_struct
from hpkit_provider.server import HyperpodServicer

__all__ = ["RefusedError", "up"]

STACK = "pulumi:pulumi:Stack"


class RefusedError(Exception):
    """A plugin, or the endpoint behind it, rejected something."""


class _Context:
    """The gRPC context for a plugin's method."""

    def __init__(self):
        self._code = None

    def code(self):
        return self._code

    def abort(self, code, details):
        self._code = code
        raise RefusedError(details)

    def abort_with_status(self, status):
        self._code = grpc.StatusCode.UNKNOWN
        raise RefusedError(status.details)


class _Monitor(mocks.MockMonitor):
    def __init__(self, region):
        super().__init__(None)
        self.refusals, self.objects, self._urns = [], [], set()
        self._plugins = {"aws": AwsServicer(), "hyperpod": HyperpodServicer()}
        settings = {"region": region}
        for plugin in self._plugins.values():
            plugin.log = lambda *_, **__: None
            plugin.Configure(provider_pb2.ConfigureRequest(args=to_struct(settings)), _Context())

    def make_urn(self, parent, type_, name):
        above = parent.split("::")[2] if parent else ""
        qualified = type_ if above in ("", STACK) else f"{above}${type_}"
        return "::".join([f"urn:pulumi:{pulumi.get_stack()}", PROJECT, qualified, name])

    def Invoke(self, request):  # noqa: N802 - the protocol's name
        answer = self._plugins["aws"].Invoke(provider_pb2.InvokeRequest(tok=request.tok, args=request.args), _Context())
        return resource_pb2.ResourceInvokeResponse(**{"return": getattr(answer, "return")})

    def RegisterResource(self, request):  # noqa: N802 - the protocol's name
        urn = self.make_urn(request.parent, request.type, request.name)
        package = request.type.partition(":")[0]
        if urn in self._urns:
            self.refusals.append((request.type, request.name, f"Duplicate resource URN '{urn}'"))
            raise RefusedError(urn)
        self._urns.add(urn)
        if not request.custom or package == "pulumi":
            return resource_pb2.RegisterResourceResponse(urn=urn, id=f"{request.name}-id", object=request.object)
        if request.type == "hyperpod:index:Readiness":
            # There's no API server to wait for.
            return resource_pb2.RegisterResourceResponse(urn=urn, id=f"{request.name}-id", object=request.object)
        if package == "kubernetes":
            self.objects.append((request.type, request.name, from_struct(request.object)))
            return resource_pb2.RegisterResourceResponse(urn=urn, id=f"{request.name}-id", object=request.object)
        try:
            made, properties = self._made(package, urn, request)
        except RefusedError as refusal:
            self.refusals.append((request.type, request.name, str(refusal)))
            raise
        return resource_pb2.RegisterResourceResponse(urn=urn, id=made, object=properties)

    def ReadResource(self, request):  # noqa: N802 - the protocol's name
        urn = self.make_urn(request.parent, request.type, request.name)
        plugin = self._plugins.get(request.type.partition(":")[0])
        if plugin is None:
            return resource_pb2.ReadResourceResponse(urn=urn, properties=request.properties)
        answer = plugin.Read(
            provider_pb2.ReadRequest(urn=urn, id=request.id, properties=request.properties), _Context()
        )
        return resource_pb2.ReadResourceResponse(urn=urn, properties=answer.properties)

    def _made(self, package, urn, request):
        plugin = self._plugins[package]
        checked = plugin.Check(
            provider_pb2.CheckRequest(urn=urn, news=request.object, olds=struct_pb2.Struct(), randomSeed=b"0" * 32),
            _Context(),
        )
        if checked.failures:
            raise RefusedError("; ".join(f"{each.property}: {each.reason}" for each in checked.failures))
        answer = plugin.Create(provider_pb2.CreateRequest(urn=urn, properties=checked.inputs, timeout=600), _Context())
        return answer.id, answer.properties


def _cancel_tasks():
    """Cancel what a failed program leaves in the event loop; otherwise, the next one would wait for its calls."""
    loop = asyncio.get_event_loop()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


def up(plan):
    """Build a plan on the environment's endpoint; return what was rejected, and the Kubernetes objects."""
    monitor = _Monitor(plan.spec.region)
    answer_inline()
    mocks.set_mocks(None, project=PROJECT, stack=plan.stack, preview=False, monitor=monitor)

    @pulumi.runtime.test
    def run():
        return pulumi.Output.all(**build(plan))

    try:
        run()
    except Exception:
        _cancel_tasks()
        if not monitor.refusals:
            raise
    return monitor.refusals, monitor.objects
