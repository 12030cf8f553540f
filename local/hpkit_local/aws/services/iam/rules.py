"""Requests that IAM rejects and moto doesn't: docs/reference/local-cloud-limits.md lists what is still accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hpkit_local.aws.api import rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.iam.references import note_change

__all__ = ["INLINE_SIZE", "MANAGED_SIZE", "ROLE_POLICIES", "TRUST_SIZE", "statements"]

# IAM user guide, quotas: the defaults of an account; characters are counted without white space.
ROLE_POLICIES: Final = 10
TRUST_SIZE: Final = 2048
MANAGED_SIZE: Final = 6144
INLINE_SIZE: Final = 10240


# Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateRole.html
@rule("iam", "CreateRole", "UpdateAssumeRolePolicy")
def _trust(_: Context, params: Record) -> None:
    text = params.get("AssumeRolePolicyDocument") or params.get("PolicyDocument", "")
    found = statements(text, code="MalformedPolicyDocument")
    for statement in found:
        if "Principal" not in statement and "NotPrincipal" not in statement:
            raise ServiceError("MalformedPolicyDocument", "AssumeRole policy must specify a principal")
        if "Resource" in statement:
            raise ServiceError("MalformedPolicyDocument", "Has prohibited field Resource")
        actions = _listed(statement.get("Action", ()))
        if not actions or any(not action.lower().startswith("sts:") for action in actions):
            raise ServiceError("MalformedPolicyDocument", "AssumeRole policy may only specify STS AssumeRole actions.")
        for service in _services(statement.get("Principal")):
            if not service.endswith((".amazonaws.com", ".amazonaws.com.cn")):
                raise ServiceError("MalformedPolicyDocument", f'Invalid principal in policy: "SERVICE":"{service}"')
    if _size(text) > TRUST_SIZE:
        raise ServiceError("LimitExceeded", f"Cannot exceed quota for ACLSizePerRole: {TRUST_SIZE}", status=409)


@rule("iam", "CreateRole")
def _note_role(ctx: Context, params: Record) -> None:
    note_change(ctx, params["RoleName"], "role")


@rule("iam", "AttachRolePolicy", "PutRolePolicy")
def _note_rights(ctx: Context, params: Record) -> None:
    note_change(ctx, params["RoleName"], "key-rights")


# Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
@rule("iam", "PutRolePolicy")
def _inline(ctx: Context, params: Record) -> None:
    role = ctx.backend.moto.backend("iam", ctx.region).roles
    holder = next((each for each in role.values() if each.name == params["RoleName"]), None)
    if holder is None:
        return
    present = {**holder.policies, params["PolicyName"]: params["PolicyDocument"]}
    if sum(_size(each) for each in present.values()) > INLINE_SIZE:
        message = f"Maximum policy size of {INLINE_SIZE} bytes exceeded for role {holder.name}"
        raise ServiceError("LimitExceeded", message, status=409)


# Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
@rule("iam", "CreatePolicy", "CreatePolicyVersion")
def _managed(_: Context, params: Record) -> None:
    if _size(params["PolicyDocument"]) > MANAGED_SIZE:
        raise ServiceError("LimitExceeded", f"Cannot exceed quota for PolicySize: {MANAGED_SIZE}", status=409)


# Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
@rule("iam", "AttachRolePolicy")
def _attached(ctx: Context, params: Record) -> None:
    roles = ctx.backend.moto.backend("iam", ctx.region).roles.values()
    found = next((each for each in roles if each.name == params["RoleName"]), None)
    attached = set() if found is None else set(found.managed_policies)
    if params["PolicyArn"] not in attached and len(attached) >= ROLE_POLICIES:
        raise ServiceError("LimitExceeded", f"Cannot exceed quota for PoliciesPerRole: {ROLE_POLICIES}", status=409)


# Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateRole.html
def statements(text: str, *, code: str) -> list[Record]:
    """Return the statements of a policy, or reject it with a code."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    statements = document.get("Statement") if isinstance(document, dict) else None
    listed: list[Any] = statements if isinstance(statements, list) else [statements]
    if not listed or not all(isinstance(each, dict) and each.get("Effect") in ("Allow", "Deny") for each in listed):
        raise ServiceError(code, "Syntax errors in policy.")
    return listed


def _services(principal: Any) -> Iterator[str]:
    if isinstance(principal, dict):
        yield from _listed(principal.get("Service", ()))


def _listed(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _size(document: str) -> int:
    return len(re.sub(r"\s", "", document))
