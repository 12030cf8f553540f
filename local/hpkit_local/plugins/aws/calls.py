"""Calls to the endpoint: one client a service and region, the official plugin's retries, every call declared."""

import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, EndpointConnectionError

from hpkit_local.plugins.aws.config import Settings
from hpkit_provider.engine.call import EngineCall, wait
from hpkit_provider.engine.errors import ChangeFailedError, PluginError, rejected

__all__ = ["Calls", "Clients", "Retry", "until"]

_TRIES = 8
_FIRST, _MOST = 0.1, 3.0
_LEAST_SECONDS = 60.0  # what a change takes on the busiest machine, however short the endpoint makes its time
_AWAY: Final = (ConnectionClosedError, EndpointConnectionError)
_AWAY_TRIES = 156  # five minutes: a cloud that is started again is up by then, on the busiest machine
_AWAY_MOST = 2.0
_GONE: Final = re.compile(
    r"NotFound$|^NoSuch|^ResourceNotFound|NotFoundException$|NotFoundError$|^404$|^InvalidVpcEndpoint(Id)?NotFound"
)
# The official plugin's client for S3 repeats these calls (terraform-provider-aws 6.58.0, s3/withExtraOptions).
_CONFLICTING: Final = "OperationAborted: A conflicting conditional operation"
_POLL_SECONDS = 5.0
_POLL_SHARE = 0.05  # fraction of the time waited, between two polls


@dataclass(frozen=True)
class Retry:
    """Which errors of an operation the official plugin waits out, and how long.

    - seconds: how long it repeats the call.
    - errors: the beginning of `code: message`, or a part of it.
    """

    seconds: float
    errors: tuple[str, ...]

    def waits_for(self, text: str) -> bool:
        """Return whether the call is repeated after this error."""
        return any(each in text for each in self.errors)


@dataclass(frozen=True)
class Account:
    """The caller's identity."""

    account: str
    arn: str
    user: str


class Clients:
    """The clients of one configuration."""

    def __init__(self, settings: Settings, cancelled: threading.Event) -> None:
        self.settings = settings
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], Any] = {}
        # Explicit, so that the user's own credentials are never read.
        self._session = boto3.Session(
            aws_access_key_id="local",
            aws_secret_access_key="local",  # noqa: S106 - the endpoint checks no signature
            region_name=settings.region,
        )
        for role in settings.roles:
            self._session = self._as(role)

    def _as(self, role: str) -> boto3.Session:
        try:
            answer = self._client("sts").assume_role(RoleArn=role, RoleSessionName="pulumi")["Credentials"]
        except (ClientError, BotoCoreError) as error:
            raise _failed("AssumeRole", error) from None
        return boto3.Session(
            aws_access_key_id=answer["AccessKeyId"],
            aws_secret_access_key=answer["SecretAccessKey"],
            aws_session_token=answer["SessionToken"],
            region_name=self.settings.region,
        )

    def _client(self, service: str, region: str | None = None) -> Any:
        client = self._session.client(
            service,
            region_name=region,
            endpoint_url=self.settings.endpoints.get(service, self.settings.endpoint),
            config=Config(
                retries={"mode": "standard", "total_max_attempts": _TRIES},
                s3={"addressing_style": "path"},
                max_pool_connections=64,
            ),
        )
        client.meta.events.register_first("needs-retry", self._outlast)
        return client

    def _outlast(self, attempts: int, caught_exception: Exception | None, **_: Any) -> float | None:
        """Wait until the endpoint is available.

        Repeated within one botocore call, a request is recognized as the same.
        """
        if not isinstance(caught_exception, _AWAY):
            return None
        cancelled = self._cancelled.wait(min(_FIRST * attempts, _AWAY_MOST))
        # False, because None would leave it to botocore's own retries.
        return False if cancelled or attempts >= _AWAY_TRIES else 0.0

    def get(self, service: str, region: str) -> Any:
        """Return a client; creating one isn't thread-safe."""
        with self._lock:
            key = (service, region)
            if key not in self._made:
                self._made[key] = self._client(service, region)
            return self._made[key]

    @cached_property
    def account(self) -> str:
        """The account of the endpoint."""
        return self.whoami().account

    def whoami(self) -> Account:
        """Return the account, and reject an account that the configuration excludes."""
        try:
            answer = self.get("sts", self.settings.region).get_caller_identity()
        except (ClientError, BotoCoreError) as error:
            raise _failed("GetCallerIdentity", error) from None
        account = str(answer["Account"])
        allowed, forbidden = self.settings.allowed_accounts, self.settings.forbidden_accounts
        if allowed and account not in allowed:
            raise PluginError(f"The account is {account}; aws:allowedAccountIds allows {', '.join(allowed)} only.")
        if account in forbidden:
            raise PluginError(f"The account is {account}, which aws:forbiddenAccountIds excludes.")
        return Account(account, str(answer["Arn"]), str(answer["UserId"]))


