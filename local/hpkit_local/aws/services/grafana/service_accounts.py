"""Service accounts of Grafana workspaces, and their tokens for Grafana's own HTTP API."""

from __future__ import annotations

from hashlib import sha256

from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.grafana.workspaces import require_workspace

__all__ = ["role_of_token"]


def role_of_token(ctx: Context, workspace: Record, key: str) -> str | None:
    """Return the Grafana role that a token has in a workspace, None for one that is unknown or has ended."""
    digest = _digest(key)
    for account in workspace["serviceAccounts"].values():
        for token in account["tokens"].values():
            if token["digest"] == digest and token["expiresAt"] > ctx.now:
                role: str = account["grafanaRole"]
                return role
    return None


def _digest(key: str) -> str:
    # Like Grafana, it keeps only what is needed to recognize a token.
    return sha256(key.encode()).hexdigest()


# Source: https://docs.aws.amazon.com/grafana/latest/APIReference/API_DeleteWorkspaceServiceAccount.html
def _account(workspace: Record, identifier: str) -> Record:
    account: Record | None = workspace["serviceAccounts"].get(identifier)
    if account is None:
        raise ServiceError("ResourceNotFoundException", f"Service account {identifier} does not exist", status=404)
    return account


# Source: https://docs.aws.amazon.com/grafana/latest/APIReference/API_CreateWorkspaceServiceAccount.html
@operation("grafana", "CreateWorkspaceServiceAccount")
def create_workspace_service_account(ctx: Context, params: Record) -> Record:
    """Create an account; its name is unique in the workspace."""
    workspace = require_workspace(ctx, params["workspaceId"], active=True)
    accounts = workspace["serviceAccounts"]
    if params["name"] in [each["name"] for each in accounts.values()]:
        raise ServiceError("ConflictException", f"Service account {params['name']} already exists", status=409)
    workspace["serial"] += 1
    made = {"id": str(workspace["serial"]), "name": params["name"], "grafanaRole": params["grafanaRole"]}
    accounts[made["id"]] = {**made, "tokens": {}}
    return {**made, "workspaceId": workspace["id"]}


@operation("grafana", "DeleteWorkspaceServiceAccount")
def delete_workspace_service_account(ctx: Context, params: Record) -> Record:
    """Delete an account and its tokens."""
    workspace = require_workspace(ctx, params["workspaceId"], active=True)
    account = _account(workspace, params["serviceAccountId"])
    del workspace["serviceAccounts"][account["id"]]
    return {"serviceAccountId": account["id"], "workspaceId": workspace["id"]}


@operation("grafana", "ListWorkspaceServiceAccounts")
def list_workspace_service_accounts(ctx: Context, params: Record) -> Record:
    """Return accounts in pages."""
    workspace = require_workspace(ctx, params["workspaceId"])
    shown = [
        {"id": account["id"], "name": account["name"], "isDisabled": "false", "grafanaRole": account["grafanaRole"]}
        for account in workspace["serviceAccounts"].values()
    ]
    entries, token = page(shown, size=params.get("maxResults"), token=params.get("nextToken"))
    return {
        "serviceAccounts": entries,
        "workspaceId": workspace["id"],
        **({"nextToken": token} if token else {}),
    }


# Inferred from: https://docs.aws.amazon.com/grafana/latest/APIReference/API_CreateWorkspaceServiceAccountToken.html
@operation("grafana", "CreateWorkspaceServiceAccountToken")
def create_workspace_service_account_token(ctx: Context, params: Record) -> Record:
    """Create a token; only this answer contains its key."""
    workspace = require_workspace(ctx, params["workspaceId"], active=True)
    account = _account(workspace, params["serviceAccountId"])
    if params["name"] in [each["name"] for each in account["tokens"].values()]:
        raise ServiceError("ConflictException", f"Token {params['name']} already exists", status=409)
    workspace["serial"] += 1
    key = f"glsa_{ctx.token(32)}"
    token = {
        "id": str(workspace["serial"]),
        "name": params["name"],
        "createdAt": ctx.now,
        "expiresAt": ctx.now + params["secondsToLive"],
        "digest": _digest(key),
    }
    account["tokens"][token["id"]] = token
    told = {"id": token["id"], "name": token["name"], "key": key}
    return {"serviceAccountToken": told, "serviceAccountId": account["id"], "workspaceId": workspace["id"]}


# Source: https://docs.aws.amazon.com/grafana/latest/APIReference/API_DeleteWorkspaceServiceAccountToken.html
@operation("grafana", "DeleteWorkspaceServiceAccountToken")
def delete_workspace_service_account_token(ctx: Context, params: Record) -> Record:
    """Delete a token: requests with it are refused from now on."""
    workspace = require_workspace(ctx, params["workspaceId"], active=True)
    account = _account(workspace, params["serviceAccountId"])
    if params["tokenId"] not in account["tokens"]:
        raise ServiceError("ResourceNotFoundException", f"Token {params['tokenId']} does not exist", status=404)
    del account["tokens"][params["tokenId"]]
    return {
        "tokenId": params["tokenId"],
        "serviceAccountId": account["id"],
        "workspaceId": workspace["id"],
    }


@operation("grafana", "ListWorkspaceServiceAccountTokens")
def list_workspace_service_account_tokens(ctx: Context, params: Record) -> Record:
    """Return tokens in pages, without their keys."""
    workspace = require_workspace(ctx, params["workspaceId"])
    account = _account(workspace, params["serviceAccountId"])
    shown = [{key: value for key, value in each.items() if key != "digest"} for each in account["tokens"].values()]
    entries, token = page(shown, size=params.get("maxResults"), token=params.get("nextToken"))
    return {
        "serviceAccountTokens": entries,
        "serviceAccountId": account["id"],
        "workspaceId": workspace["id"],
        **({"nextToken": token} if token else {}),
    }
