"""Pending changes: what the AWS endpoint is about to apply, on top of the snapshot of its current state.

A change is a document that is about to take effect, or None for a deletion; its key is `<what>/<name or id>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hpkit_local.aws.snapshot import Snapshot

__all__ = ["PendingChanges", "with_pending"]

PendingChanges = Mapping[str, Mapping[str, Any] | None]
# While Karpenter is being switched off it is still there.
_ON = ("InService", "Deleting")


def with_pending(snapshot: Snapshot, pending: PendingChanges) -> Snapshot:
    """Return the desired state: the snapshot after the pending changes."""
    clusters = _merged(snapshot.clusters, pending, "cluster")
    for name, cluster in clusters.items():
        scaler = cluster.pop("AutoScaling", None)
        change = pending.get(f"autoscaling/{name}", scaler if scaler and scaler["Status"] in _ON else None)
        if change is not None:
            cluster["AutoScaling"] = change
    eks = _merged(snapshot.eks, pending, "eks")
    return replace(
        snapshot,
        eks=eks,
        addons=_merged(snapshot.addons, pending, "addon"),
        clusters=clusters,
        nodes={name: nodes for name, nodes in snapshot.nodes.items() if name in clusters},
        entries=[entry for entry in snapshot.entries if entry["clusterName"] in eks],
        quotas=_merged(snapshot.quotas, pending, "quota"),
        policies=_merged(snapshot.policies, pending, "policy"),
    )


def _merged(live: Mapping[str, Any], pending: PendingChanges, resource_type: str) -> dict[str, dict[str, Any]]:
    result = {name: dict(document) for name, document in live.items()}
    for key, change in pending.items():
        changed, _, name = key.partition("/")
        if changed != resource_type:
            continue
        if change is None:
            result.pop(name, None)
        else:
            result[name] = dict(change)
    return result
