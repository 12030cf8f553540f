"""A plugin as the engine calls it: over real gRPC, without the Pulumi CLI."""

from contextlib import contextmanager

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from hpkit_provider.engine.plugin_server import OPTIONS, serve
from hpkit_provider.engine.values import to_struct


class FailedError(Exception):
    """The plugin responded with an error; `kept` is the state that it keeps, if any."""

    kept = None


class PartlyFailedError(FailedError):
    """The plugin kept a part although it failed."""

    def __init__(self, kept):
        super().__init__("; ".join(kept.reasons))
        self.kept = kept


class Plugin:
    """Calls of a plugin; `prefix` is the prefix of its type tokens."""

    def __init__(self, stub, prefix):
        self.stub, self.prefix = stub, prefix

    def urn(self, token, name):
        return f"urn:pulumi:dev::hpkit::{self.prefix}:{token}::{name}"

    def call(self, method, request):
        try:
            return getattr(self.stub, method)(request)
        except grpc.RpcError as error:
            for key, value in error.trailing_metadata() or ():
                if key == "grpc-status-details-bin":
                    details = provider_pb2.ErrorResourceInitFailed()
                    status_pb2.Status.FromString(value).details[0].Unpack(details)
                    raise PartlyFailedError(details) from None
            raise FailedError(error.details()) from error

    def ask(self, method, token, name, **fields):
        """Make a call about one resource; properties are plain Python values."""
        plain = {key: to_struct(value) if isinstance(value, dict) else value for key, value in fields.items()}
        return self.call(method, getattr(provider_pb2, f"{method}Request")(urn=self.urn(token, name), **plain))

    def configure(self, **settings):
        self.call("Configure", provider_pb2.ConfigureRequest(args=to_struct(settings)))
        return self


@contextmanager
def served(servicer):
    """Return a stub for a servicer in this process."""
    server, port = serve(servicer)
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS)
    try:
        yield provider_pb2_grpc.ResourceProviderStub(channel)
    finally:
        channel.close()
        server.stop(grace=None).wait()
