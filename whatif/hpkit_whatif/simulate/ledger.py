"""Usage of an instance type by team, and who lends it: by resource, in whole base units.

Kueue knows how much a queue borrows, but not from whom. Here, each loan belongs to a task, and to the teams with the
most idle quota at that time. It ends with the task, or when another task of its team frees the team's own quota. If a
lender uses its quota itself, its loans move to queues with idle quota, the latest first. So teams never lend more than
their idle quota.
"""

from array import array
from collections.abc import Iterable, Sequence

from hpkit_whatif.simulate.quotas import NOBODY, TypeQuota
from hpkit_whatif.simulate.report import Series

__all__ = ["Gauge", "Ledger", "Timeline", "Waits"]

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


class Loan:
    """What a running task uses beyond its team's quota: per lender, by resource."""

    __slots__ = ("by",)

    def __init__(self) -> None:
        self.by: dict[str, list[int]] = {}


class Account:
    """A team's quota of the type: its own usage, what others borrow, and the sums of both over time.

    In instances, by the most used resource: in_use; over: beyond the quota; away: lent; idle: used by no one.
    """

    __slots__ = (
        "_since",
        "away",
        "away_sum",
        "idle",
        "idle_sum",
        "in_use",
        "lent",
        "loans",
        "name",
        "nominal",
        "over",
        "over_sum",
        "quota",
        "used",
        "used_sum",
        "whole",
    )

    def __init__(self, name: str, nominal: Sequence[int], whole: Sequence[int]) -> None:
        self.name = name
        self.nominal = list(nominal)
        self.whole = list(whole)
        self.used = [0] * len(self.whole)
        self.lent = [0] * len(self.whole)
        self.loans: dict[str, Loan] = {}
        self.quota = max([have / one for have, one in zip(self.nominal, self.whole, strict=True)])
        self.in_use = self.over = self.away = 0.0
        self.idle = self.quota
        self.used_sum = self.over_sum = self.away_sum = self.idle_sum = 0.0
        self._since = 0.0

    def free(self, resource: int) -> int:
        """Return the idle amount of a resource that isn't lent."""
        left = self.nominal[resource] - self.used[resource] - self.lent[resource]
        return left if left > 0 else 0  # noqa: FURB136 - twice as fast

    def settle(self, now: float) -> None:
        """Sum up to now, before usage or loans change."""
        passed = now - self._since
        if passed > 0.0:
            self.used_sum += self.in_use * passed
            self.over_sum += self.over * passed
            self.away_sum += self.away * passed
            self.idle_sum += self.idle * passed
            self._since = now

    def measure(self) -> None:
        """Read the current values of usage and loans."""
        in_use = over = away = busy = 0.0
        for index, one in enumerate(self.whole):
            used, have, lent = self.used[index], self.nominal[index], self.lent[index]
            in_use = max(in_use, used / one)
            over = max(over, (used - have) / one)
            away = max(away, lent / one)
            busy = max(busy, (min(used, have) + lent) / one)
        self.in_use, self.over, self.away = in_use, over, away
        self.idle = max(0.0, self.quota - busy)


