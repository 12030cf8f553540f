"""moto's in-process backends, one set per endpoint, with a snapshot for each service.

moto keeps its state in module globals. Each endpoint owns a `MotoState`; while it is active, that endpoint's
backends are the globals, so two endpoints in one process do not see each other.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from moto.backends import get_backend
from moto.core.base_backend import BackendDict
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.test import EnvironBuilder, run_wsgi_app

from hpkit_local.aws import bucketpolicy
from hpkit_local.aws.errors import Reply, unsupported
from hpkit_local.aws.moto_ec2 import load_instance_types, needs_instance_types
from hpkit_local.aws.moto_patches import CALLER_KEY, patch_moto

if TYPE_CHECKING:
    from moto.backends import SERVICE_NAMES

__all__ = ["DEFAULT_ACCOUNT", "SERVICES", "MotoState"]

DEFAULT_ACCOUNT: str = DEFAULT_ACCOUNT_ID
SERVICES = ("amp", "cloudwatch", "ec2", "ecr", "fsx", "iam", "kms", "logs", "s3", "servicequotas", "sns", "sts")

# Thousands of public images that HyperPod never asks for: without them EC2 is 20 times lighter to save.
os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
# AWS's own policies, such as AmazonEKSClusterPolicy, must be there to be attached.
os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_FIRST_CALLS: Final[tuple[tuple[str, str, dict[str, str]], ...]] = (
    ("ec2", "Action=DescribeAvailabilityZones&Version=2016-11-15", _FORM),
    ("iam", "Action=ListRoles&Version=2010-05-08", _FORM),
    ("sts", "Action=GetCallerIdentity&Version=2011-06-15", _FORM),
    ("kms", "{}", {"X-Amz-Target": "TrentService.ListKeys"}),
    ("logs", "{}", {"X-Amz-Target": "Logs_20140328.DescribeLogGroups"}),
    ("s3", "", {}),
)

bucketpolicy.install()

patch_moto()
_swap = threading.RLock()
_current: list[MotoState] = []
_dispatcher = DomainDispatcherApplication(create_backend_app)

_LOCK = type(threading.RLock())

Backends = dict[str, dict[str, Any]]


class MotoState:
    """The moto backends of one endpoint, all of one AWS account."""

    def __init__(self, account: str = DEFAULT_ACCOUNT) -> None:
        self._account = account
        self._inactive: dict[str, Backends] = {service: {} for service in SERVICES}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make these backends the ones that moto sees; one `MotoState` at a time in a process."""
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
        return regions["aws" if service in ("iam", "s3", "sts") else region]

    def set_caller(self, role: str | None, region: str) -> None:
        """Give callers of unknown access keys a session of an IAM role, None: of none; only inside `active`."""
        sts = self.backend("sts", region)
        sts.assumed_roles[:] = [each for each in sts.assumed_roles if each.access_key_id != CALLER_KEY]
        if role is not None:
            session = sts.assume_role(region, "hpkit", role, policy="", duration=3600, external_id="")
            session.access_key_id = CALLER_KEY

    def call(self, environ: dict[str, Any], *, service: str, operation: str, account: str | None = None) -> Reply:
        """Let moto answer one request, by default in the endpoint's own account."""
        if service == "ec2" and needs_instance_types(operation):
            load_instance_types()
        # What moto's own responses look for before they guess an account from the access key.
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

    def warm(self, region: str) -> None:
        """Have moto load what every platform asks for first, which takes it a second; only inside `active`."""
        for service, body, headers in _FIRST_CALLS:
            scope = f"{self._account}/20000101/{region}/{service}/aws4_request"
            environ = EnvironBuilder(
                base_url=f"http://{service}.{region}.amazonaws.com/",
                method="POST" if body else "GET",
                data=body,
                headers=[*headers.items(), ("Authorization", f"AWS4-HMAC-SHA256 Credential={scope}")],
            ).get_environ()
            self.call(environ, service=service, operation="")

    def snapshot(self, service: str) -> bytes:
        """Return the backends of one service as bytes; only inside `active`."""
        target = io.BytesIO()
        _Pickler(target, protocol=5).dump(_collect(service))
        return target.getvalue()

    def restore(self, service: str, blob: bytes) -> None:
        """Take over backends that `snapshot` wrote; only before the first `active`."""
        self._inactive[service] = _Unpickler(io.BytesIO(blob)).load()

    def close(self) -> None:
        """Leave nothing behind in moto's globals."""
        with _swap:
            if _current and _current[0] is self:
                self.deactivate()
                _current.clear()

    def deactivate(self) -> None:
        """Take the backends out of moto's globals."""
        for service in SERVICES:
            self._inactive[service] = _collect(service)
            _globals(service).clear()
        s3_backends.bucket_accounts.clear()

    def _activate(self) -> None:
        for service in SERVICES:
            found = _globals(service)
            found.clear()
            for account, regions in self._inactive[service].items():
                found[account].update(regions)
        _index_buckets()


def _globals(service: str) -> BackendDict[Any]:
    backends: BackendDict[Any] = get_backend(cast("SERVICE_NAMES", service))
    return backends


def _index_buckets() -> None:
    """Rebuild the index of bucket names, which moto keeps beside the backends."""
    index: dict[str, tuple[str, str]] = s3_backends.bucket_accounts
    index.clear()
    for account, partitions in s3_backends.items():
        for partition, backend in partitions.items():
            index.update(dict.fromkeys(backend.buckets, (partition, account)))


def _collect(service: str) -> Backends:
    return {account: dict(regions.items()) for account, regions in _globals(service).items()}


# Of this module, in state files.
_EARLIER_NAMES = ("local.aws.motohost", "local.aws.moto_state")


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote: our own state file, see state.py."""

    def find_class(self, module: str, name: str) -> Any:
        # Written before the module had its present name.
        return super().find_class(__name__ if module in _EARLIER_NAMES else module, name)


class _Pickler(pickle.Pickler):
    """Private keys (KMS holds some) travel as PKCS#8, AWS's own policies (1,500 documents) by name, locks anew."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _LOCK):
            # ECR's backend has one, which nobody holds between two calls.
            return threading.RLock, ()
        if isinstance(obj, (RSAPrivateKey, EllipticCurvePrivateKey)):
            encoded = obj.private_bytes(
                serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            return _load_key, (encoded,)
        if isinstance(obj, AWSManagedPolicy) and obj.attachment_count == 0:
            return _load_policy, (obj.name, obj.account_id)
        return NotImplemented


def _load_key(encoded: bytes) -> PrivateKeyTypes:
    return serialization.load_der_private_key(encoded, None)


@cache
def _policies() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(aws_managed_policies_data)
    return found


def _load_policy(name: str, account: str) -> Any:
    return AWSManagedPolicy.from_data(name, account, "aws", _policies()[name])
