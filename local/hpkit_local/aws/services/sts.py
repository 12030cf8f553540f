"""AWS STS: moto, and callers with a session of an IAM role."""

from typing import Any

from moto.sts.models import STSBackend

from hpkit_local.aws.backend import Backend, Context, restored
from hpkit_local.aws.service import Service, declare

__all__ = ["identity"]

declare(
    Service(
        "sts",
        rejects_with="ValidationError",
        source="https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html",
        moto="sts",
        in_moto_globally=True,
    )
)


def identity(ctx: Context, access_key: str) -> tuple[str, str, str]:
    """Return user id, ARN and account, as GetCallerIdentity does."""
    sts = ctx.backend.moto.backend("sts", ctx.region, account=ctx.backend.settings.caller_account)
    found: tuple[str, str, str] = sts.get_caller_identity(access_key, ctx.region)
    return found


# The session's key for callers without a user or session in moto; moto's own keys look different.
CALLER_KEY = "caller"
_TRUST = '{"Version": "2012-10-17", "Statement": []}'

_caller_identity = STSBackend.get_caller_identity


def _with_role(backend: Any, access_key_id: str, region: str) -> tuple[str, str, str]:
    """Answer as the session of `CALLER_KEY`, if there is one, where moto has no user or session of a key."""
    identity: tuple[str, str, str] = _caller_identity(backend, access_key_id, region)
    session = backend.get_assumed_role_from_access_key(CALLER_KEY)
    if session is None or not identity[1].endswith(":user/moto"):
        return identity
    return session.user_id, session.arn, session.account_id


@restored
def _set_caller(backend: Backend) -> None:
    """Give callers with unknown access keys a session of the IAM role in the settings, if there's one.

    The role is created where it doesn't exist, because a caller's role exists.
    """
    settings = backend.settings
    sts = backend.moto.backend("sts", settings.region)
    sts.assumed_roles[:] = [each for each in sts.assumed_roles if each.access_key_id != CALLER_KEY]
    if settings.caller_role is not None:
        role = settings.caller_role
        iam = backend.moto.backend("iam", settings.region)
        path, _, name = role.partition(":role")[2].rpartition("/")
        if not any(each.name == name for each in iam.roles.values()):
            iam.create_role(name, _TRUST, f"{path}/", None, "", [], None)
        session = sts.assume_role(settings.region, "hpkit", role, policy="", duration=3600, external_id="")
        session.access_key_id = CALLER_KEY


_METHODS: tuple[tuple[type, str, Any], ...] = ((STSBackend, "get_caller_identity", _with_role),)
for _owner, _name, _method in _METHODS:
    setattr(_owner, _name, _method)
