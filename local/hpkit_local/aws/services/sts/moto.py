"""Adds what moto 5.2 lacks in STS: a session for callers without one."""

from __future__ import annotations

from typing import Any

from moto.sts.models import STSBackend

from hpkit_local.aws.backend import Backend, restored

__all__: list[str] = []

# The session's key for callers without a user or session in moto; moto's own keys look different.
CALLER_KEY = "caller"

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
    """Give callers with unknown access keys a session of the IAM role in the settings, if there's one."""
    settings = backend.settings
    sts = backend.moto.backend("sts", settings.region)
    sts.assumed_roles[:] = [each for each in sts.assumed_roles if each.access_key_id != CALLER_KEY]
    if settings.caller_role is not None:
        role = settings.caller_role
        session = sts.assume_role(settings.region, "hpkit", role, policy="", duration=3600, external_id="")
        session.access_key_id = CALLER_KEY


_METHODS: tuple[tuple[type, str, Any], ...] = ((STSBackend, "get_caller_identity", _with_role),)
for _owner, _name, _method in _METHODS:
    setattr(_owner, _name, _method)
