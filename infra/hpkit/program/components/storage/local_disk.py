"""Local disks of nodes: a claim in each team's namespace, on the team's own folder.

Pod Security rejects `hostPath` in a pod, because a pod could name any folder of the node. Only administrators create
PersistentVolumes, and each of these serves one claim, so a team's pods see the team's folder only.
"""

import hashlib
from collections.abc import Mapping

import pulumi
import pulumi_kubernetes as k8s

from hpkit.config.models.storage import LocalDisk
from hpkit.plan.lustre import FOLDER, LOCAL_CLAIM
from hpkit.plan.model import Plan
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component

__all__ = ["TeamDisks"]

_ACCESS_MODES = ("ReadWriteMany",)
# Kubernetes requires a size, which limits nothing here.
_SIZE = {"storage": "1Ti"}


class TeamDisks(Component):
    """A PersistentVolume and a claim for each team that works in this environment."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        disk: LocalDisk,
        *,
        eks: Eks,
        quotas: Mapping[str, pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Register them; the team's quota creates its namespace."""
        super().__init__(name, opts=opts)
        type_in = k8s.core.v1.NodeSelectorRequirementArgs(
            key="node.kubernetes.io/instance-type", operator="In", values=list(disk.instance_types)
        )
        # Kubernetes rejects changes to a volume's path and nodes. With another name, the new volume exists before the
        # claim is replaced, and the old one is deleted after its claim.
        digest = hashlib.sha256(disk.model_dump_json().encode()).hexdigest()[:8]
        teams = [team for team in plan.teams if not team.is_shared_pool]
        for team in teams:
            volume = k8s.core.v1.PersistentVolume(
                f"local-{team.name}",
                metadata={"name": f"local-{team.namespace}-{digest}"},
                spec=k8s.core.v1.PersistentVolumeSpecArgs(
                    access_modes=list(_ACCESS_MODES),
                    capacity=_SIZE,
                    persistent_volume_reclaim_policy="Retain",
                    claim_ref=k8s.core.v1.ObjectReferenceArgs(
                        api_version="v1", kind="PersistentVolumeClaim", namespace=team.namespace, name=LOCAL_CLAIM
                    ),
                    host_path=k8s.core.v1.HostPathVolumeSourceArgs(
                        path=f"{disk.path}/{FOLDER}/{team.name}", type="DirectoryOrCreate"
                    ),
                    node_affinity=k8s.core.v1.VolumeNodeAffinityArgs(
                        required=k8s.core.v1.NodeSelectorArgs(
                            node_selector_terms=[k8s.core.v1.NodeSelectorTermArgs(match_expressions=[type_in])]
                        )
                    ),
                ),
                opts=self.child(provider=eks.kubernetes),
            )
            k8s.core.v1.PersistentVolumeClaim(
                f"local-{team.name}",
                metadata={"name": LOCAL_CLAIM, "namespace": team.namespace},
                spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
                    access_modes=list(_ACCESS_MODES),
                    # Without a class, so that no driver provisions the claim. A volume has none by default.
                    storage_class_name="",
                    volume_name=volume.metadata["name"],
                    resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests=_SIZE),
                ),
                opts=self.child(after=[volume, quotas[team.name]], provider=eks.kubernetes),
            )
        self.register_outputs({"claims": [f"{team.namespace}/{LOCAL_CLAIM}" for team in teams]})
