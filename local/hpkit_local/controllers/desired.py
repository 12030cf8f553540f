"""All that should be in the API server, from all that is in the AWS endpoint."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hpkit_local.aws.snapshot import Snapshot
from hpkit_local.controllers.access import access
from hpkit_local.controllers.karpenter import kinds
from hpkit_local.controllers.nodes import NodeMark, nodes
from hpkit_local.controllers.objects import Manifests
from hpkit_local.controllers.policy import governance
from hpkit_local.controllers.training import training

__all__ = ["desired"]


def desired(
    snapshot: Snapshot,
    *,
    namespaces: Collection[str],
    registered: Collection[str],
    marks: Mapping[str, NodeMark],
    kubelet_port: int,
) -> Manifests:
    """Return every object that should exist; nothing without an EKS cluster.

    `namespaces` and `registered` are the names of the existing namespaces and nodes. `marks` is what Karpenter adds to
    its nodes, by logical ID. `kubelet_port` is the port of kwok.
    """
    if not snapshot.eks:
        return Manifests()
    cluster = nodes(snapshot, registered, marks, kubelet_port=kubelet_port) + access(snapshot, namespaces)
    return kinds(snapshot) + training(snapshot) + cluster + governance(snapshot)
