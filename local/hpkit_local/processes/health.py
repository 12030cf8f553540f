"""Checks whether a process answers on its port."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3

__all__ = ["http_status"]

_SECONDS = 2.0


def http_status(
    port: int,
    path: str,
    *,
    authority: Path | None = None,
    client: tuple[Path, Path] | None = None,
    posts: Mapping[str, Any] | None = None,
) -> int:
    """Return the status of an endpoint on loopback. Raises ConnectionError if it doesn't respond.

    With the certificate of an authority, it's called with TLS; client: the caller's certificate and key; posts: a
    document to send.
    """
    method = "GET" if posts is None else "POST"
    certificate, key = map(str, client) if client else (None, None)
    url = f"{'https' if authority else 'http'}://127.0.0.1:{port}{path}"
    try:
        with urllib3.PoolManager(
            ca_certs=str(authority) if authority else None, cert_file=certificate, key_file=key
        ) as pool:
            return pool.request(method, url, json=posts, timeout=_SECONDS, retries=False).status
    except urllib3.exceptions.HTTPError as error:
        raise ConnectionError(f"{method} {path} on port {port}: {error}") from error