class Calls:
    """The calls of one operation on one resource: `call("CreateVpc", CidrBlock=…)`; values of None are not sent."""

    def __init__(
        self,
        clients: Clients,
        engine_call: EngineCall,
        *,
        service: str,
        region: str,
        allowed: frozenset[str],
        owner: str,
        retries: Mapping[str, Retry] | None = None,
    ) -> None:
        self.clients, self.engine_call, self.service, self.region = clients, engine_call, service, region
        self._allowed, self._owner, self._retries = allowed, owner, retries or {}

    def __call__(self, operation: str, /, **params: Any) -> Any:
        """Call; a failure is a readable one."""
        try:
            return self._patiently(operation, params)
        except (ClientError, BotoCoreError) as error:
            raise _failed(operation, error) from None

    def find(self, operation: str, /, **params: Any) -> Any | None:
        """Call; None when the thing is not there."""
        try:
            return self._patiently(operation, params)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and _GONE.search(error.response["Error"]["Code"]):
                return None
            raise _failed(operation, error) from None

    def settle(self, seconds: float) -> None:
        """Wait as long as the official plugin does beyond the service's own time, scaled as that time is."""
        if seconds := seconds * self.clients.settings.latency_factor:
            self.engine_call.pause(seconds)

    @property
    def account(self) -> str:
        """The account that ARNs name."""
        return self.clients.account

    def pages(self, operation: str, member: str, /, **params: Any) -> Iterator[Any]:
        """Yield the entries of all pages of a list; nothing if its owner is deleted."""
        client = self._client(operation)
        sent = {name: value for name, value in params.items() if value is not None}
        try:
            for page in client.get_paginator(xform_name(operation)).paginate(**sent):
                yield from page.get(member, [])
        except (ClientError, BotoCoreError) as error:
            if not (isinstance(error, ClientError) and _GONE.search(error.response["Error"]["Code"])):
                raise _failed(operation, error) from None

    def _client(self, operation: str) -> Any:
        if operation not in self._allowed:
            raise PluginError(f"{self._owner} calls {operation}, which its entry in resource_types.json doesn't list.")
        return self.clients.get(self.service, self.region)

    def _patiently(self, operation: str, params: dict[str, Any]) -> Any:
        client = self._client(operation)
        arguments = {name: value for name, value in params.items() if value is not None}
        waited = 0.0
        for delay in self.engine_call.delays(_FIRST, _MOST):
            try:
                return getattr(client, xform_name(operation))(**arguments)
            except ClientError as error:
                if not self._is_passing(operation, error, waited):
                    raise
            self.engine_call.progress(f"{operation} must wait for another change")
            self.engine_call.pause(delay)
            waited += delay
        raise AssertionError  # pragma: no cover - delays never end

    def _is_passing(self, operation: str, error: ClientError, waited: float) -> bool:
        text = f"{error.response['Error']['Code']}: {error.response['Error'].get('Message', '')}"
        if self.service == "s3" and text.startswith(_CONFLICTING):
            return True
        retry = self._retries.get(operation)
        if retry is None or not retry.waits_for(text) or self.engine_call.left < _MOST:
            return False
        return waited < max(_LEAST_SECONDS, retry.seconds * self.clients.settings.latency_factor)


def _failed(operation: str, error: ClientError | BotoCoreError) -> PluginError:
    """Turn what botocore raised into one readable sentence."""
    if isinstance(error, _AWAY):
        return PluginError(
            f"{operation}: the local cloud's AWS endpoint doesn't respond ({error}). "
            "To fix: `hpkit local list` shows the local clouds. Run `hpkit local start --name NAME`, then run the "
            "command again."
        )
    return rejected(operation, error)


def until(
    call: Calls,
    read_live: Callable[[], Any | None],
    *,
    status: Callable[[Any], str],
    ready: Collection[str] = (),
    failed: Collection[str] = (),
    until_gone: bool = False,
    delay: float = 0.0,
) -> None:
    """Read until the status is one of `ready`, or, with `until_gone`, until the resource no longer exists.

    delay: how long the official plugin waits beyond that, scaled: its StateChangeConf's Delay and, for each further
    equal read (ContinuousTargetOccurence), MinTimeout or PollInterval (terraform-provider-aws 6.58.0).
    """
    call.settle(delay)

    def status_of(seen: Any | None) -> str:
        return "gone" if seen is None else status(seen)

    def settled(seen: Any | None) -> bool:
        return (
            (seen is None)
            if until_gone and status_of(seen) not in failed
            else seen is None or status_of(seen) in {*ready, *failed}
        )

    seen = wait(
        call.engine_call,
        read_live,
        settled=settled,
        progress=status_of,
        max_seconds=_POLL_SECONDS,
        fraction=_POLL_SHARE,
    )
    if seen is not None and status_of(seen) in failed:
        raise ChangeFailedError(f"ended in status {status_of(seen)}: {_reason(seen)}")
    if seen is None and not until_gone:
        raise ChangeFailedError("was deleted while Pulumi waited for it; run `pulumi refresh`")


def _reason(seen: Any) -> str:
    issues = seen.get("health", {}).get("issues", []) if isinstance(seen, dict) else []
    texts = [str(issue.get("message", issue.get("code"))) for issue in issues]
    return "; ".join(texts) or str(seen.get("FailureMessage") or seen.get("FailureDetails") or "AWS gives no reason")
