"""Serves a page to browsers on this machine, and refreshes it while one shows it.

Other users of the machine, and pages of other sites that a browser shows, can send requests to a port on loopback. So
the path has a random token, and the Host header must be the server's own: a name that an attacker's DNS server resolves
to 127.0.0.1 is refused. The page loads nothing and runs no script.
"""

from __future__ import annotations

import hmac
import secrets
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

__all__ = ["PageServer"]

_ADDRESS: Final = "127.0.0.1"
# A browser that sends nothing for so long is disconnected.
_SECONDS: Final = 30
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class PageServer(ThreadingHTTPServer):
    """A server of one page on a free port.

    page: returns the page, and is called for a request if the last page is older than `every` seconds.
    """

    daemon_threads = True

    def __init__(self, page: Callable[[], str], every: float) -> None:
        super().__init__((_ADDRESS, 0), _Handler)
        self.every, self._page = every, page
        self.path = f"/{secrets.token_urlsafe(32)}"
        self.hosts = (f"{_ADDRESS}:{self.server_port}", f"localhost:{self.server_port}")
        self._lock = threading.Lock()
        self._last: tuple[float, bytes] | None = None

    @property
    def url(self) -> str:
        """Return the address with the token; a browser with it sees the page."""
        return f"http://{self.hosts[0]}{self.path}"

    def body(self) -> bytes:
        """Return the page, at most `every` seconds old."""
        with self._lock:
            if self._last is None or time.monotonic() - self._last[0] >= self.every:
                text = self._page().encode()
                self._last = time.monotonic(), text
            return self._last[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Print a traceback, unless the browser closed the connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # as it was called


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = _SECONDS
    server_version, sys_version = "hpkit", ""

    def do_GET(self) -> None:
        if self.headers.get_all("Host", []) not in ([host] for host in self.server.hosts):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, b"Use the address that hpkit printed.\n", "text/plain")
        elif not hmac.compare_digest(self.path.encode(), self.server.path.encode()):
            self._answer(HTTPStatus.NOT_FOUND, b"Use the address that hpkit printed.\n", "text/plain")
        else:
            self._answer(HTTPStatus.OK, self.server.body(), "text/html", Refresh=f"{self.server.every:g}")

    def _answer(self, status: HTTPStatus, body: bytes, media_type: str, **headers: str) -> None:
        self.send_response(status)
        length = {"Content-Type": f"{media_type}; charset=utf-8", "Content-Length": str(len(body))}
        for name, value in {**length, **_HEADERS, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: a request's path contains the token."""
