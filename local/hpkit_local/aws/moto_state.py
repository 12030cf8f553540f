"""moto's in-process backends, one set per endpoint, with a snapshot for each service.

moto keeps its state in module globals. Each endpoint owns a `MotoState`; while it's active, that endpoint's backends
are the globals, so two endpoints in one process don't see each other.
"""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from moto.backends import get_backend
from moto.core.base_backend import BackendDict
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.test import run_wsgi_app

from hpkit_local.aws.errors import Reply, unsupported
from hpkit_local.aws.service import Service, services

if TYPE_CHECKING:
    from moto.backends import SERVICE_NAMES

__all__ = ["DEFAULT_ACCOUNT", "MotoState", "moto_services", "swapped"]

DEFAULT_ACCOUNT: str = DEFAULT_ACCOUNT_ID

_swap = threading.RLock()
_current: list[MotoState] = []
_dispatcher = DomainDispatcherApplication(create_backend_app)

_LOCK = type(threading.RLock())

Backends = dict[str, dict[str, Any]]
_swapped: list[Callable[[], None]] = []


def swapped(function: Callable[[], None]) -> Callable[[], None]:
    """Register what follows each exchange of moto's globals."""
    _swapped.append(function)
    return function


def moto_services() -> dict[str, Service]:
    """Return the services that have backends of moto, by moto's name."""
    return {service.moto: service for service in services().values() if service.moto}


class MotoState:
    """The moto backends of one endpoint, all of one AWS account."""

    def __init__(self, account: str = DEFAULT_ACCOUNT) -> None:
        self._account = account
        self._inactive: dict[str, Backends] = {service: {} for service in moto_services()}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make moto use these backends; one `MotoState` at a time in a process."""
        with _swap:
            if not _current or _current[0] is not self:
                if _current:
                    _current[0].deactivate()
                self._activate()
                _current[:] = [self]
            yield

    def backend(self, service: str, region: str, *, account: str | None = None) -> Any:
        """Return a moto backend, by default of the endpoint's own account; only inside `active`."""
        regions = _globals(service)[account or self._account]
        return regions["aws" if moto_services()[service].in_moto_globally else region]

    def call(self, environ: dict[str, Any], *, service: str, operation: str, account: str | None = None) -> Reply:
        """Let moto answer one request, by default in the endpoint's own account."""
        # moto's own responses look for these before they guess an account from the access key.
        environ["HTTP_X_MOTO_ACCOUNT_ID"] = account or self._account
        try:
            body, status, headers = run_wsgi_app(_dispatcher, environ, buffered=True)
        except NotImplementedError:
            raise unsupported(service, operation) from None
        code = int(status.split()[0])
        content = b"".join(body)
        if code == 404 and b"Not yet implemented" in content:
            raise unsupported(service, operation)
        return Reply(code, content, dict(headers.items()))

    def snapshot(self, service: str) -> bytes:
        """Return the backends of one service as bytes; only inside `active`."""
        target = io.BytesIO()
        _Pickler(target, protocol=5).dump(_collect(service))
        return target.getvalue()

    def restore(self, service: str, blob: bytes) -> None:
        """Use backends that `snapshot` wrote; only before the first `active`."""
        self._inactive[service] = pickle.loads(blob)  # noqa: S301 - our own state file, see StateFile

    def close(self) -> None:
        """Leave nothing behind in moto's globals."""
        with _swap:
            if _current and _current[0] is self:
                self.deactivate()
                _current.clear()

    def deactivate(self) -> None:
        """Remove the backends from moto's globals."""
        for service in moto_services():
            self._inactive[service] = _collect(service)
            _globals(service).clear()
        _after_swap()

    def _activate(self) -> None:
        for service in moto_services():
            accounts = _globals(service)
            accounts.clear()
            for account, regions in self._inactive[service].items():
                accounts[account].update(regions)
        _after_swap()


def _globals(service: str) -> BackendDict[Any]:
    backends: BackendDict[Any] = get_backend(cast("SERVICE_NAMES", service))
    return backends


def _after_swap() -> None:
    for function in _swapped:
        function()


def _collect(service: str) -> Backends:
    return {account: dict(regions.items()) for account, regions in _globals(service).items()}


class _Pickler(pickle.Pickler):
    """Pickle private keys (some are in KMS) as PKCS#8, and create new locks."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _LOCK):
            # ECR's backend has a lock, which isn't held between two calls.
            return threading.RLock, ()
        if isinstance(obj, (RSAPrivateKey, EllipticCurvePrivateKey)):
            encoded = obj.private_bytes(
                serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            return _load_key, (encoded,)
        return NotImplemented


def _load_key(encoded: bytes) -> PrivateKeyTypes:
    return serialization.load_der_private_key(encoded, None)
