"""Calls to AWS: one client a service, throttles waited out, every call counted."""

import base64
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError
from botocore.session import Session

from hpkit.text.formatting import is_loopback
from hpkit_provider import VERSION
from hpkit_provider.aws.errors import classify, rejected
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import RejectedError

__all__ = ["ClientSettings", "Document", "SageMakerApi", "live_tags", "operation_name", "set_tags", "settings_from"]

Document = dict[str, Any]  # an operation's input or output, in the API's format

_CONNECTIONS = 64
_TRANSIENT_TRIES = 12  # for 40 seconds or so
_BEST_EFFORT_TRIES = 6  # for 2
_FIRST_DELAY, _MAX_DELAY = 0.1, 15.0
_TOKEN_URL_SECONDS = 60  # as in the AWS CLI; EKS takes the token for 15 minutes
# Requests that are safe to send again if it's unknown whether they arrived.
_REPEATABLE = ("describe_", "list_", "delete_", "add_tags")


@dataclass(frozen=True)
class ClientSettings:
    """The target and the credentials of calls."""

    region: str | None = None
    endpoint: str | None = None
    profile: str | None = None
    assume_role_arn: str | None = None
    account_id: str | None = None
    sts_endpoint: str | None = None


def settings_from(config: Mapping[str, str], environment: Mapping[str, str]) -> ClientSettings:
    """Read the provider's configuration; missing values come from the stack's `aws:` values (PULUMI_CONFIG)."""
    try:
        stack = json.loads(environment.get("PULUMI_CONFIG") or "{}")
    except ValueError:
        stack = {}
    aws = {key.rpartition(":")[2]: value for key, value in stack.items() if key.startswith("aws:")}
    endpoint = (
        config.get("endpoint") or _first(aws, "endpoints", "sagemaker") or environment.get("AWS_ENDPOINT_URL_SAGEMAKER")
    )
    sts_endpoint = _first(aws, "endpoints", "sts")
    if is_loopback(environment.get("AWS_ENDPOINT_URL", "")):
        _require_loopback(endpoint, sts_endpoint)
    return ClientSettings(
        region=config.get("region") or aws.get("region") or environment.get("AWS_REGION"),
        endpoint=endpoint,
        account_id=config.get("accountId"),
        # A local cloud serves every service; AWS's own endpoint of SageMaker serves only that one.
        sts_endpoint=sts_endpoint or (endpoint if endpoint and is_loopback(endpoint) else None),
        profile=config.get("profile") or aws.get("profile"),
        assume_role_arn=config.get("assumeRoleArn") or _first(aws, "assumeRoles", "roleArn"),
    )


def _first(aws: Mapping[str, Any], key: str, member: str) -> str | None:
    """Return a member of the first entry of a structured `aws:` value, which the engine passes as JSON text."""
    value = aws.get(key)
    try:
        entries = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None
    entry = entries[0] if isinstance(entries, list) and entries else entries
    found = entry.get(member) if isinstance(entry, dict) else None
    return found if isinstance(found, str) and found else None


def _require_loopback(*endpoints: str | None) -> None:
    """Doesn't leave this machine where all of AWS is led to it: a run on a local cloud would call AWS."""
    away = [each for each in endpoints if each and not is_loopback(each)]
    if away:
        raise RejectedError(
            f"AWS_ENDPOINT_URL points to this machine, but another endpoint points to {', '.join(away)}. Nothing was "
            "read or changed. To fix: on a local cloud, remove hyperpod:endpoint, aws:endpoints and "
            "AWS_ENDPOINT_URL_SAGEMAKER; to deploy to AWS, unset AWS_ENDPOINT_URL"
        )


