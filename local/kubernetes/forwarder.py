"""A port on loopback that leads to another, for those who are admitted: bytes pass as they are, TLS included."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

__all__ = ["Forwarder"]

_CHUNK = 1 << 16


class Forwarder:
    """Forwards connections while `admits` says so, asked for each that begins and whenever a caller sends something.

    Who is not admitted is disconnected at once, those included who were admitted before. A firewall would let him wait
    until his own time is up, which tells nothing more.
    """

    def __init__(self, target: tuple[str, int], *, admits: Callable[[], bool], port: int = 0) -> None:
        self._target, self._admits = target, admits
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listening.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="forwarder", daemon=True)

    def start(self) -> None:
        """Begin to accept."""
        self._thread.start()

    def stop(self) -> None:
        """End all connections and release the port."""
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._main())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()

    async def _main(self) -> None:
        server = await asyncio.start_server(self._serve, sock=self._listening)
        await self._end.wait()
        server.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not await self._may_pass():
                return
            back, forth = await asyncio.open_connection(*self._target)
        except OSError:
            return
        else:
            try:
                ways = [
                    asyncio.ensure_future(self._pump(reader, forth, guarded=True)),
                    asyncio.ensure_future(self._pump(back, writer, guarded=False)),
                ]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
            finally:
                forth.transport.abort()
        finally:
            writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, guarded: bool) -> None:
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                if guarded and not await self._may_pass():
                    return
                writer.write(chunk)
                await writer.drain()

    async def _may_pass(self) -> bool:
        """Ask in a thread of its own: whoever answers may have to wait for a lock."""
        return await self._loop.run_in_executor(None, self._admits)
