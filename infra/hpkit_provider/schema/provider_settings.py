"""The settings of the provider: the purpose of each, and the effect of a change.

Another region or account is refused, because everything would be left behind. When a provider is replaced, the engine
replaces all of its resources without asking for their Diff. It asks no resource for its account either. So this is the
only place where such a change can be refused before it begins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from hpkit_provider.engine.errors import RefusedError
from hpkit_provider.engine.values import Props, is_unknown

__all__ = ["SETTINGS", "SettingChanges", "allows_replacement", "changed_settings"]

SETTINGS: Final = {
    "region": "AWS region; else aws:region, else the environment's.",
    "endpoint": "URL of the SageMaker API; for a local cloud.",
    "profile": "Named profile; else aws:profile, else the environment's.",
    "accountId": "Account that the credentials must be of: with another one's, nothing is read or changed.",
    "assumeRoleArn": "Role to assume for every call.",
    "nodeWaitSeconds": "How long to wait for nodes once a cluster is InService (1200); then go on with a warning.",
    "allowReplace": "`true` lets a change replace clusters, or all resources by another region.",
    "contents": "What another region would lose, as messages say it.",
    "capacityWaitSeconds": "How long a growing quota waits for capacity that no known change will free (20).",
}
# Never a difference by themselves: they only appear in messages.
_MESSAGE_TEXTS: Final = frozenset({"contents"})


@dataclass(frozen=True)
class SettingChanges:
    """Settings that differ, those that replace the provider, and warnings about that."""

    names: list[str] = field(default_factory=list)
    replaces: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def allows_replacement(settings: Props) -> bool:
    """Return whether settings let a change replace clusters."""
    return str(settings.get("allowReplace", "")).lower() == "true"


def changed_settings(old: Props, new: Props) -> SettingChanges:
    """Compare; raises RefusedError for another account, and for another region that is not allowed."""
    names = sorted(name for name in SETTINGS.keys() - _MESSAGE_TEXTS if old.get(name) != new.get(name))
    contents = old.get("contents")
    lost = f": {contents}" if isinstance(contents, str) else ""
    if _moves("accountId", old, new):
        before, after = old["accountId"], new["accountId"]
        raise RefusedError(
            f"accountId: {before} → {after} would leave everything in {before}{lost} unmanaged, while it keeps "
            "costing money.\nWhat to do: revert the change (hpkit: `account` of the environment). For another "
            f"account, create another stack; to delete this one, run `pulumi destroy` with credentials of {before}."
        )
    if not _moves("region", old, new):
        return SettingChanges(names)
    before, after = old["region"], new["region"]
    if allows_replacement(new) and not allows_replacement(old):
        # On behalf of what is deleted first, the engine asks a plugin with the settings of the run before.
        raise RefusedError(
            f"region: {before} → {after} is allowed, but wasn't in the previous run, whose settings the engine still "
            f"uses for existing resources.\nWhat to do: set region to {before} again, and run `pulumi up`, which "
            "records the allowance. Then change the region."
        )
    if allows_replacement(new):
        warning = f"The region becomes {after}, as allowed: this REPLACES everything in {before}{lost}."
        return SettingChanges(names, ["region"], [warning])
    raise RefusedError(
        f"region: {before} → {after} would REPLACE everything in {before}{lost}.\nWhat to do: revert the change; for "
        "another region, create another stack. To allow it once, set `allowReplace` of the provider to true. In hpkit, "
        "set `allowReplace` in the environment to the names of everything that it has: [bucket, cluster, eks, "
        "fileSystem, key, vpc]. Remove it afterward."
    )


def _moves(name: str, old: Props, new: Props) -> bool:
    """Return whether a setting that says where everything is becomes another; one that was not given says nothing."""
    before, after = old.get(name), new.get(name)
    return before is not None and after is not None and not is_unknown(after) and before != after
