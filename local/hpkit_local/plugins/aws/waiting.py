"""Waiting for a status, shown in the engine's status column."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from hpkit_local.plugins.aws.calls import Calls
from hpkit_provider.engine.call import wait
from hpkit_provider.engine.errors import ChangeFailedError

__all__ = ["until"]

_MOST = 5.0
_SHARE = 0.05  # fraction of the time waited, between two polls


def until(
    call: Calls,
    read_live: Callable[[], Any | None],
    *,
    status: Callable[[Any], str],
    ready: Collection[str] = (),
    failed: Collection[str] = (),
    until_gone: bool = False,
    delay: float = 0.0,
) -> None:
    """Read until the status is one of `ready`, or, with `until_gone`, until the resource no longer exists.

    delay: how long the official plugin waits beyond that, scaled: its StateChangeConf's Delay and, for each further
    equal read (ContinuousTargetOccurence), MinTimeout or PollInterval (terraform-provider-aws 6.58.0).
    """
    call.settle(delay)

    def status_of(seen: Any | None) -> str:
        return "gone" if seen is None else status(seen)

    def settled(seen: Any | None) -> bool:
        return (
            (seen is None)
            if until_gone and status_of(seen) not in failed
            else seen is None or status_of(seen) in {*ready, *failed}
        )

    seen = wait(call.engine_call, read_live, settled=settled, progress=status_of, max_seconds=_MOST, fraction=_SHARE)
    if seen is not None and status_of(seen) in failed:
        raise ChangeFailedError(f"ended in status {status_of(seen)}: {_reason(seen)}")
    if seen is None and not until_gone:
        raise ChangeFailedError("was deleted while Pulumi waited for it; run `pulumi refresh`")


def _reason(seen: Any) -> str:
    issues = seen.get("health", {}).get("issues", []) if isinstance(seen, dict) else []
    texts = [str(issue.get("message", issue.get("code"))) for issue in issues]
    return "; ".join(texts) or str(seen.get("FailureMessage") or seen.get("FailureDetails") or "AWS gives no reason")
