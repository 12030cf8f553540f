"""A port on loopback that leads to another, for those who are admitted: bytes pass as they are, TLS included."""

from __future__ import annotations

from collections.abc import Callable

from hpkit_local.kubernetes.relay import Reader, Relay, Writer

__all__ = ["Forwarder"]


class Forwarder(Relay):
    """Forwards connections while `admits` says so, asked for each that begins and whenever a caller sends something.

    Who is not admitted is disconnected at once, those included who were admitted before. A firewall would let him wait
    until his own time is up, which tells nothing more.
    """

    def __init__(self, target: tuple[str, int], *, admits: Callable[[], bool], port: int = 0) -> None:
        super().__init__(port=port)
        self._target, self._admits = target, admits

    async def serve(self, reader: Reader, writer: Writer) -> None:
        """Forward one connection, if it may be."""
        if await self._may_pass():
            await self.pass_on(reader, writer, self._target, may_pass=self._may_pass)

    async def _may_pass(self) -> bool:
        """Ask in a separate thread, because the answer may have to wait for a lock."""
        return await self.loop.run_in_executor(None, self._admits)