class Ledger:
    """The accounts of one instance type, and the loans of its running tasks."""

    def __init__(self, quota: TypeQuota, teams: Iterable[str], lenders: Iterable[str]) -> None:
        """Create accounts from quotas, all team names, and the teams whose idle quota others can use."""
        self.whole = list(quota.whole)
        self._instances = quota.instances
        nothing = [0] * len(self.whole)
        self._accounts = {name: Account(name, quota.nominal.get(name, nothing), self.whole) for name in teams}
        self._nobody = Account(NOBODY, quota.nominal.get(NOBODY, nothing), self.whole)
        self._lenders = [self._accounts[name] for name in lenders]
        self._loans: dict[str, Loan] = {}
        self._total = [0] * len(self.whole)
        self._in_use = 0.0
        self._sum = 0.0
        self._since = 0.0

    def account(self, team: str) -> Account:
        """Return a team's account."""
        return self._accounts[team]

    def used(self, now: float) -> float:
        """Return the instance-seconds in use of all teams together, as far as there are instances."""
        return self._sum + self._in_use * (now - self._since)

    def begin(self, now: float, task: str, team: str, amounts: Sequence[int]) -> dict[str, float]:
        """Add a running task; return how many instances it borrows from whom, by its most used resource."""
        account = self._accounts[team]
        account.settle(now)
        excess = [0] * len(amounts)
        for index, amount in enumerate(amounts):
            left = max(0, account.nominal[index] - account.used[index])
            excess[index] = max(0, amount - left)
            account.used[index] += amount
        borrowed: dict[str, float] = {}
        self._call_back(now, account)
        if any(excess):
            loan = self._loans[task] = account.loans[task] = Loan()
            borrowed = self._borrow(now, loan, excess)
        account.measure()
        self._count(now, amounts, 1)
        return borrowed

    def end(self, now: float, task: str, team: str, amounts: Sequence[int]) -> None:
        """Remove a running task: its team returns excess loans, the task's own first."""
        account = self._accounts[team]
        account.settle(now)
        back = [0] * len(amounts)
        for index, amount in enumerate(amounts):
            before = max(0, account.used[index] - account.nominal[index])
            account.used[index] -= amount
            back[index] = before - max(0, account.used[index] - account.nominal[index])
        loan = account.loans.pop(task, None)
        if loan is not None:
            del self._loans[task]
            self._return(now, loan, back)
        if any(back):
            for other in account.loans.values():
                self._return(now, other, back)
                if not any(back):
                    break
        account.measure()
        self._count(now, amounts, -1)

    def _call_back(self, now: float, lender: Account) -> None:
        """Move loans of a lender that now uses its quota itself to other lenders."""
        short = [0] * len(self.whole)
        for index, lent in enumerate(lender.lent):
            if lent:
                short[index] = max(0, lent - max(0, lender.nominal[index] - lender.used[index]))
        if not any(short):
            return
        for loan in reversed(list(self._loans.values())):
            held = loan.by.get(lender.name)
            if held is None:
                continue
            moved = [min(there, wanted) for there, wanted in zip(held, short, strict=True)]
            if any(moved):
                self._change(now, loan, lender, moved, -1)
                self._borrow(now, loan, moved)
                short = [wanted - amount for wanted, amount in zip(short, moved, strict=True)]
                if not any(short):
                    return

    def _borrow(self, now: float, loan: Loan, amounts: Sequence[int]) -> dict[str, float]:
        parts = [amount / one for amount, one in zip(amounts, self.whole, strict=True)]
        most = parts.index(max(parts))
        left = list(amounts)
        borrowed: dict[str, float] = {}
        by_free = sorted([(-account.free(most), account.name) for account in self._lenders])
        for account in [*[self._accounts[name] for _, name in by_free], self._nobody]:
            took = [min(amount, account.free(index)) for index, amount in enumerate(left)]
            # If a cycle relies on victims, no one has that much for a moment.
            if account is self._nobody:
                took = left
            if any(took):
                self._change(now, loan, account, took, 1)
                left = [amount - part for amount, part in zip(left, took, strict=True)]
                if took[most]:
                    borrowed[account.name] = took[most] / self.whole[most]
                if not any(left):
                    break
        return borrowed

    def _return(self, now: float, loan: Loan, back: list[int]) -> None:
        """Return amounts to a loan's lenders; they are subtracted from `back`."""
        for name, held in loan.by.items():
            returned = [min(there, wanted) for there, wanted in zip(held, back, strict=True)]
            if any(returned):
                self._change(now, loan, self._nobody if name == NOBODY else self._accounts[name], returned, -1)
                for index, amount in enumerate(returned):
                    back[index] -= amount

    @staticmethod
    def _change(now: float, loan: Loan, lender: Account, amounts: Sequence[int], sign: int) -> None:
        lender.settle(now)
        held = loan.by.setdefault(lender.name, [0] * len(amounts))
        for index, amount in enumerate(amounts):
            held[index] += sign * amount
            lender.lent[index] += sign * amount
        lender.measure()

    def _count(self, now: float, amounts: Sequence[int], sign: int) -> None:
        self._sum += self._in_use * (now - self._since)
        self._since = now
        most = 0.0
        for index, amount in enumerate(amounts):
            self._total[index] += sign * amount
            most = max(most, self._total[index] / self.whole[index])
        self._in_use = min(most, self._instances)
