"""What differs between the inputs of then and now, and what of it the API server can only take in a new object."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from hpkit_local.plugins.kubernetes.access import ProviderSettings
from hpkit_local.plugins.kubernetes.objects import AUTONAMED, annotation, metadata_of
from hpkit_provider.engine.values import Props, is_unknown

__all__ = ["CONTENT", "IMMUTABLE", "Change", "changes", "deletes_first", "replaces"]


@dataclass(frozen=True)
class Change:
    """One property that differs; `keys` is the path, list indexes included."""

    keys: tuple[str | int, ...]
    kind: str  # ADD, DELETE or UPDATE

    @property
    def path(self) -> str:
        """The path as Pulumi writes it."""
        text = ""
        for key in self.keys:
            if isinstance(key, int):
                text += f"[{key}]"
            elif key.isidentifier():
                text += f".{key}" if text else key
            else:
                text += f'["{key}"]'
        return text

    @property
    def plain(self) -> str:
        """The path without indexes, as the tables below name fields."""
        return ".".join(key for key in self.keys if isinstance(key, str))


_SELECTOR: Final = ("spec.selector",)
_POD_CHANGES: Final = ("spec.containers.image", "spec.initContainers.image", "spec.activeDeadlineSeconds")
_POD_CHANGES_OTHER: Final = ("spec.tolerations", "spec.terminationGracePeriodSeconds", "spec.schedulingGates")
# Fields that take a new object, by group and kind: what the official plugin replaces for (pulumi-kubernetes, table
# forceNew), and what the API server's validation of updates refuses (k8s.io/kubernetes 1.34).
IMMUTABLE: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "PersistentVolume"): ("spec.csi", "spec.hostPath", "spec.local", "spec.nfs", "spec.volumeMode"),
    ("", "PersistentVolumeClaim"): ("spec",),
    ("", "ResourceQuota"): ("spec.scopes", "spec.scopeSelector"),
    ("", "Secret"): ("type",),
    ("", "Service"): ("spec.clusterIP", "spec.clusterIPs"),
    ("apps", "DaemonSet"): _SELECTOR,
    ("apps", "Deployment"): _SELECTOR,
    ("apps", "ReplicaSet"): _SELECTOR,
    ("apps", "StatefulSet"): (
        *(*_SELECTOR, "spec.podManagementPolicy", "spec.revisionHistoryLimit", "spec.serviceName"),
        "spec.volumeClaimTemplates",
    ),
    ("batch", "Job"): (
        *(*_SELECTOR, "spec.completionMode", "spec.completions", "spec.manualSelector", "spec.parallelism"),
        "spec.template",
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("scheduling.k8s.io", "PriorityClass"): ("value", "preemptionPolicy"),
    ("storage.k8s.io", "CSIDriver"): ("spec.attachRequired", "spec.fsGroupPolicy", "spec.volumeLifecycleModes"),
    ("storage.k8s.io", "StorageClass"): ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("spec.group", "spec.names.kind", "spec.scope"),
}
# The official plugin makes a new one for new content, unless told that they are mutable, so that what mounts it rolls.
CONTENT: Final = {"ConfigMap": ("data", "binaryData"), "Secret": ("data", "stringData", "type")}


def changes(old: Any, new: Any, keys: tuple[str | int, ...] = ()) -> Iterator[Change]:
    """Yield what differs, as deep as it can be named."""
    if is_unknown(old) or is_unknown(new):
        yield Change(keys, "UPDATE")
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key.startswith("__"):
                continue
            if key not in old or key not in new:
                yield Change((*keys, key), "ADD" if key in new else "DELETE")
            else:
                yield from changes(old[key], new[key], (*keys, key))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            if index >= len(old) or index >= len(new):
                yield Change((*keys, index), "ADD" if index < len(new) else "DELETE")
            else:
                yield from changes(old[index], new[index], (*keys, index))
    elif old != new:
        yield Change(keys, "UPDATE")


def replaces(change: Change, old: Props, new: Props, *, patch: bool, settings: ProviderSettings) -> bool:
    """Whether the change takes a new object; a patch changes any field of one that others own."""
    plain = change.plain
    if plain in ("kind", "metadata.name", "metadata.namespace", "metadata.generateName"):
        return True
    if patch:
        return False
    group, kind = _group(old.get("apiVersion")), str(old.get("kind", ""))
    if plain == "apiVersion":
        return group != _group(new.get("apiVersion"))  # another version of a group shows the same object
    if group == "" and kind in CONTENT and _under(plain, CONTENT[kind]):
        mutable = settings.config_map_mutable if kind == "ConfigMap" else settings.secret_mutable
        return not mutable or old.get("immutable") is True or new.get("immutable") is True
    if group == "" and kind in CONTENT and plain == "immutable":
        return old.get("immutable") is True
    if (group, kind) == ("", "Pod"):
        return plain.startswith("spec.") and not _under(plain, (*_POD_CHANGES, *_POD_CHANGES_OTHER))
    return _under(plain, IMMUTABLE.get((group, kind), ()))


def deletes_first(old: Props, new: Props) -> bool:
    """Whether the old object must be gone before the new one can be: they have one name."""
    before, after = metadata_of(old), metadata_of(new)
    if annotation(new, AUTONAMED.rpartition("/")[2]) == "true" or after.get("generateName"):
        return False
    same = [before.get(key) == after.get(key) for key in ("name", "namespace")]
    return all(same) and old.get("kind") == new.get("kind")


def _group(api_version: Any) -> str:
    text = str(api_version or "")
    return text.partition("/")[0] if "/" in text else ""


def _under(plain: str, fields: tuple[str, ...]) -> bool:
    # A change above a field (the whole `spec` added or removed) touches it too.
    return any(plain == name or plain.startswith(f"{name}.") or name.startswith(f"{plain}.") for name in fields)
