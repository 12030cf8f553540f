"""Changes that have been announced and not yet taken note of, laid over the picture of what has arrived.

A wish is a document that is about to be in force, or None for what is about to vanish, under `<what>/<name or id>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from local.aws.view import Picture

__all__ = ["Wishes", "with_wishes"]

Wishes = Mapping[str, Mapping[str, Any] | None]
# While Karpenter is being switched off it is still there.
_ON = ("InService", "Deleting")


def with_wishes(picture: Picture, wishes: Wishes) -> Picture:
    """Return what should be: what has arrived and what is wished."""
    clusters = _laid(picture.clusters, wishes, "cluster")
    for name, cluster in clusters.items():
        scaler = cluster.pop("AutoScaling", None)
        wish = wishes.get(f"autoscaling/{name}", scaler if scaler and scaler["Status"] in _ON else None)
        if wish is not None:
            cluster["AutoScaling"] = wish
    eks = _laid(picture.eks, wishes, "eks")
    return replace(
        picture,
        eks=eks,
        addons=_laid(picture.addons, wishes, "addon"),
        clusters=clusters,
        nodes={name: nodes for name, nodes in picture.nodes.items() if name in clusters},
        entries=[entry for entry in picture.entries if entry["clusterName"] in eks],
        quotas=_laid(picture.quotas, wishes, "quota"),
        policies=_laid(picture.policies, wishes, "policy"),
    )


def _laid(found: Mapping[str, Any], wishes: Wishes, what: str) -> dict[str, dict[str, Any]]:
    result = {name: dict(document) for name, document in found.items()}
    for key, wish in wishes.items():
        kind, _, name = key.partition("/")
        if kind != what:
            continue
        if wish is None:
            result.pop(name, None)
        else:
            result[name] = dict(wish)
    return result
