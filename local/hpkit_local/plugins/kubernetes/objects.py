"""Objects in programs and in the API server: names, IDs, ownership."""

import copy
import hashlib
import random
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hpkit.catalog import differences, object_facts, type_facts
from hpkit_provider.engine.errors import PluginError
from hpkit_provider.engine.results import PropertyChange, property_changes
from hpkit_provider.engine.values import Props, is_unknown

__all__ = [
    "LiveObject",
    "Ref",
    "annotation",
    "applied",
    "changes",
    "clean",
    "deletes_first",
    "is_patch",
    "manager_of",
    "metadata_of",
    "named",
    "ref_of",
    "seen_inputs",
    "typed",
]

AUTONAMED = "pulumi.com/autonamed"
# Metadata that only the server writes.
SERVER_FIELDS = (
    *("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields"),
    *("resourceVersion", "selfLink", "uid"),
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KEYS = ("name", "key", "type", "containerPort", "port", "mountPath", "uid")


@dataclass(frozen=True)
class Ref:
    """Which object: version and kind, namespace (empty for none) and name."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def id(self) -> str:
        """The Pulumi id."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


@dataclass(frozen=True)
class LiveObject:
    """A live object, and the state that the engine keeps of it."""

    ref: Ref
    object: Props
    manager: str

    @property
    def state(self) -> Props:
        """The outputs: the object without the data of field managers, and who applied it."""
        outputs = {**self.object, "metadata": {**metadata_of(self.object)}}
        outputs["metadata"].pop("managedFields", None)
        return {**outputs, "__fieldManager": self.manager, "__initialApiVersion": self.ref.api_version}


def typed(token: str, inputs: Props) -> tuple[str, str]:
    """Return apiVersion and kind: the SDK states both, an import from the command line neither."""
    _, version, kind = token.split(":")
    stated = inputs.get("kind")
    api_version = inputs.get("apiVersion") or version.removeprefix("core/")
    return str(api_version), str(stated if isinstance(stated, str) else kind)


def is_patch(token: str, inputs: Props) -> bool:
    """Return whether the resource is of a `…Patch` type, which changes an object that another owns."""
    return token.rpartition(":")[2] == f"{inputs.get('kind', '')}Patch"


def metadata_of(document: Mapping[str, Any]) -> Props:
    """Return the metadata, empty if it's missing or not known yet."""
    found = document.get("metadata")
    return found if isinstance(found, dict) else {}


def annotation(document: Mapping[str, Any], name: str) -> str:
    """Return the value of an annotation `pulumi.com/<name>`, empty if it's missing."""
    annotations = metadata_of(document).get("annotations")
    value = annotations.get(f"pulumi.com/{name}", "") if isinstance(annotations, dict) else ""
    return "" if is_unknown(value) else str(value)


def named(inputs: Props, old: Props, *, name: str, seed: bytes) -> Props:
    """Give an unnamed object its previous name, or a new one from the resource's name and 8 digits."""
    metadata = inputs.get("metadata", {})
    if is_unknown(metadata) or metadata.get("name"):
        return inputs
    result = copy.deepcopy(inputs)
    metadata = result.setdefault("metadata", {})
    if annotation(old, "autonamed") == "true" and metadata_of(old).get("name"):
        metadata["name"] = metadata_of(old)["name"]
    else:
        digits = random.Random(seed).getrandbits(32) if seed else secrets.randbits(32)  # noqa: S311 - the engine's seed
        metadata["name"] = f"{name}-{digits:08x}"
    if not is_unknown(metadata.get("annotations")):
        metadata.setdefault("annotations", {})[AUTONAMED] = "true"
    return result


def ref_of(document: Mapping[str, Any], *, default_namespace: str, namespaced: bool) -> Ref:
    """Return which object a document describes."""
    metadata = metadata_of(document)
    namespace = str(metadata.get("namespace") or default_namespace) if namespaced else ""
    name = metadata.get("name")
    if not isinstance(name, str):
        raise PluginError(f"{document.get('kind')}: metadata.name is not set")
    return Ref(str(document["apiVersion"]), str(document["kind"]), namespace, name)


def manager_of(urn: str, state: Props) -> str:
    """Return the field manager: the one in state, or else the resource's own."""
    own = "pulumi-kubernetes-" + hashlib.sha256(urn.encode()).hexdigest()[:8]
    return str(state.get("__fieldManager") or own)


def clean(document: Mapping[str, Any]) -> Props:
    """Return a document without what only the server writes, and without the plugin's own marks."""
    result = {key: copy.deepcopy(value) for key, value in document.items() if not key.startswith("__")}
    result.pop("status", None)
    metadata = metadata_of(result)
    for name in SERVER_FIELDS:
        metadata.pop(name, None)
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        annotations.pop(_LAST_APPLIED, None)
        if not annotations:
            del metadata["annotations"]
    return result


def applied(document: Mapping[str, Any]) -> Props:
    """Return the part of a live object that clients applied; without one, all that isn't the server's."""
    cleaned = clean(document)
    entries = metadata_of(document).get("managedFields") or []
    owned = [entry.get("fieldsV1", {}) for entry in entries if _by_apply(entry)]
    if not owned:
        return cleaned
    kept = _owned(cleaned, owned)
    kept.update({key: cleaned[key] for key in ("apiVersion", "kind") if key in cleaned})
    metadata = kept.setdefault("metadata", {})
    metadata.update({key: cleaned["metadata"][key] for key in ("name", "namespace") if key in cleaned["metadata"]})
    return dict(kept)


def _by_apply(entry: Mapping[str, Any]) -> bool:
    return entry.get("operation") == "Apply" and not entry.get("subresource")


def _owned(value: Any, owned: list[Mapping[str, Any]]) -> Any:
    """Keep what `fieldsV1` sets name; lists are kept whole, because their entries' keys require the schema."""
    inner = [each for each in owned if any(key != "." for key in each)]
    if not isinstance(value, dict) or not inner:
        return value
    kept = {}
    for key, item in value.items():
        of_key = [each[f"f:{key}"] for each in inner if f"f:{key}" in each]
        if of_key:
            kept[key] = _owned(item, of_key)
    return kept


def seen_inputs(inputs: Props, live: Props) -> Props:
    """Return the inputs with the values that are live now, without what others added."""
    seen: Props = _project(inputs, live)
    seen.update({key: value for key, value in inputs.items() if key in ("apiVersion", "kind")})
    return seen


def _project(stated: Any, live: Any) -> Any:
    if isinstance(stated, dict) and isinstance(live, dict):
        # An empty map that the server doesn't keep has no meaning, so its absence is no difference.
        kept = {key: item for key, item in stated.items() if key in live or item in ({}, [], None)}
        return {key: _project(item, live[key]) if key in live else item for key, item in kept.items()}
    if isinstance(stated, list) and isinstance(live, list):
        pairs = _paired(stated, live)
        return [_project(before, now) for before, now in pairs]
    return live


def _paired(stated: list[Any], live: list[Any]) -> Iterable[tuple[Any, Any]]:
    """Pair entries by the key that names them, in the given order; entries that are only live come last."""
    maps = all(isinstance(each, dict) for each in [*stated, *live])
    key = next((each for each in _KEYS if maps and all(each in item for item in [*stated, *live])), None)
    if key is None or len({str(item[key]) for item in live}) != len(live):
        return [(stated[index] if index < len(stated) else item, item) for index, item in enumerate(live)]
    by_name = {str(item[key]): item for item in live}
    first = [(item, by_name.pop(str(item[key]))) for item in stated if str(item[key]) in by_name]
    return [*first, *((item, item) for item in by_name.values())]


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
