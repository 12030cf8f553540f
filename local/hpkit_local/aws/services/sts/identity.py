"""The identity of an access key."""

from __future__ import annotations

from hpkit_local.aws.backend import Context

__all__ = ["identity"]


def identity(ctx: Context, access_key: str) -> tuple[str, str, str]:
    """Return user id, ARN and account, as GetCallerIdentity does."""
    sts = ctx.backend.moto.backend("sts", ctx.region, account=ctx.backend.settings.caller_account)
    found: tuple[str, str, str] = sts.get_caller_identity(access_key, ctx.region)
    return found
