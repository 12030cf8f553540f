"""What a request refers to must exist in the backends that moto serves, in the same account and region."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote, urlparse

from hpkit_local.aws.backend import Context
from hpkit_local.aws.errors import ServiceError

__all__ = [
    "Subnet",
    "may",
    "object_exists",
    "object_key_arn",
    "require_bucket",
    "require_role",
    "require_security_group",
    "require_subnet",
    "web_identities",
]

INVALID = "ValidationException"


@dataclass(frozen=True)
class Subnet:
    """What the service needs to know of a subnet."""

    id: str
    vpc_id: str
    zone: str
    zone_id: str
    cidr: str


def require_role(ctx: Context, arn: str, *, trusts: str, purpose: str, code: str = INVALID) -> None:
    """Refuse a role that does not exist or that the service may not assume; trusts: "" for whoever it trusts."""
    name = arn.rpartition("/")[2]
    for role in ctx.backend.moto.backend("iam", ctx.region).roles.values():
        if role.name == name and role.arn == arn:
            if not trusts or trusts in _trusted(role.assume_role_policy_document):
                return
            break
    raise ServiceError(
        code,
        f"Unable to assume {purpose} {arn}. Ensure that the role exists and that its trust policy allows "
        f"{trusts} the action sts:AssumeRole.",
    )


def web_identities(ctx: Context, role_arn: str, issuer: str) -> set[str]:
    """Return the subjects of an OIDC provider that a role lets in by name; none where there is no such provider."""
    iam = ctx.backend.moto.backend("iam", ctx.region)
    role = next((each for each in iam.roles.values() if each.arn == role_arn), None)
    provider = f"oidc-provider/{issuer}"
    if role is None or not any(arn.endswith(provider) for arn in iam.open_id_providers):
        return set()
    found: set[str] = set()
    for statement in _statements(role.assume_role_policy_document):
        principal = statement.get("Principal", {})
        if isinstance(principal, dict) and str(principal.get("Federated", "")).endswith(provider):
            subject = statement.get("Condition", {}).get("StringEquals", {}).get(f"{issuer}:sub", [])
            found.update([subject] if isinstance(subject, str) else subject)
    return found


def _trusted(policy: str) -> set[str]:
    try:
        document = json.loads(unquote(policy) if policy.startswith("%7B") else policy)
    except ValueError:
        return set()
    statements = document.get("Statement", [])
    found: set[str] = set()
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal", {})
        services = principal.get("Service", []) if isinstance(principal, dict) else []
        if statement.get("Effect") == "Allow":
            found.update([services] if isinstance(services, str) else services)
    return found


def require_subnet(ctx: Context, subnet_id: str, *, code: str = INVALID) -> Subnet:
    """Return the subnet, or the service's refusal."""
    ec2 = ctx.backend.moto.backend("ec2", ctx.region)
    for subnets in ec2.subnets.values():
        found: Any = subnets.get(subnet_id)
        if found is not None:
            zone = found.availability_zone
            return Subnet(subnet_id, found.vpc_id, zone, str(found.availability_zone_id), found.cidr_block)
    raise ServiceError(code, f"The subnet ID '{subnet_id}' does not exist")


def require_security_group(ctx: Context, group_id: str, *, vpc_id: str, code: str = INVALID) -> None:
    """Refuse a security group that does not exist in the VPC of the subnets."""
    groups = ctx.backend.moto.backend("ec2", ctx.region).groups
    home = next((vpc for vpc, members in groups.items() if group_id in members), None)
    if home is None:
        raise ServiceError(code, f"The security group '{group_id}' does not exist")
    if home != vpc_id:
        raise ServiceError(code, f"The security group '{group_id}' is in VPC {home}, the subnets are in VPC {vpc_id}")


def require_bucket(ctx: Context, uri: str) -> None:
    """Refuse an S3 URI whose bucket does not exist."""
    bucket = urlparse(uri).netloc
    if bucket not in ctx.backend.moto.backend("s3", ctx.region).buckets:
        raise ServiceError(INVALID, f"The S3 bucket '{bucket}' of {uri} does not exist or cannot be read")


def object_exists(ctx: Context, uri: str, name: str) -> bool:
    """Whether the object `name` lies under an S3 URI."""
    parsed = urlparse(uri)
    bucket = ctx.backend.moto.backend("s3", ctx.region).buckets.get(parsed.netloc)
    prefix = parsed.path.strip("/")
    return bucket is not None and bucket.keys.get(f"{prefix}/{name}" if prefix else name) is not None


def object_key_arn(ctx: Context, uri: str, name: str) -> str:
    """Return the key of the account that an object under an S3 URI is encrypted with, empty for S3's own keys."""
    parsed = urlparse(uri)
    bucket = ctx.backend.moto.backend("s3", ctx.region).buckets.get(parsed.netloc)
    prefix = parsed.path.strip("/")
    found = None if bucket is None else bucket.keys.get(f"{prefix}/{name}" if prefix else name)
    key = "" if found is None or found.encryption != "aws:kms" else str(found.kms_key_id or "")
    return key if ":key/" in key else ""


def may(ctx: Context, role_arn: str, action: str, resource: str) -> bool:
    """Say whether a statement of a role's policies allows an action on a resource; conditions are taken as met."""
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


def _statements(policy: str) -> list[Any]:
    document = json.loads(unquote(policy) if policy.startswith("%7B") else policy)
    found = document.get("Statement", [])
    return found if isinstance(found, list) else [found]


def _matches(patterns: str | list[str], value: str, *, lower: bool = False) -> bool:
    every = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatchcase(value, each.lower() if lower else each) for each in every)
