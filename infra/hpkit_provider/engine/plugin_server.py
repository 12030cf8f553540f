"""The plugin's connection to the engine: a gRPC server on loopback, logs, cancellation, clear errors.

The servicer builds on the SDK's protocol stubs. The SDK's ready-made server turns every exception into its text with a
Python stack, and can't keep what a failed creation created. This one does both. Every call has a separate thread, so
that a slow call delays no other.
"""

# ruff: noqa: ARG002, N802 - names and arguments of the methods are those of the gRPC service
from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, ClassVar

import grpc
from google.protobuf import any_pb2, empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from hpkit.signals import Signals
from hpkit.text.printable import printable_lines
from hpkit_provider.engine.errors import InitFailedError, PluginError
from hpkit_provider.engine.values import from_struct, is_unknown, to_struct

__all__ = ["OPTIONS", "PluginServicer", "announce", "readable", "run", "serve", "urn_type"]

_THREADS = 256
_GRACE_SECONDS = 4  # for answers under way
_PARENT_SECONDS = 1.0
_MESSAGE = 400 * 1024 * 1024
_SEVERITY = {"info": engine_pb2.INFO, "warning": engine_pb2.WARNING}
OPTIONS = [("grpc.max_receive_message_length", _MESSAGE), ("grpc.max_send_message_length", _MESSAGE)]


class _Status(grpc.Status):  # type: ignore[misc] # grpc ships no types
    def __init__(self, details: str, error: status_pb2.Status) -> None:
        self.code = grpc.StatusCode.UNKNOWN
        self.details = details
        self.trailing_metadata = (("grpc-status-details-bin", error.SerializeToString()),)


def readable(method: Callable[..., Any]) -> Callable[..., Any]:
    """Turn every error into one that the engine displays unchanged; a bug in the plugin is reported without a stack."""

    @wraps(method)
    def wrapper(self: PluginServicer, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(self, request, context)
        except InitFailedError as error:
            shown = printable_lines(str(error))
            details = provider_pb2.ErrorResourceInitFailed(
                id=error.resource_id, properties=to_struct(error.state), inputs=to_struct(error.inputs), reasons=[shown]
            )
            packed = any_pb2.Any()
            packed.Pack(details)
            status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=shown, details=[packed])
            context.abort_with_status(_Status(shown, status))
        except PluginError as error:
            context.abort(grpc.StatusCode.UNKNOWN, printable_lines(str(error)))
        except Exception as error:
            if context.code() is not None:  # an abort is on its way already
                raise
            debug = f"{self.package.upper()}_DEBUG"
            if os.environ.get(debug):
                raise
            text = f"{method.__name__}: unexpected {type(error).__name__}: {printable_lines(str(error))}"
            context.abort(
                grpc.StatusCode.INTERNAL, f"{text}. This is a bug in the plugin; {debug}=1 shows the traceback."
            )

    return wrapper


def urn_type(urn: str) -> str:
    """Return the type of the resource that a URN names, without its parents' types."""
    return urn.split("::")[2].rpartition("$")[2]


class PluginServicer(provider_pb2_grpc.ResourceProviderServicer):
    """The calls that are the same for every plugin."""

    package: ClassVar[str]
    version: ClassVar[str]

    def __init__(self, engine: str = "") -> None:
        self.cancelled = threading.Event()
        self._engine: engine_pb2_grpc.EngineStub | None = None
        self._attach(engine)

    def _attach(self, address: str) -> None:
        if address:
            self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address, options=OPTIONS))

    def log(self, severity: str, message: str, ephemeral: bool, urn: str) -> None:
        """Show something at the resource; the engine not listening is no reason to fail."""
        if self._engine is None:
            return
        request = engine_pb2.LogRequest(
            severity=_SEVERITY[severity], message=printable_lines(message), urn=urn, ephemeral=ephemeral
        )
        try:
            self._engine.Log(request, timeout=5)
        except grpc.RpcError:
            self._engine = None

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        """Answer the engine's question for the plugin's version."""
        return plugin_pb2.PluginInfo(version=self.version)

    @readable
    def Attach(self, request: Any, context: Any) -> Any:
        """Take the engine's address, if the plugin started before it."""
        self._attach(request.address)
        self.cancelled.clear()
        return empty_pb2.Empty()

    @readable
    def DiffConfig(self, request: Any, context: Any) -> Any:
        """Report which settings differ: without a difference, the engine keeps using a provider's old ones."""
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        changed = sorted(
            name for name in old.keys() | new.keys() if not is_unknown(new.get(name)) and old.get(name) != new.get(name)
        )
        some = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=some, diffs=changed)

    def Cancel(self, request: Any, context: Any) -> Any:
        """Cancel every wait; operations in AWS continue and stay in state."""
        self.cancelled.set()
        return empty_pb2.Empty()


def serve(servicer: PluginServicer) -> tuple[grpc.Server, int]:
    """Start serving on loopback; return the server and its port."""
    server = grpc.server(ThreadPoolExecutor(max_workers=_THREADS), options=OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    bound = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, bound


def announce(port: int) -> None:
    """Print the plugin's port, the first line that the engine reads."""
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def run(servicer: Callable[[str], PluginServicer], arguments: list[str]) -> int:
    """Serve until the engine ends the process; `servicer` gets the engine's address, if it's known."""
    # A killed engine sends nothing: a process that has lost its parent has no engine any more.
    engine = os.getppid()
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    # The engine ends a plugin with SIGINT, and waits five seconds if the plugin ignores it. A user's Ctrl-C doesn't
    # arrive here: the engine calls Cancel.
    signals = Signals(signal.SIGTERM, signal.SIGINT)
    plugin = servicer(addresses[0] if addresses else "")
    server, port = serve(plugin)
    announce(port)
    while not signals.wait(_PARENT_SECONDS) and os.getppid() == engine:
        pass
    # Python ends when its last thread ends, so threads that wait for AWS must be cancelled.
    plugin.cancelled.set()
    server.stop(grace=_GRACE_SECONDS).wait()
    return 0
