"""The credentials of a recording: those of its caller, read again before they end.

Recorded processes get them as those of a container have them, which SDKs ask for again.
Source: https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from botocore.credentials import ReadOnlyCredentials

from hpkit.errors import ToolError

__all__ = ["Login"]

_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
# They would lead an SDK to other credentials.
_OTHERS: Final = (
    *_KEYS,
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
)
# In a process of its own: it has the caller's variables, and sees what a new login wrote.
_READ: Final = """
import json, sys
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session
try:
    found = Session().get_credentials()
    keys = found and list(found.get_frozen_credentials()[:3])
except (BotoCoreError, ClientError) as error:
    sys.exit(str(error))
end = getattr(found, "_expiry_time", None)
print(json.dumps([keys, end and end.timestamp()]))
"""
# SDKs renew what lasts less than 5 to 15 minutes: so early is the login read again. It's also how often one without a
# known end is.
_EARLY_SECONDS: Final = 900.0
_OFTEN_SECONDS: Final = 300.0
_LEAST_SECONDS: Final = 30.0
_LONGEST_SECONDS: Final = 60.0
_GIVEN: Final = timedelta(minutes=20)


class Login:
    """The caller's credentials. Raises ToolError if there are none."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._lock = threading.Lock()
        self._issued: dict[str, ReadOnlyCredentials] = {}
        self._secret = secrets.token_urlsafe(32)
        key, secret, token = (environment.get(name) for name in _KEYS)
        self._is_fixed = bool(key and secret)
        self._next = 0.0
        self._current = ReadOnlyCredentials(key, secret, token or None) if key and secret else self._read()
        self._issued[self._current.access_key] = self._current

    @property
    def issued(self) -> Mapping[str, ReadOnlyCredentials]:
        """All credentials so far, by access key: callers can hold earlier ones."""
        return self._issued

    def current(self) -> ReadOnlyCredentials:
        """Return the newest credentials; if the login has ended, the last ones, which AWS refuses in its own words."""
        with self._lock:
            if not self._is_fixed and time.time() > self._next:
                try:
                    self._current = self._read()
                except ToolError:
                    self._next = time.time() + _LEAST_SECONDS
                self._issued[self._current.access_key] = self._current
            return self._current

    def variables(self, url: str) -> dict[str, str | None]:
        """Return what leads SDKs to these credentials, at a URL; None is a variable that must be absent."""
        if self._is_fixed:
            return {}
        return {
            **dict.fromkeys(_OTHERS),
            **dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull),
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": url,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": self._secret,
        }

    def document(self, authorization: str) -> bytes | None:
        """Return the credentials for an SDK, or None if the request lacks the recording's own token."""
        if not hmac.compare_digest(authorization.encode(), self._secret.encode()):
            return None
        given = self.current()
        return json.dumps(
            {
                "AccessKeyId": given.access_key,
                "SecretAccessKey": given.secret_key,
                "Token": given.token or "",
                "Expiration": (datetime.now(UTC) + _GIVEN).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        ).encode()

    def _read(self) -> ReadOnlyCredentials:
        # A login that asks for a code can do so only at the beginning, not in the background.
        later = bool(self._issued)
        try:
            done = subprocess.run(  # noqa: S603 - the command is fixed
                [sys.executable, "-c", _READ],
                env=self._environment,
                stdin=subprocess.DEVNULL if later else None,
                capture_output=True,
                text=True,
                check=False,
                start_new_session=later,
                timeout=_LONGEST_SECONDS if later else None,
            )
        except subprocess.TimeoutExpired as error:
            raise ToolError(f"--record: no credentials for AWS: {error}") from None
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise ToolError(f"--record: no credentials for AWS: {lines[-1] if lines else done.returncode}")
        keys, end = json.loads(done.stdout)
        if not keys:
            raise ToolError("--record: no credentials for AWS. Set AWS_PROFILE, or sign in as for other commands")
        self._next = max(time.time() + _LEAST_SECONDS, end - _EARLY_SECONDS if end else time.time() + _OFTEN_SECONDS)
        return ReadOnlyCredentials(*keys)
