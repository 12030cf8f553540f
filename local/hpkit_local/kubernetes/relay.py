"""A port on loopback that passes bytes on to another address, and back, in a separate thread."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress

__all__ = ["Reader", "Relay", "Writer"]

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
MayPass = Callable[[], Awaitable[bool]]
_CHUNK = 1 << 16


class Relay(ABC):
    """Accepts connections; `serve` handles each."""

    def __init__(self, *, port: int = 0, context: ssl.SSLContext | None = None) -> None:
        """Listen, with TLS if there is a context; OSError if another has the port."""
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listening.getsockname()[1]
        self.loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__.lower(), daemon=True)

    @abstractmethod
    async def serve(self, reader: Reader, writer: Writer) -> None:
        """Serve one connection, which is closed afterwards."""

    def start(self) -> None:
        """Begin to accept."""
        self._thread.start()

    def stop(self) -> None:
        """End all connections and release the port."""
        self.loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            self.loop.run_until_complete(self._main())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            self.loop.close()

    async def _main(self) -> None:
        server = await asyncio.start_server(self._accept, sock=self._listening, ssl=self._context)
        await self._end.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: Reader, writer: Writer) -> None:
        try:
            await self.serve(reader, writer)
        except OSError:
            return
        finally:
            writer.transport.abort()

    async def pass_on(
        self,
        reader: Reader,
        writer: Writer,
        address: tuple[str, int],
        *,
        first: bytes = b"",
        may_pass: MayPass | None = None,
    ) -> None:
        """Pass bytes to an address and back, until either side ends or the caller isn't admitted any more.

        first: what is sent to the caller once the connection exists. Raises OSError if connecting fails.
        """
        back, forth = await asyncio.open_connection(*address)
        try:
            writer.write(first)
            directions = [
                asyncio.ensure_future(_pump(reader, forth, may_pass)),
                asyncio.ensure_future(_pump(back, writer, None)),
            ]
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for way in directions:
                way.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
        finally:
            forth.transport.abort()


async def _pump(reader: Reader, writer: Writer, may_pass: MayPass | None) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            if may_pass is not None and not await may_pass():
                return
            writer.write(chunk)
            await writer.drain()
