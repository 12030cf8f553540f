"""Roles in requests to other services: whether they exist, which principals they trust, and what they allow."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any, Literal
from urllib.parse import unquote

from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.lateness import is_effective

__all__ = ["grants", "has_settled", "may", "note_change", "require_role", "web_identities"]

INVALID = "ValidationException"


# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites-iam.html
def require_role(ctx: Context, arn: str, *, trusts: str, purpose: str, code: str = INVALID) -> None:
    """Reject a role that doesn't exist, is too new, or doesn't trust the service; trusts: "" for any trust policy."""
    name = arn.rpartition("/")[2]
    for role in ctx.backend.moto.backend("iam", ctx.region).roles.values():
        if role.name == name and role.arn == arn:
            trusted = not trusts or trusts in _trusted(role.assume_role_policy_document)
            if trusted and _is_effective(ctx, "role", name):
                return
            break
    raise ServiceError(
        code,
        f"Unable to assume {purpose} {arn}. Ensure that the role exists and that its trust policy allows "
        f"{trusts} the action sts:AssumeRole.",
    )


def note_change(ctx: Context, role: str, change: Literal["role", "key-rights"]) -> None:
    """Note that a role is created now, or gets a right."""
    _changes(ctx).setdefault(role, {})[change] = ctx.now


def has_settled(ctx: Context, role_arn: str) -> bool:
    """Return whether all permissions of a role on keys are effective."""
    return _is_effective(ctx, "key-rights", role_arn.rpartition("/")[2])


def _is_effective(ctx: Context, change: str, role: str) -> bool:
    at = _changes(ctx).get(role, {}).get(change)
    return at is None or is_effective(ctx, change, at)


def _changes(ctx: Context) -> dict[str, Record]:
    # IAM is global: its calls come from another region than those that refer to its roles.
    return ctx.backend.table(ctx.backend.settings.region, "role-changes")


def web_identities(ctx: Context, role_arn: str, issuer: str) -> set[str]:
    """Return the subjects of an OIDC provider that a role's trust policy names; none if the provider doesn't exist."""
    iam = ctx.backend.moto.backend("iam", ctx.region)
    role = next((each for each in iam.roles.values() if each.arn == role_arn), None)
    provider = f"oidc-provider/{issuer}"
    if role is None or not any(arn.endswith(provider) for arn in iam.open_id_providers):
        return set()
    subjects: set[str] = set()
    for statement in _statements(role.assume_role_policy_document):
        principal = statement.get("Principal", {})
        if isinstance(principal, dict) and str(principal.get("Federated", "")).endswith(provider):
            subject = statement.get("Condition", {}).get("StringEquals", {}).get(f"{issuer}:sub", [])
            subjects.update([subject] if isinstance(subject, str) else subject)
    return subjects


def _trusted(policy: str) -> set[str]:
    try:
        document = json.loads(unquote(policy) if policy.startswith("%7B") else policy)
    except ValueError:
        return set()
    statements = document.get("Statement", [])
    trusted: set[str] = set()
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal", {})
        services = principal.get("Service", []) if isinstance(principal, dict) else []
        if statement.get("Effect") == "Allow":
            trusted.update([services] if isinstance(services, str) else services)
    return trusted


def may(ctx: Context, role_arn: str, action: str, resource: str) -> bool:
    """Return whether a role's policies allow an action on a resource; conditions count as met."""
    roles = ctx.backend.moto.backend("iam", ctx.region).roles.values()
    role = next((each for each in roles if each.arn == role_arn), None)
    if role is None:
        return False
    managed = role.managed_policies.values()
    attached = (version.document for policy in managed for version in policy.versions if version.is_default)
    documents = [*role.policies.values(), *attached]
    return any(
        statement.get("Effect") == "Allow"
        and _matches(statement.get("Action", []), action.lower(), lower=True)
        and _matches(statement.get("Resource", []), resource)
        for document in documents
        for statement in _statements(document)
    )


def grants(policy: str, action: str, *, principals: set[str]) -> bool:
    """Return whether a resource's policy allows an action to one of the principals; conditions count as met."""
    for statement in _statements(policy):
        principal = statement.get("Principal", {})
        named = principal if isinstance(principal, str) else principal.get("AWS", [])
        allowed = statement.get("Effect") == "Allow" and principals & set([named] if isinstance(named, str) else named)
        if allowed and _matches(statement.get("Action", []), action.lower(), lower=True):
            return True
    return False


def _statements(policy: str) -> list[Any]:
    document = json.loads(unquote(policy) if policy.startswith("%7B") else policy)
    found = document.get("Statement", [])
    return found if isinstance(found, list) else [found]


def _matches(patterns: str | list[str], value: str, *, lower: bool = False) -> bool:
    every = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatchcase(value, each.lower() if lower else each) for each in every)
