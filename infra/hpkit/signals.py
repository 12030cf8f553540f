"""Signals that ask a process to end."""

import os
import select
import signal
from contextlib import suppress

__all__ = ["Signals"]


class Signals:
    """Signals that ask this process to end.

    A handler interrupts the main thread anywhere, so it must take no lock. `threading.Event.set` in a handler blocks
    forever if it interrupts `wait`, and CPython 3.11's `queue.SimpleQueue.get` can wait forever after an interruption
    at the end of its timeout. A pipe has neither problem. Python itself writes to the pipe, because a signal that
    another thread gets doesn't interrupt the main thread.
    """

    def __init__(self, *numbers: signal.Signals) -> None:
        """Handle the signals from now on; call it in the main thread."""
        self.arrived = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, self._arrive)

    def _arrive(self, *_: object) -> None:
        self.arrived = True

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a signal, for `wake`, or until the time is over; return whether a signal has arrived."""
        if not self.arrived and select.select([self._reader], [], [], seconds)[0]:
            os.read(self._reader, select.PIPE_BUF)
        return self.arrived

    def wake(self) -> None:
        """End the current `wait`, or the next one, from another thread."""
        with suppress(BlockingIOError):  # A full pipe ends the next wait, too.
            os.write(self._writer, b"\0")
