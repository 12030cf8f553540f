"""A stack's Grafana: an Amazon Managed Grafana workspace, opened for a few minutes, or an existing Grafana.

A workspace's token is only in the memory of one run. The token and its service account are deleted when the run ends,
even after an error. A killed process leaves a token that is valid for ten minutes, and a later run uses its account.
The token of an existing Grafana is read from AWS Secrets Manager, and also stays in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from boto3 import Session
from botocore.exceptions import BotoCoreError, ClientError

from hpkit.config.observability import ExistingGrafana, wrong_address
from hpkit.errors import ToolError
from hpkit.plan.model import Plan
from hpkit.text.printable import printable

__all__ = ["RIGHTS", "Access", "account_of", "existing_access", "find_workspace", "let_in", "prometheus_url"]

# IAM actions that callers need; a test compares them with the actual calls.
RIGHTS: Final = (
    "aps:DescribeWorkspace",
    "aps:ListWorkspaces",
    "grafana:CreateWorkspaceServiceAccount",
    "grafana:CreateWorkspaceServiceAccountToken",
    "grafana:DeleteWorkspaceServiceAccount",
    "grafana:DeleteWorkspaceServiceAccountToken",
    "grafana:DescribeWorkspace",
    "grafana:ListWorkspaceServiceAccountTokens",
    "grafana:ListWorkspaceServiceAccounts",
    "grafana:ListWorkspaces",
    "secretsmanager:GetSecretValue",
    "sts:GetCallerIdentity",
)
# A fixed name, so that two simultaneous runs see each other.
_ACCOUNT: Final = "hpkit-grafana-apply"
_TOKEN_SECONDS: Final = 600
# Characters that a header can have, without white space.
_TOKEN: Final = re.compile(r"[!-~]+")
_AMAZON: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


@dataclass(frozen=True, slots=True)
class Access:
    """A Grafana's address, and its token, which no text of this object contains.

    name and address: for messages and links; secret: the token's source, empty for a token of this run.
    """

    url: str
    host: str
    token: str = field(repr=False)
    name: str = ""
    address: str = ""
    secret: str = ""

    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        return {"Authorization": f"Bearer {self.token}", "Host": self.host, "Accept": "application/json"}


def find_workspace(session: Session, plan: Plan, identifier: str | None = None) -> dict[str, Any]:
    """Return the description of a stack's workspace, found by name or ID.

    Raises ToolError unless it exists and is ACTIVE.
    """
    grafana = _client(session, "grafana")
    if identifier is None:
        pages = _called(lambda: grafana.get_paginator("list_workspaces").paginate().build_full_result())
        workspace_ids = [each["id"] for each in pages["workspaces"] if each.get("name") == plan.stack]
        if len(workspace_ids) != 1:
            found = f"{len(workspace_ids)} workspaces are called" if workspace_ids else "no workspace is called"
            raise ToolError(
                f"{found} {plan.stack} in "
                f"{plan.spec.region}{': ' if workspace_ids else ''}{', '.join(workspace_ids)}. What to do: "
                "deploy the stack with observability.grafana, or choose one with --workspace ID"
            )
        (identifier,) = workspace_ids
    workspace: dict[str, Any] = _called(lambda: grafana.describe_workspace(workspaceId=identifier))["workspace"]
    if workspace["status"] != "ACTIVE":
        raise ToolError(f"workspace {identifier} is {workspace['status']}. What to do: wait until it is ACTIVE")
    return workspace


def existing_access(session: Session, spec: ExistingGrafana) -> Access:
    """Return access to a Grafana that hpkit doesn't create. Raises ToolError unless its secret has a token.

    A file with errors can be applied too, so the address is checked again before the token is sent.

    Source: AWS Secrets Manager API reference, GetSecretValue. A secret has `SecretString` or `SecretBinary`.
    """
    wrong = wrong_address(spec.url)
    if wrong:
        raise ToolError(
            f"existingGrafana.url {printable(spec.url)}: {wrong}. What to do: correct it, then run the command again"
        )
    arn, address = spec.token_secret_arn, spec.url.rstrip("/")
    client = session.client("secretsmanager", region_name=arn.split(":")[3])
    try:
        text = client.get_secret_value(SecretId=arn).get("SecretString") or ""
    except (ClientError, BotoCoreError) as error:
        code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
        if code != "ResourceNotFoundException":
            raise _failed(error) from None
        raise ToolError(
            f"secret {arn} doesn't exist. What to do: create it with the token of a service account, or correct "
            "existingGrafana.tokenSecretArn"
        ) from None
    token = _token_in(text)
    if token is None:
        raise ToolError(
            f"secret {arn} has no token. What to do: store the token of a service account as its text, or as JSON: "
            '{"token": "…"}'
        )
    host = urlsplit(address).netloc
    url = _reached(str(client.meta.endpoint_url), host, address)
    return Access(url, host, token, name=address, address=address, secret=arn)


def _token_in(text: str) -> str | None:
    """Return the token in a secret's text, plain or as JSON; None if an HTTP header can't contain it."""
    try:
        secret = json.loads(text)
    except ValueError:
        secret = text.strip()
    token = secret.get("token") if isinstance(secret, dict) else secret
    return token if isinstance(token, str) and _TOKEN.fullmatch(token) else None


def prometheus_url(session: Session, plan: Plan) -> str:
    """Return the query URL of the stack's Managed Prometheus, without `/api`.

    Raises ToolError unless it has one workspace.
    """
    amp = _client(session, "amp")
    pages = _called(lambda: amp.get_paginator("list_workspaces").paginate(alias=plan.stack).build_full_result())
    # The service matches an alias as a prefix.
    workspace_ids = [each["workspaceId"] for each in pages["workspaces"] if each.get("alias") == plan.stack]
    if len(workspace_ids) != 1:
        raise ToolError(
            f"{len(workspace_ids)} workspaces of Managed Prometheus have the alias {plan.stack} in {plan.spec.region}. "
            "What to do: deploy the stack with observability.prometheus"
        )
    described = _called(lambda: amp.describe_workspace(workspaceId=workspace_ids[0]))["workspace"]
    return str(described["prometheusEndpoint"]).rstrip("/")


def account_of(session: Session) -> str:
    """Return the 12 digits of the credentials' account."""
    sts = _client(session, "sts")
    return str(_called(sts.get_caller_identity)["Account"])


