"""Rejects HTTP requests before they are read: those that a web page can make.

A page can reach loopback in two ways:

- DNS rebinding: its name resolves to 127.0.0.1 after the page was loaded. The header Host then contains that name.
- A form or an image request to another site. A browser sends it without asking if method, headers, and content type are
  simple (Fetch standard, "CORS-safelisted request-header").

This doesn't protect from other users of the machine: they can send any header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

__all__ = ["FORM_TYPES", "is_form", "refusal"]

# Content types that a browser sends to any site without asking first (Fetch standard, "CORS-safelisted
# request-header").
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_HTTP_PORT = 80


def refusal(environ: Mapping[str, Any], *, port: int) -> str:
    """Return why a request is rejected, or ""; port: the endpoint's port."""
    if not _is_own(environ.get("HTTP_HOST", ""), port):
        return f"the header Host must name this endpoint, such as 127.0.0.1:{port}"
    # Browsers add Origin to every request except simple GET and HEAD, and Sec-Fetch-Site to all requests. AWS SDKs
    # and the Kubernetes API server send neither.
    if "HTTP_ORIGIN" in environ:
        return "requests of web pages are rejected: the header Origin must be absent"
    if environ.get("HTTP_SEC_FETCH_SITE", "none") != "none":
        return "requests of web pages are rejected: the header Sec-Fetch-Site must be absent, or `none`"
    return ""


def is_form(environ: Mapping[str, Any]) -> bool:
    """Report whether an HTML form could have sent a request: a POST whose content type is simple or missing."""
    content_type = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    return environ["REQUEST_METHOD"] == "POST" and content_type in (*FORM_TYPES, "")


def _is_own(host: str, port: int) -> bool:
    """Return whether a Host header has loopback and the port.

    A name below `localhost` is loopback by RFC 6761, section 6.3: S3 clients put buckets there.
    """
    match = _HOST.fullmatch(host)
    if match is None or int(match["port"] or _HTTP_PORT) != port:
        return False
    name = match["name"].lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
