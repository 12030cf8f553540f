"""Whether a process answers on its port."""

import urllib3

__all__ = ["http_status"]

_SECONDS = 2.0


def http_status(port: int, path: str) -> int:
    """Return the status that a plain HTTP endpoint on loopback answers; ConnectionError if it does not answer."""
    try:
        return urllib3.request("GET", f"http://127.0.0.1:{port}{path}", timeout=_SECONDS, retries=False).status
    except urllib3.exceptions.HTTPError as error:
        raise ConnectionError(f"GET {path} on port {port}: {error}") from error
