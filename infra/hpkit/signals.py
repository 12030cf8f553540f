"""Signals that ask a process to end."""

import signal
from contextlib import suppress
from queue import Empty, SimpleQueue

__all__ = ["Signals"]


class Signals:
    """Signals that ask this process to end.

    A handler interrupts the main thread anywhere, so it must take no lock. `threading.Event.set` in a handler blocks
    forever if it interrupts `wait`; `SimpleQueue.put` may interrupt `get` (documentation of Python's `queue`).
    """

    def __init__(self, *numbers: signal.Signals) -> None:
        """Handle the signals from now on; call it in the main thread."""
        self.arrived = False
        self._queue: SimpleQueue[bool] = SimpleQueue()
        for number in numbers:
            signal.signal(number, lambda *_: self._queue.put(True))

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a signal, for `wake`, or until the time is over; return whether a signal has arrived."""
        with suppress(Empty):
            while not self.arrived:
                self.arrived = self._queue.get(timeout=seconds)
                seconds = 0
        return self.arrived

    def wake(self) -> None:
        """End the current `wait`, or the next one, from another thread."""
        self._queue.put(False)
