"""Compares old and new inputs, and finds changes that the API server accepts only in a new object."""

from dataclasses import replace

from hpkit.catalog import differences, object_facts, type_facts
from hpkit_local.plugins.kubernetes.objects import AUTONAMED, annotation, is_patch, metadata_of
from hpkit_provider.engine.results import PropertyChange, property_changes
from hpkit_provider.engine.values import Props

__all__ = ["changes", "deletes_first"]


def changes(token: str, old: Props, new: Props, *, release: bool) -> list[PropertyChange]:
    """Return the differences between two objects, or two Helm releases."""
    if release:
        facts = type_facts(token)
    else:
        versions = [str(side.get("apiVersion") or "") for side in (old, new)]
        facts = object_facts(versions[0], str(old.get("kind", "")), patch=is_patch(token, new))
        # Another version of a group shows the same object.
        moved = len({version.rpartition("/")[0] for version in versions}) > 1
        facts = replace(facts, immutable=facts.immutable | {"kind", *(["apiVersion"] if moved else [])})
    before, after = ({key: value for key, value in side.items() if not key.startswith("__")} for side in (old, new))
    return property_changes(differences(facts, before, after))


def deletes_first(old: Props, new: Props) -> bool:
    """Return whether the old object must be deleted before the new one can be created: they have one name."""
    before, after = metadata_of(old), metadata_of(new)
    if annotation(new, AUTONAMED.rpartition("/")[2]) == "true":
        return False
    same = [before.get(key) == after.get(key) for key in ("name", "namespace")]
    return all(same) and old.get("kind") == new.get("kind")
