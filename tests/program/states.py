"""The engine's state of a stack after an `up`, compared with a recording of its program."""

from collections.abc import Iterator, Mapping, Set
from itertools import product

from hpkit.program.recording import Recording

__all__ = ["differences"]

_STACK = "pulumi:pulumi:Stack"
# Outputs that differ, because a recording invents them.
_GIVEN = ("arn", "endpoint", "certificateAuthority", "clusterArn", "prometheusEndpoint")
# What the engine adds to a provider's inputs.
_ENGINES = ("__internal", "version")
# Values that the program reads live, so that a recording can't know them: the add-on's settings of Kueue, and the
# deployer.
_LIVE = {
    ("kubernetes:core/v1:ConfigMapPatch", "data"),
    ("kubernetes:apps/v1:DeploymentPatch", "spec"),
    ("aws:s3/bucketPolicy:BucketPolicy", "policy"),
}


def differences(export: Mapping, recording: Recording) -> Iterator[str]:
    """Yield how `pulumi stack export` differs from the recording."""
    resources = [each for each in export["deployment"]["resources"] if each["type"] != _STACK]
    there = {each["urn"]: each for each in resources if not each.get("external")}
    for urn in sorted(there.keys() ^ recording.resources.keys()):
        yield f"{urn}: {'is created' if urn in recording.resources else 'is deleted'}"
    for urn in sorted(there.keys() & recording.resources.keys()):
        for what in _of_resource(there[urn], there, recording):
            yield f"{urn}: {what}"


def _of_resource(kept: Mapping, there: Mapping[str, Mapping], recording: Recording) -> Iterator[str]:
    now = recording.resources[kept["urn"]]
    uses = {name: set(urns) for name, urns in kept.get("propertyDependencies", {}).items() if urns}
    above = kept.get("parent", "")
    pairs = {
        "parent": ("" if f"::{_STACK}::" in above else above, now.parent),
        # The engine keeps none for components.
        "provider": (kept.get("provider", "").rpartition("::")[0], now.provider if now.custom else ""),
        "protect": (kept.get("protect", False), now.protect),
        "retainOnDelete": (kept.get("retainOnDelete", False), now.retain_on_delete),
        "deletedWith": (kept.get("deletedWith", ""), now.deleted_with),
        "dependencies": (set(kept.get("dependencies", ())), set(now.after)),
        "propertyDependencies": (uses, {name: set(urns) for name, urns in now.uses.items()}),
    }
    yield from (f"{name}: {before} → {after}" for name, (before, after) in pairs.items() if before != after)
    inputs = kept.get("inputs", {})
    for name in sorted((inputs.keys() | now.inputs.keys()) - set(_ENGINES)):
        if name.startswith("allow") or name == "leavingTeams":
            # Allowances of the previous run aren't a difference.
            continue
        before, after = inputs.get(name), now.inputs.get(name)
        if (kept["type"], name) not in _LIVE and not _same(before, after, _names(uses.get(name, ()), there, recording)):
            yield f"{name}: {before} → {after}"


def _names(urns: Set[str], there: Mapping[str, Mapping], recording: Recording) -> dict[str, set[str]]:
    """Return live value → the recording's value, for the resources that a property refers to."""
    names: dict[str, set[str]] = {}
    for urn in urns:
        if urn not in there or urn not in recording.resources:
            continue
        outputs = there[urn].get("outputs", {})
        live = {"id": there[urn].get("id"), **{key: outputs[key] for key in _GIVEN if key in outputs}}
        for key, made in recording.resources[urn].made.items():
            for value, called in _leaves(live.get(key), made):
                names.setdefault(value, set()).add(called)
    return names


def _leaves(live, made) -> Iterator[tuple[str, str]]:
    if isinstance(live, dict) and isinstance(made, dict):
        for key in live.keys() & made.keys():
            yield from _leaves(live[key], made[key])
    elif live and isinstance(live, str) and isinstance(made, str):
        yield live, made
        if live.endswith("/") and made.endswith("/"):
            # The program removes the slash from an address if its reader requires that.
            yield live[:-1], made[:-1]


def _same(before, after, names: Mapping[str, set[str]]) -> bool:
    if isinstance(before, dict) and isinstance(after, Mapping):
        return before.keys() == after.keys() and all(_same(before[key], after[key], names) for key in before)
    if isinstance(before, list) and isinstance(after, (list, tuple)):
        return len(before) == len(after) and all(_same(*pair, names) for pair in zip(before, after, strict=True))
    if isinstance(before, str) and isinstance(after, str):
        return after in _called(before, names)
    return before == after


def _called(text: str, names: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the recording's possible values for a live text; an ARN may be invented under two names."""
    matches = sorted((name for name in names if name in text), key=len, reverse=True)
    for chosen in product(*([*sorted(names[name]), name] for name in matches)):
        renamed = text
        for name, called in zip(matches, chosen, strict=True):
            renamed = renamed.replace(name, called)
        yield renamed
