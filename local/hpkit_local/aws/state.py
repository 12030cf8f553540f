"""The state file: an SQLite database, so that every write is atomic and covers only what changed.

Key `own` is JSON (this package's data); keys `moto:<service>` are pickles of moto's backends. Responses are stored next
to them, each with the change that it reports. Open only files that this program wrote: a pickle can contain code.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hpkit_local.aws.errors import EndpointError

__all__ = ["StateFile"]

FORMAT = 2
# More than there can be requests under way when the process is killed.
_ANSWERS = 1000


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
        self._database.execute("CREATE TABLE IF NOT EXISTS answers (name TEXT PRIMARY KEY, value BLOB NOT NULL)")
        self._database.execute(f"PRAGMA user_version={FORMAT}")

    def read(self) -> dict[str, bytes]:
        """Everything that was written."""
        return dict(self._database.execute("SELECT name, value FROM blobs").fetchall())

    def answer(self, name: str) -> bytes | None:
        """Return the earlier response to a request, if it was recent."""
        found = self._database.execute("SELECT value FROM answers WHERE name = ?", (name,)).fetchone()
        return None if found is None else bytes(found[0])

    def write(self, blobs: dict[str, bytes], answers: dict[str, bytes]) -> None:
        """Write these blobs and answers in one transaction."""
        self._database.execute("BEGIN")
        self._database.executemany("REPLACE INTO blobs (name, value) VALUES (?, ?)", list(blobs.items()))
        self._database.executemany("REPLACE INTO answers (name, value) VALUES (?, ?)", list(answers.items()))
        self._database.execute("DELETE FROM answers WHERE rowid <= (SELECT MAX(rowid) FROM answers) - ?", (_ANSWERS,))
        self._database.execute("COMMIT")

    def close(self) -> None:
        """Release the file."""
        self._database.close()
