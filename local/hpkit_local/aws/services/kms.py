"""AWS KMS: moto."""

from typing import Any, Final

from hpkit_local.aws.api import rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.lateness import is_effective
from hpkit_local.aws.service import Service, declare
from hpkit_local.aws.services.iam import grants, has_settled, may, statements

__all__ = ["may_use", "require_usable_key"]

declare(
    Service(
        "kms",
        rejects_with="ValidationException",
        source="https://docs.aws.amazon.com/kms/latest/APIReference/CommonErrors.html",
        moto="kms",
    )
)


def may_use(ctx: Context, role_arn: str, action: str, key_arn: str) -> bool:
    """Return whether a role can use an action with a key.

    By the key's policy, or by its own if the key's policy allows that.

    Source: AWS KMS developer guide, "Determining access to AWS KMS keys": IAM policies count only if the key's policy
    gives the action to the account. A key of another account isn't here, so only the role's policies are read.
    """
    key = _key(ctx, key_arn)
    own = may(ctx, role_arn, action, key_arn)
    if key is None:
        return own
    account = key_arn.split(":")[4]
    by_account = grants(key.policy, action, principals={account, f"arn:aws:iam::{account}:root", "*"})
    return grants(key.policy, action, principals={role_arn}) or (own and by_account)


# Source: https://github.com/hashicorp/terraform-provider-aws/issues/49247
def require_usable_key(ctx: Context, key_arn: str, *, role_arn: str, code: str) -> None:
    """Reject a key that a service can't use for a role yet.

    The key or the role's permissions aren't effective everywhere.

    Source of the message: hashicorp/terraform-provider-aws, issue 49247.
    """
    key = _key(ctx, key_arn)
    is_known = key is None or is_effective(ctx, "key-rights", key.creation_date)
    if not is_known or not has_settled(ctx, role_arn):
        raise ServiceError(code, f"Access denied to KMS key {key_arn} due to explicit deny policy or revoked grant")


def _key(ctx: Context, arn: str) -> Any:
    return ctx.backend.moto.backend("kms", ctx.region).keys.get(arn.rpartition("/")[2])


_KEY_WAIT: Final = range(7, 31)


@rule("kms", "CreateKey", "PutKeyPolicy")
def _key_policy(_: Context, params: Record) -> None:
    if "Policy" in params:
        statements(params["Policy"], code="MalformedPolicyDocumentException")


# Source: https://docs.aws.amazon.com/kms/latest/APIReference/API_ScheduleKeyDeletion.html
@rule("kms", "ScheduleKeyDeletion")
def _key_wait(_: Context, params: Record) -> None:
    days = params.get("PendingWindowInDays", _KEY_WAIT[-1])
    if days not in _KEY_WAIT:
        raise ServiceError(
            "ValidationException", f"PendingWindowInDays {days} is not from {_KEY_WAIT[0]} to {_KEY_WAIT[-1]}"
        )
