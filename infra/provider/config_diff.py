"""What a change of the provider's settings comes to: another region is refused, since it would leave everything behind.

The engine replaces all resources of a provider that is replaced without asking for their Diff: this is the only place
where such a replacement can be refused before it begins.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from provider.errors import RefusedError
from provider.schema import CONFIG
from provider.values import Props, is_unknown

__all__ = ["ConfigChanges", "allows", "config_changes"]

# Never a difference by themselves: words for messages.
_SILENT = frozenset({"contents"})


@dataclass(frozen=True)
class ConfigChanges:
    """Settings that differ, those that replace the provider, and what is to be said of it."""

    names: list[str] = field(default_factory=list)
    replaces: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def allows(settings: Props) -> bool:
    """Return whether settings let a change replace clusters."""
    return str(settings.get("allowReplace", "")).lower() == "true"


def config_changes(old: Props, new: Props) -> ConfigChanges:
    """Compare; raises RefusedError for another region that is not allowed."""
    names = sorted(name for name in CONFIG.keys() - _SILENT if old.get(name) != new.get(name))
    before, after = old.get("region"), new.get("region")
    if before is None or after is None or is_unknown(after) or before == after:
        return ConfigChanges(names)
    contents = old.get("contents")
    lost = f": {contents}" if isinstance(contents, str) else ""
    if allows(new) and not allows(old):
        # On behalf of what is deleted first, the engine asks a plugin with the settings of the run before.
        raise RefusedError(
            f"region: {before} → {after} is allowed, but was not in the run before, whose settings the engine still "
            f"uses for what is there.\nWhat to do: set region to {before} again and run `pulumi up`, which takes note "
            "of the allowance; then change the region."
        )
    if allows(new):
        warning = f"The region becomes {after}, as allowed: this REPLACES everything in {before}{lost}."
        return ConfigChanges(names, ["region"], [warning])
    raise RefusedError(
        f"region: {before} → {after} would REPLACE everything that is in {before}{lost}.\n"
        "What to do: take the change back; for another region, make another stack. To allow it once, set "
        "`allowReplace` of the provider to true (hpkit: `allowReplace` in the environment, with the names of all that "
        "it has: [bucket, cluster, eks, fileSystem, key, vpc]), and take that out again afterwards."
    )
