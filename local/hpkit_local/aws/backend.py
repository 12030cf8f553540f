"""The state of one endpoint: its records, timers, faults, clock, random numbers, and moto's backends.

The state file: an SQLite database, so that every write is atomic and covers only what changed. Key `own` is JSON (this
package's data); keys `moto:<service>` are pickles of moto's backends. Open only files that this program wrote: a pickle
can contain code.
"""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpkit_local.aws.controllers import ControllerError, Controllers, RequeueAfter
from hpkit_local.aws.errors import EndpointError
from hpkit_local.aws.faults import Faults
from hpkit_local.aws.moto_state import DEFAULT_ACCOUNT, MotoState, moto_services
from hpkit_local.aws.service import ACTIONS, MACHINES

__all__ = [
    "Backend",
    "Context",
    "EndpointSettings",
    "Record",
    "StateFile",
    "restored",
]


FORMAT = 2


class StateFile:
    """Named blobs that survive the end of the process, kill -9 included."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        # A pickle can run code here, so only the owner may write the file. SQLite gives its journal the mode of the
        # database.
        path.touch(mode=0o600)
        path.chmod(0o600)
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=1.0)
        try:
            self._open()
        except sqlite3.OperationalError as error:
            self._database.close()
            raise EndpointError(
                f"{path} cannot be opened ({error}); stop the endpoint that uses it, or give another path"
            ) from None
        except sqlite3.DatabaseError as error:
            self._database.close()
            raise EndpointError(f"{path} is not a state file of this program ({error}); give another path") from None
        except EndpointError:
            self._database.close()
            raise

    def _open(self) -> None:
        # The page cache survives the process, so only a power failure loses it: no fsync for each call.
        self._database.execute("PRAGMA synchronous=OFF")
        # Held until the process ends in any way: two endpoints must not write one file.
        self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
        (state_format,) = self._database.execute("PRAGMA user_version").fetchone()
        if state_format not in (0, FORMAT):
            raise EndpointError(
                f"{self.path} has state format {state_format}, this program writes {FORMAT}; delete it or "
                "give another path"
            )
        self._database.execute("CREATE TABLE IF NOT EXISTS blobs (name TEXT PRIMARY KEY, value BLOB NOT NULL)")
        self._database.execute(f"PRAGMA user_version={FORMAT}")

    def read(self) -> dict[str, bytes]:
        """Everything that was written."""
        return dict(self._database.execute("SELECT name, value FROM blobs").fetchall())

    def write(self, blobs: dict[str, bytes]) -> None:
        """Write these blobs in one transaction."""
        self._database.execute("BEGIN")
        self._database.executemany("REPLACE INTO blobs (name, value) VALUES (?, ?)", list(blobs.items()))
        self._database.execute("COMMIT")

    def close(self) -> None:
        """Release the file."""
        self._database.close()


Record = dict[str, Any]
_restored: list[Callable[[Backend], None]] = []


def restored(function: Callable[[Backend], None]) -> Callable[[Backend], None]:
    """Register what a service does after a backend has read its state file."""
    _restored.append(function)
    return function


@dataclass(frozen=True)
class EndpointSettings:
    """The settings of an endpoint.

    account: the AWS account of everything in it. caller_account: the callers' account, None for the same; callers from
    another account see nothing. caller_role: the ARN of the role whose session callers have, None if they are a user.
    caller_address: the callers' address, as the cloud's networks see it, None for any address that each EKS cluster
    admits. clock: seconds since the epoch; a transition that fell due while the server was down is applied at the next
    start.
    """

    state_file: Path | None = None
    latency_factor: float = 1.0
    faults: dict[str, object] = field(default_factory=dict)
    region: str = "us-west-2"
    seed: int | None = None
    clock: Callable[[], float] = time.time
    controllers: Controllers = field(default_factory=Controllers)
    account: str = DEFAULT_ACCOUNT
    caller_account: str | None = None
    caller_role: str | None = None
    caller_address: str | None = None


class Backend:
    """The state of one endpoint. Everything but `lock` itself is used with the lock held."""

    def __init__(self, settings: EndpointSettings, state: Mapping[str, bytes] | None = None) -> None:
        """Begin with a state that `state` returned, by default with that of the state file."""
        if settings.latency_factor < 0:
            raise EndpointError(f"latency factor {settings.latency_factor:g} must be 0 or more")
        self.settings = settings
        self.lock = threading.RLock()
        self.moto = MotoState(settings.account)
        self._file = StateFile(settings.state_file) if settings.state_file else None
        self._data: Record = self._load(state or (self._file.read() if self._file else {}))
        self._data["boots"] += 1
        with self.moto.active():
            for function in _restored:
                function(self)
        self._touched = {"own"}
        # A restart must not draw the ids of the run before it.
        seed = None if settings.seed is None else f"{settings.seed}:{self._data['boots']}"
        self.rng = random.Random(seed)  # noqa: S311 - ids and dice, no secrets
        self.faults = Faults(self.rng)
        self.faults.update(settings.faults)

    def _load(self, state: Mapping[str, bytes]) -> Record:
        fresh: Record = {"boots": 0, "serial": 0, "regions": {}, "timers": [], "tokens": {}}
        for name, blob in state.items():
            if name == "own":
                fresh = json.loads(blob)
            elif name.removeprefix("moto:") in moto_services():
                self.moto.restore(name.removeprefix("moto:"), blob)
        return fresh

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock: no other request runs, and moto sees this endpoint's backends."""
        with self.lock, self.moto.active():
            yield

    def table(self, region: str, table_name: str) -> dict[str, Record]:
        """Return the records of one kind in one region, by key; survives a restart."""
        tables = self._data["regions"].setdefault(region, {})
        records: dict[str, Record] = tables.setdefault(table_name, {})
        return records

    def names(self, kind: str) -> list[str]:
        """Return the keys of one kind in all regions."""
        return [name for tables in self._data["regions"].values() for name in tables.get(kind, {})]

    @property
    def regions(self) -> list[str]:
        """Regions that have records."""
        return list(self._data["regions"])

    @property
    def tokens(self) -> dict[str, Record]:
        """Answers remembered for client tokens."""
        found: dict[str, Record] = self._data["tokens"]
        return found

    def context(self, region: str, *, now: float | None = None, access_key: str = "") -> Context:
        """Return the context of one call or one timer."""
        return Context(
            backend=self,
            region=region,
            now=self.settings.clock() if now is None else now,
            access_key=access_key,
        )

    def later(self, ctx: Context, seconds: float, action: str, args: Record) -> None:
        """Set a timer, in seconds of real time."""
        self._data["serial"] += 1
        self._data["timers"].append(
            {
                "at": ctx.now + seconds,
                "serial": self._data["serial"],
                "region": ctx.region,
                "action": action,
                "args": args,
            }
        )

    def settle(self) -> None:
        """Apply every transition that is due, in the order of time; call it `locked`."""
        while (timer := self._next_due()) is not None:
            self._data["timers"].remove(timer)
            self.touched("own")
            ctx = self.context(timer["region"], now=timer["at"])
            try:
                ACTIONS[timer["action"]](ctx, **timer["args"])
            except RequeueAfter as request:
                timer["at"] = self.settings.clock() + max(request.seconds, 0.05)
                self._data["timers"].append(timer)
            except ControllerError as error:
                ACTIONS[timer["action"]](ctx, **{**timer["args"], "failure": str(error)})

    def _next_due(self) -> Record | None:
        now = self.settings.clock()
        due = [timer for timer in self._data["timers"] if timer["at"] <= now]
        return min(due, key=lambda timer: (timer["at"], timer["serial"]), default=None)

    def seconds_to_next(self) -> float | None:
        """Return the time until the next transition."""
        now = self.settings.clock()
        waits = [timer["at"] - now for timer in self._data["timers"]]
        return max(0.0, min(waits)) if waits else None

    def touched(self, service: str) -> None:
        """Note that a moto backend, or `own` for this package's records, must be written by the next save."""
        self._touched.add(service)

    def save(self, *changed: str) -> None:
        """Write what changed: this package's records, and moto's backends of the services named."""
        names = self._touched.union(changed)
        self._touched.clear()
        if self._file is not None and names:
            self._file.write(self.state(names))

    def state(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return this package's records, if `own` is among the names, and moto's backends of services."""
        blobs = {f"moto:{service}": self.moto.snapshot(service) for service in names if service in moto_services()}
        if "own" in names:
            blobs["own"] = json.dumps(self._data).encode()
        return blobs

    def close(self) -> None:
        """Write everything and release the lock."""
        with self.locked():
            self.save("own", *moto_services())
        self.moto.close()
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True)
class Context:
    """The context of one call: the backend, region, time and caller."""

    backend: Backend
    region: str
    now: float
    access_key: str = ""

    @property
    def account(self) -> str:
        """Return the only account of the endpoint."""
        return self.backend.settings.account

    @property
    def faults(self) -> Faults:
        """The active faults."""
        return self.backend.faults

    @property
    def controllers(self) -> Controllers:
        """The controllers that follow changes in the cluster."""
        return self.backend.settings.controllers

    def table(self, kind: str) -> dict[str, Record]:
        """Return the records of one kind in this region."""
        return self.backend.table(self.region, kind)

    def arn(self, service: str, resource: str) -> str:
        """Return an ARN in this region and account."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"

    def token(self, length: int, alphabet: str = "abcdefghijklmnopqrstuvwxyz0123456789") -> str:
        """Return a random id, repeatable with the endpoint's seed."""
        return "".join(self.backend.rng.choice(alphabet) for _ in range(length))

    def uuid(self) -> str:
        """Return a random id in the form of a UUID."""
        digits = self.token(32, "0123456789abcdef")
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def begin(self, machine: str, action: str, **args: Any) -> str:
        """Start a declared change: a timer for `action`; returns the status shown meanwhile."""
        declared = MACHINES[machine]
        factor = self.backend.settings.latency_factor
        seconds = declared.seconds * factor + (self.faults.value(f"slow-{declared.change}", declared.kind) or 0.0)
        if self.faults.strikes(f"failed-{declared.change}", declared.kind):
            args["failure"] = f"fault injected: failed-{declared.change}"
        self.backend.later(self, seconds, action, args)
        return declared.running