class SageMakerApi:
    """The SageMaker API, as the handlers use it."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.calls: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._session: boto3.Session | None = None
        self._clients: dict[str, Any] = {}
        self._signers: dict[str, Any] = {}
        self._is_account_checked = settings.account_id is None

    def client(self, service: str = "sagemaker") -> Any:
        """Return the boto3 client of a service, which is created at the first call."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._create(service)
            return self._clients[service]

    def eks_token(self, cluster: str) -> str:
        """Return a new token for the API server of an EKS cluster, as `aws eks get-token` creates it.

        Source: aws-iam-authenticator, "API Authorization from Outside a Cluster".
        """

        def name_cluster(request: Any, **_: Any) -> None:
            request.headers["x-k8s-aws-id"] = cluster

        with self._lock:
            if cluster not in self._signers:
                self._signers[cluster] = self._create("sts")
                self._signers[cluster].meta.events.register("before-sign.sts.GetCallerIdentity", name_cluster)
        try:
            url = self._signers[cluster].generate_presigned_url(
                "get_caller_identity", ExpiresIn=_TOKEN_URL_SECONDS, HttpMethod="GET"
            )
        except (ClientError, BotoCoreError) as error:
            raise rejected("GetCallerIdentity", error) from None
        return "k8s-aws-v1." + base64.urlsafe_b64encode(str(url).encode()).decode().rstrip("=")

    def _create(self, service: str) -> Any:
        """Create a client; call it under the lock."""
        if self._session is None:
            self._session = boto3.Session(botocore_session=_session(self.settings), region_name=self.settings.region)
        if not self._is_account_checked:
            self._check_account(self._session)
        created = self._session.client(
            service,
            endpoint_url=self._endpoint(service),
            config=Config(
                # Retries are hpkit's own, so that they can be canceled, counted and shown.
                retries={"total_max_attempts": 1},
                max_pool_connections=_CONNECTIONS,
                user_agent_extra=f"hyperpod-plugin/{VERSION}",
            ),
        )
        created.meta.events.register("before-parse", _require_whole_body)
        return created

    def _endpoint(self, service: str) -> str | None:
        settings = self.settings
        if service == "sagemaker":
            return settings.endpoint
        if service == "sts":
            return settings.sts_endpoint
        # A local cloud answers for every service.
        return settings.endpoint if settings.endpoint and is_loopback(settings.endpoint) else None

    def _check_account(self, session: boto3.Session) -> None:
        """Ask whose the credentials are, before any other call: to another account, all of a stack seems to be gone."""
        try:
            identity = session.client("sts", endpoint_url=self.settings.sts_endpoint).get_caller_identity()
        except (ClientError, BotoCoreError) as error:
            raise rejected("GetCallerIdentity", error) from None
        account, expected = identity["Account"], self.settings.account_id
        if account != expected:
            raise RejectedError(
                f"these credentials ({identity['Arn']}) belong to account {account}, but this stack belongs to account "
                f"{expected}. Nothing was read or changed. To fix: use credentials of {expected} (AWS_PROFILE, "
                "aws:profile of the stack), or correct hyperpod:accountId (hpkit: `account` of the environment)"
            )
        self._is_account_checked = True

    def _send(self, operation: str, params: Document) -> Document:
        service, _, method = operation.rpartition(".")
        answer: Document = getattr(self.client(service or "sagemaker"), method)(**params)
        return answer

    def raw(self, call: EngineCall, operation: str, /, **params: Any) -> Document:
        """Call once, with retries when throttled; any other failure is botocore's exception.

        operation: of SageMaker, or with another service's name before it: `kms.describe_key`.
        """
        delays = call.delays(_FIRST_DELAY, _MAX_DELAY)
        transient_failures, most = 0, _BEST_EFFORT_TRIES if call.best_effort else _TRANSIENT_TRIES
        while True:
            with self._lock:
                self.calls[operation] += 1
            try:
                return self._send(operation, params)
            except (ClientError, BotoCoreError) as error:
                error_class = classify(error)
                if error_class == "transient" and operation.rpartition(".")[2].startswith(_REPEATABLE):
                    transient_failures += 1
                    error_class = "throttled" if transient_failures < most else error_class
                if error_class != "throttled":
                    raise
            call.pause(next(delays))

    def call(self, call: EngineCall, operation: str, /, **params: Any) -> Document:
        """Call; a failure is a readable one."""
        try:
            return self.raw(call, operation, **params)
        except (ClientError, BotoCoreError) as error:
            raise rejected(operation_name(operation), error) from None

    def find(self, call: EngineCall, operation: str, /, **params: Any) -> Document | None:
        """Call; None when the thing is not there."""
        try:
            return self.raw(call, operation, **params)
        except (ClientError, BotoCoreError) as error:
            if classify(error) == "not found":
                return None
            raise rejected(operation_name(operation), error) from None

    def pages(self, call: EngineCall, operation: str, /, *, member: str, **params: Any) -> Iterator[Document]:
        """Yield the entries of all pages of a list."""
        token: dict[str, Any] = {}
        while True:
            answer = self.call(call, operation, **params, **token)
            yield from answer.get(member, [])
            if not answer.get("NextToken"):
                return
            token = {"NextToken": answer["NextToken"]}


def operation_name(operation: str) -> str:
    """Return the API's name of an operation: `create_cluster` is CreateCluster."""
    return "".join(part.capitalize() for part in operation.rpartition(".")[2].split("_"))


def _require_whole_body(response_dict: Mapping[str, Any], **_: Any) -> None:
    """Reject an answer that was cut off: botocore takes one without its body for an empty success."""
    length, body = response_dict["headers"].get("content-length", "0"), response_dict["body"]
    if isinstance(body, bytes) and len(body) < int(length):
        raise ConnectionClosedError(endpoint_url="sagemaker")


def _session(settings: ClientSettings) -> Session:
    session = Session(profile=settings.profile)
    if settings.assume_role_arn:
        fetcher = AssumeRoleCredentialFetcher(
            client_creator=session.create_client,
            source_credentials=session.get_credentials(),
            role_arn=settings.assume_role_arn,
            extra_args={"RoleSessionName": f"hyperpod-plugin-{os.getpid()}"},
        )
        credentials = DeferredRefreshableCredentials(method="assume-role", refresh_using=fetcher.fetch_credentials)
        session._credentials = credentials  # noqa: SLF001 - botocore offers no setter; boto3's docs do the same
    return session


Tags = list[dict[str, str]]


def live_tags(api: SageMakerApi, call: EngineCall, arn: str) -> Tags:
    """Return a resource's tags, without those that AWS sets itself."""
    tags = api.pages(call, "list_tags", member="Tags", ResourceArn=arn)
    return [{"key": tag["Key"], "value": tag["Value"]} for tag in tags if not tag["Key"].startswith("aws:")]


def set_tags(api: SageMakerApi, call: EngineCall, arn: str, *, old: Tags, new: Tags) -> None:
    """Send changed tags; tags that others added stay."""
    before = {tag["key"]: tag["value"] for tag in old}
    after = {tag["key"]: tag["value"] for tag in new}
    changed = [{"Key": key, "Value": value} for key, value in after.items() if before.get(key) != value]
    if changed:
        api.call(call, "add_tags", ResourceArn=arn, Tags=changed)
    removed = sorted(before.keys() - after.keys())
    if removed:
        api.call(call, "delete_tags", ResourceArn=arn, TagKeys=removed)
