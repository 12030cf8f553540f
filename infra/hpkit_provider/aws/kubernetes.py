"""The plugin's calls to the Kubernetes API of an EKS cluster, with a token of the caller."""

import base64
import binascii
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from hpkit.text.formatting import is_loopback
from hpkit_provider.aws.client import SageMakerApi
from hpkit_provider.engine.errors import RejectedError

__all__ = ["EksApi", "Unanswered"]

_SECONDS = 20.0
_LONGEST_MESSAGE = 300


class Unanswered(Exception):  # noqa: N818 - not an error by itself: the caller asks again
    """The API server didn't respond, or rejected the call; the text states why."""


@dataclass(frozen=True)
class EksApi:
    """The Kubernetes API of one EKS cluster.

    Every request has a new token: an API server may remember for minutes that it rejected one.
    """

    aws: SageMakerApi
    cluster: str
    endpoint: str
    authority: str

    def get(self, path: str) -> dict[str, Any]:
        """Return the API server's response. Raises Unanswered if it doesn't respond."""
        url = f"{self.endpoint.rstrip('/')}{path}"
        if urlsplit(url).scheme != "https":
            raise RejectedError(f"endpoint {self.endpoint!r} isn't an https address. To fix: use the cluster's.")
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self.aws.eks_token(self.cluster)}"}
        proxies = [ProxyHandler({})] if is_loopback(url) else []
        opener = build_opener(HTTPSHandler(context=self._trust()), *proxies)
        try:
            with opener.open(Request(url, headers=headers), timeout=_SECONDS) as answer:  # noqa: S310 - checked above
                found: dict[str, Any] = json.load(answer)
                return found
        except HTTPError as error:
            raise Unanswered(f"{error.code} {error.reason}{_message(error)}") from None
        except (OSError, ValueError) as error:
            raise Unanswered(str(getattr(error, "reason", error))) from None

    def _trust(self) -> ssl.SSLContext:
        try:
            text = base64.b64decode(self.authority, validate=True).decode()
            context = ssl.create_default_context(cadata=text)
        except (binascii.Error, ValueError, ssl.SSLError):
            raise RejectedError(
                "certificateAuthority isn't a certificate in base64. To fix: use the cluster's."
            ) from None
        # The certificates of EKS lack the extensions that Python 3.13 requires by default.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


def _message(error: HTTPError) -> str:
    try:
        found = json.loads(error.read(100_000))
        return f": {str(found['message'])[:_LONGEST_MESSAGE]}" if found.get("message") else ""
    except (OSError, ValueError, AttributeError):
        return ""
