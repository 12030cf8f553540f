"""Whether a process answers on its port."""

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
    """Return the status that an endpoint on loopback answers; ConnectionError if it does not answer.

    With the certificate of an authority, it is asked by TLS; client: certificate and key of who asks; posts: a document
    that is sent.
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