@contextmanager
def let_in(session: Session, workspace: dict[str, Any]) -> Iterator[Access]:
    """Yield access to a workspace with a token that is deleted at the end of the block."""
    grafana, identifier = _client(session, "grafana"), {"workspaceId": workspace["id"]}
    account = {**identifier, "serviceAccountId": _service_account(grafana, identifier)}
    deletions = [lambda: grafana.delete_workspace_service_account(**account)]
    try:
        answer = _called(
            lambda: grafana.create_workspace_service_account_token(
                **account, name=_ACCOUNT, secondsToLive=_TOKEN_SECONDS
            )
        )
        token = answer["serviceAccountToken"]
        deletions.insert(0, lambda: grafana.delete_workspace_service_account_token(**account, tokenId=token["id"]))
        yield _access(grafana, workspace, token["key"])
    except BaseException as error:
        remaining = _end(deletions)
        if remaining and isinstance(error, ToolError):
            raise ToolError(f"{error}. {remaining}") from None
        raise
    if remaining := _end(deletions):
        raise ToolError(remaining)


def _end(deletions: Sequence[Callable[[], object]]) -> str:
    """Delete token and account, even if one deletion fails; return a description of what remains."""
    problems = []
    for delete in deletions:
        try:
            delete()
        except (ClientError, BotoCoreError) as error:
            if not (isinstance(error, ClientError) and error.response["Error"]["Code"] == "ResourceNotFoundException"):
                problems.append(str(_failed(error)))
    return f"Its service account {_ACCOUNT} is left in the workspace: {'; '.join(problems)}" if problems else ""


def _service_account(grafana: Any, identifier: dict[str, str]) -> str:
    """Return the ID of a new account, or of one left by a killed run. Raises ToolError while another run uses it."""
    try:
        # Only administrators can change data sources and provisioning.
        made = grafana.create_workspace_service_account(**identifier, name=_ACCOUNT, grafanaRole="ADMIN")
        return str(made["id"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConflictException":
            raise _failed(error) from None
    except BotoCoreError as error:
        raise _failed(error) from None
    pages = _called(
        lambda: grafana.get_paginator("list_workspace_service_accounts").paginate(**identifier).build_full_result()
    )
    account = next((each["id"] for each in pages["serviceAccounts"] if each["name"] == _ACCOUNT), None)
    if account is None:
        raise ToolError("another run in this workspace just ended. What to do: run the command again")
    tokens = _called(
        lambda: (
            grafana.get_paginator("list_workspace_service_account_tokens")
            .paginate(**identifier, serviceAccountId=account)
            .build_full_result()
        )
    )["serviceAccountTokens"]
    now = datetime.now(tz=UTC)
    until = max((each["expiresAt"] for each in tokens), default=now)
    if until > now:
        raise ToolError(
            f"another run is active in this workspace, or was killed. What to do: wait until it ends, or until its "
            f"token expires at {until.astimezone(UTC):%H:%M:%S} UTC"
        )
    return str(account)


def _access(grafana: Any, workspace: dict[str, Any], token: str) -> Access:
    host, address = str(workspace["endpoint"]), f"https://{workspace['endpoint']}"
    url = _reached(str(grafana.meta.endpoint_url), host, address)
    return Access(url, host, token, name=workspace["id"], address=address)


def _reached(endpoint: str, host: str, address: str) -> str:
    """Return Grafana's base URL: its own, except if the SDK is configured to use another endpoint for AWS."""
    is_aws = (urlsplit(endpoint).hostname or "").endswith(_AMAZON)
    return address if is_aws or not host.endswith(_AMAZON) else endpoint.rstrip("/")


def _client(session: Session, service: str) -> Any:
    return session.client(service)


def _called(call: Any) -> Any:
    try:
        return call()
    except (ClientError, BotoCoreError) as error:
        raise _failed(error) from None


def _failed(error: Exception) -> ToolError:
    if isinstance(error, ClientError):
        details = error.response["Error"]
        return ToolError(
            f"{error.operation_name}: {details['Code']}: {details.get('Message', '')}. What to do: use credentials "
            f"that allow {error.operation_name}"
        )
    return ToolError(f"{error}. What to do: check that this machine can reach AWS")
