"""Permissions in a Grafana workspace: users and groups of the identity provider, by role."""

from __future__ import annotations

from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.services.grafana.workspaces import require_workspace

__all__: list[str] = []


@operation("grafana", "UpdatePermissions")
def update_permissions(ctx: Context, params: Record) -> Record:
    """Add and remove roles; a role that a user doesn't have is reported, and the others are applied."""
    entries = require_workspace(ctx, params["workspaceId"], active=True)["permissions"]
    errors = []
    for instruction in params["updateInstructionBatch"]:
        for user in instruction["users"]:
            entry = {"user": user, "role": instruction["role"]}
            if instruction["action"] == "ADD":
                entries[:] = [each for each in entries if each["user"] != user]  # a user has one role at a time
                entries.append(entry)
            elif entry in entries:
                entries.remove(entry)
            else:
                errors.append({"code": 404, "message": f"User {user['id']} has no such role", "causedBy": instruction})
    return {"errors": errors}


@operation("grafana", "ListPermissions")
def list_permissions(ctx: Context, params: Record) -> Record:
    """Return roles in pages, all or those of a user or group."""
    user = {key: params[name] for name, key in (("userType", "type"), ("userId", "id")) if name in params}
    if "groupId" in params:
        user = {"type": "SSO_GROUP", "id": params["groupId"]}
    matching = [
        entry
        for entry in require_workspace(ctx, params["workspaceId"])["permissions"]
        if all(entry["user"][key] == value for key, value in user.items())
    ]
    entries, token = page(matching, size=params.get("maxResults"), token=params.get("nextToken"))
    return {"permissions": entries, **({"nextToken": token} if token else {})}
