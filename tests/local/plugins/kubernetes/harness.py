"""What the engine does with the plugin, over real gRPC, without the Pulumi CLI."""

import threading
import time
from contextlib import contextmanager, suppress

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from hpkit_local.kubernetes.api import RefusedError
from hpkit_local.plugins.kubernetes.server import KubernetesServicer
from hpkit_provider.engine.plugin_server import OPTIONS, serve
from hpkit_provider.engine.values import from_struct, to_struct
from tests.running import HANGS

CRD = {
    "metadata": {"name": "widgets.acme.example"},
    "spec": {
        "group": "acme.example",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


class FailedError(Exception):
    """The plugin answered with an error; `kept` is what it wants kept in state, if anything."""

    def __init__(self, text, kept=None):
        super().__init__(text)
        self.kept = kept


class Plugin:
    """The calls, in plain Python; a resource is (token, name)."""

    def __init__(self, stub, logs):
        self.stub, self.logs = stub, logs

    def call(self, method, request):
        try:
            return getattr(self.stub, method)(request)
        except grpc.RpcError as error:
            for key, value in error.trailing_metadata() or ():
                if key == "grpc-status-details-bin":
                    details = provider_pb2.ErrorResourceInitFailed()
                    status_pb2.Status.FromString(value).details[0].Unpack(details)
                    raise FailedError("; ".join(details.reasons), details) from None
            raise FailedError(error.details()) from error

    def check(self, token, name, inputs, *, old=None):
        request = provider_pb2.CheckRequest(
            urn=urn(token, name), news=to_struct(inputs), olds=to_struct(old or {}), randomSeed=b"seed"
        )
        answer = self.call("Check", request)
        if answer.failures:
            raise FailedError("; ".join(f"{each.property}: {each.reason}" for each in answer.failures))
        return from_struct(answer.inputs)

    def diff(self, token, name, old, new, *, outputs=None):
        request = provider_pb2.DiffRequest(
            urn=urn(token, name), old_inputs=to_struct(old), olds=to_struct(outputs or {}), news=to_struct(new)
        )
        answer = self.call("Diff", request)
        return set(answer.detailedDiff), list(answer.replaces), answer.deleteBeforeReplace

    def create(self, token, name, inputs, *, preview=False, timeout=HANGS):
        """Check, then create; return id, checked inputs and outputs."""
        checked = self.check(token, name, inputs)
        request = provider_pb2.CreateRequest(
            urn=urn(token, name), properties=to_struct(checked), preview=preview, timeout=timeout
        )
        answer = self.call("Create", request)
        return answer.id, checked, from_struct(answer.properties)

    def update(self, token, name, old, inputs, *, outputs, preview=False):
        request = provider_pb2.UpdateRequest(
            urn=urn(token, name),
            olds=to_struct(outputs),
            old_inputs=to_struct(old),
            news=to_struct(inputs),
            preview=preview,
            timeout=HANGS,
        )
        return from_struct(self.call("Update", request).properties)

    def read(self, token, name, resource_id, *, inputs=None, outputs=None):
        request = provider_pb2.ReadRequest(
            urn=urn(token, name), id=resource_id, inputs=to_struct(inputs or {}), properties=to_struct(outputs or {})
        )
        answer = self.call("Read", request)
        return answer.id, from_struct(answer.inputs), from_struct(answer.properties)

    def delete(self, token, name, resource_id, outputs, *, timeout=HANGS):
        request = provider_pb2.DeleteRequest(
            urn=urn(token, name), id=resource_id, properties=to_struct(outputs), timeout=timeout
        )
        self.call("Delete", request)


def urn(token, name):
    return f"urn:pulumi:dev::hpkit::kubernetes:{token}::{name}"


@contextmanager
def in_process(**settings):
    """The plugin in this process, behind real gRPC; what it tells the engine is kept in `logs`."""
    servicer, logs = KubernetesServicer(), []
    servicer.log = lambda *told: logs.append(told[:2])
    server, port = serve(servicer)
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS)
    plugin = Plugin(provider_pb2_grpc.ResourceProviderStub(channel), logs)
    try:
        plugin.call("Configure", provider_pb2.ConfigureRequest(args=to_struct(settings)))
        yield plugin
    finally:
        channel.close()
        server.stop(grace=None).wait()


@contextmanager
def in_background(action):
    """Run something in a thread meanwhile; what it raised is raised at the end."""
    raised = []

    def run():
        try:
            action()
        except Exception as error:  # noqa: BLE001 - handed on below
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join(HANGS)
    assert not thread.is_alive(), "it goes on"
    assert not raised, raised


def when_possible(action):
    """Do it as soon as the API server lets it be done."""
    deadline = time.monotonic() + HANGS
    while True:
        with suppress(RefusedError, AssertionError):
            return action()
        assert time.monotonic() < deadline, "never possible"
        time.sleep(0.1)
