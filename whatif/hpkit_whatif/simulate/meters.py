"""Sums over time that cost the same for ten tasks and for ten million."""

from __future__ import annotations

from array import array

from hpkit_whatif.simulate.report import Series

__all__ = ["Gauge", "Timeline", "Waits"]

_STEPS = 240
_FIRST_STEP = 15.0
_MOST_WAITS = 1 << 20


class Gauge:
    """An amount that changes, its sum over time, and the most that it was for any time."""

    __slots__ = ("area", "most", "since", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.since = 0.0
        self.area = 0.0
        self.most = 0.0

    def change(self, now: float, delta: float) -> None:
        """Change the value from now on."""
        if now > self.since:
            self.area += self.value * (now - self.since)
            self.most = max(self.most, self.value)
            self.since = now
        # A rest after sums of fractions is zero.
        self.value = value if abs(value := self.value + delta) > 1e-9 else 0.0

    def until(self, now: float) -> float:
        """Return the sum over time up to now."""
        return self.area + self.value * (now - self.since)


class Waits:
    """Times of waiting: exact up to a million of them, of more every second, fourth and so on."""

    __slots__ = ("_every", "_seen", "_values", "most")

    def __init__(self) -> None:
        self._values = array("d")
        self._every = 1
        self._seen = 0
        self.most = 0.0

    def add(self, seconds: float) -> None:
        """Add a value."""
        self.most = max(self.most, seconds)
        self._seen += 1
        if self._seen % self._every:
            return
        self._values.append(seconds)
        if len(self._values) >= _MOST_WAITS:
            self._values = self._values[::2]
            self._every *= 2

    def quantiles(self, *parts: float) -> list[float]:
        """Return the quantiles by nearest rank, 0 without values."""
        ordered = sorted(self._values)
        if not ordered:
            return [0.0 for _ in parts]
        return [ordered[min(len(ordered) - 1, max(0, -int(-part * len(ordered) // 1) - 1))] for part in parts]


class Timeline:
    """Two amounts of each team over time, in at most so many steps; a step gets twice as long when they are full."""

    def __init__(self, teams: tuple[str, ...]) -> None:
        self.step = _FIRST_STEP
        self._sums: dict[tuple[str, str], list[float]] = {
            (team, kind): [0.0] * _STEPS for team in teams for kind in ("used", "waiting")
        }

    def add(self, team: str, state: str, since: float, now: float, value: float) -> None:
        """Count an amount for a while."""
        while now > self.step * _STEPS:
            for key, sums in self._sums.items():
                halves = [sums[i] + sums[i + 1] for i in range(0, _STEPS, 2)]
                self._sums[key] = halves + [0.0] * (_STEPS - len(halves))
            self.step *= 2
        sums, step = self._sums[team, state], self.step
        first, last = int(since / step), min(int(now / step), _STEPS - 1)
        for index in range(first, last + 1):
            sums[index] += value * (min(now, (index + 1) * step) - max(since, index * step))

    def series(self, end: float) -> dict[str, Series]:
        """Return the averages of each step up to the end."""
        count = min(_STEPS, max(1, -int(-end // self.step)))
        lengths = [min(self.step, max(1e-9, end - index * self.step)) for index in range(count)]
        averages = {}
        for team in dict.fromkeys(team for team, _ in self._sums):
            used, waiting = (
                tuple(total / length for total, length in zip(self._sums[team, state], lengths, strict=False))
                for state in ("used", "waiting")
            )
            averages[team] = Series(used, waiting)
        return averages
