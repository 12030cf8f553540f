"""AWS IAM: moto, with its gaps filled.

Adds what moto 5.2 lacks in IAM:

- AddClientIDToOpenIDConnectProvider and RemoveClientIDFromOpenIDConnectProvider.
- AWS's own policies (1,500) only in the partition `aws`. moto searches all partitions for an access key, and would fill
  each of them.
- State files contain only the names of those policies.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final, Literal
from urllib.parse import unquote

from moto.core.responses import ActionResult, EmptyResult
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, IAMBackend
from moto.iam.responses import IamResponse

from hpkit_local.aws.api import rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.lateness import is_effective
from hpkit_local.aws.service import Service, declare

__all__ = ["grants", "has_settled", "may", "require_role", "statements", "web_identities"]

declare(
    Service(
        "iam",
        rejects_with="ValidationError",
        source="https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html",
        moto="iam",
        in_moto_globally=True,
    )
)


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


# AWS's own policies, such as AmazonEKSClusterPolicy, must be there to be attached.
os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")

_aws_policies = IAMBackend._init_aws_policies  # noqa: SLF001 - moto has no other seam for it


def _policies_of_partition(backend: Any) -> list[Any]:
    return _aws_policies(backend) if backend.region_name == "aws" else []


def _clients(response: Any) -> tuple[list[str], str]:
    provider = response.backend.get_open_id_connect_provider(response._get_param("OpenIDConnectProviderArn"))  # noqa: SLF001
    return provider.client_id_list, response._get_param("ClientID")  # noqa: SLF001


def _add_client(response: Any) -> ActionResult:
    clients, client = _clients(response)
    if client not in clients:
        clients.append(client)
    return EmptyResult()


def _remove_client(response: Any) -> ActionResult:
    clients, client = _clients(response)
    if client in clients:
        clients.remove(client)
    return EmptyResult()


@cache
def _policies() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(aws_managed_policies_data)
    return found


def _load_policy(name: str, account: str) -> Any:
    return AWSManagedPolicy.from_data(name, account, "aws", _policies()[name])


def _reduce(policy: Any, protocol: int) -> Any:
    return (
        object.__reduce_ex__(policy, protocol)
        if policy.attachment_count
        else (_load_policy, (policy.name, policy.account_id))
    )


_METHODS: tuple[tuple[type, str, Any], ...] = (
    (AWSManagedPolicy, "__reduce_ex__", _reduce),
    (IAMBackend, "_init_aws_policies", _policies_of_partition),
    (IamResponse, "add_client_id_to_open_id_connect_provider", _add_client),
    (IamResponse, "remove_client_id_from_open_id_connect_provider", _remove_client),
)
for _owner, _name, _method in _METHODS:
    setattr(_owner, _name, _method)


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
        raise ServiceError("LimitExceeded", f"Cannot exceed quota for ACLSizePerRole: {TRUST_SIZE}")


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
        raise ServiceError("LimitExceeded", message)


# Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
@rule("iam", "CreatePolicy", "CreatePolicyVersion")
def _managed(_: Context, params: Record) -> None:
    if _size(params["PolicyDocument"]) > MANAGED_SIZE:
        raise ServiceError("LimitExceeded", f"Cannot exceed quota for PolicySize: {MANAGED_SIZE}")


# Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
@rule("iam", "AttachRolePolicy")
def _attached(ctx: Context, params: Record) -> None:
    roles = ctx.backend.moto.backend("iam", ctx.region).roles.values()
    found = next((each for each in roles if each.name == params["RoleName"]), None)
    attached = set() if found is None else set(found.managed_policies)
    if params["PolicyArn"] not in attached and len(attached) >= ROLE_POLICIES:
        raise ServiceError("LimitExceeded", f"Cannot exceed quota for PoliciesPerRole: {ROLE_POLICIES}")


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
