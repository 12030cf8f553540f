"""The settings of the plugin, and which changes of them are rejected."""

from typing import Final

from hpkit_provider.engine.errors import RejectedError
from hpkit_provider.engine.values import Props, is_unknown

__all__ = ["SETTINGS", "allows_replacement", "changed_settings", "leaving_teams"]

# Another region or account is rejected, because everything would be left behind. When a provider is replaced, the
# engine replaces all of its resources without asking for their Diff. It asks no resource for its account either. So
# this is the only place where such a change can be rejected before it begins.
SETTINGS: Final = (
    # AWS region. Default: aws:region, or the region in the environment variables.
    "region",
    # URL of the SageMaker API, for a local cloud.
    "endpoint",
    # Named profile. Default: aws:profile, or the profile in the environment variables.
    "profile",
    # Required account of the credentials. With credentials of another account, nothing is read or changed.
    "accountId",
    # Role to assume for each call.
    "assumeRoleArn",
    # `true` allows changes that replace clusters.
    "allowReplace",
    # What a move to another account or region would delete, for messages.
    "contents",
    # Where to allow the loss of a cluster or instance group, for messages. Default: on the Cluster.
    "where",
    # Comma-separated teams whose quotas this run deletes. They are set to 0 if the service rejects an increase of
    # another quota.
    "leavingTeams",
    # Seconds during which an increase that the service rejects is tried again (300).
    "capacityWaitSeconds",
)
# Never a difference by themselves: they only appear in messages.
_MESSAGE_TEXTS: Final = frozenset({"contents", "where"})
# Settings that determine the location of everything: the setting, its name in the organization file, and the effect of
# another value.
_PLACES: Final = (
    ("accountId", "account", "leave everything in {} without a stack, while it keeps costing money"),
    ("region", "region", "REPLACE everything in {}"),
)


def allows_replacement(settings: Props) -> bool:
    """Return whether settings allow a change to replace clusters."""
    return str(settings.get("allowReplace", "")).lower() == "true"


def leaving_teams(settings: Props) -> frozenset[str]:
    """Return the teams whose quotas this run deletes."""
    return frozenset(str(settings.get("leavingTeams", "")).split(",")) - {""}


def changed_settings(old: Props, new: Props) -> list[str]:
    """Return the settings that differ; raises RejectedError for another account or region."""
    contents = old.get("contents")
    lost = f": {contents}" if isinstance(contents, str) else ""
    for name, word, effect in _PLACES:
        if _moves(name, old, new):
            before, after = old[name], new[name]
            raise RejectedError(
                f"{name}: {before} → {after} would {effect.format(before)}{lost}.\nTo fix: set {name} to {before} "
                f"again (hpkit: `{word}` of the environment). For another {word}, create another stack (hpkit: "
                "describe another environment). When it runs, delete this one (hpkit: `hpkit aws destroy`)."
            )
    return sorted(name for name in {*SETTINGS} - _MESSAGE_TEXTS if old.get(name) != new.get(name))


def _moves(name: str, old: Props, new: Props) -> bool:
    """Return whether a setting that determines the location changes; an unset one doesn't count."""
    before, after = old.get(name), new.get(name)
    return before is not None and after is not None and not is_unknown(after) and before != after
