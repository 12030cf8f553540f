"""A loopback port that forwards admitted callers to another: bytes are passed unchanged, including TLS."""

from __future__ import annotations

from collections.abc import Callable

from hpkit_local.kubernetes.relay import Reader, Relay, Writer

__all__ = ["Forwarder"]


class Forwarder(Relay):
    """Forwards connections while `admits` returns true.

    It's called at each start and whenever a caller sends something.

    Others are disconnected immediately, including callers who were admitted before. A firewall would make them wait for
    their own time-out, with no more information.
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
