"""The FSx for Lustre file system inside the cluster: a claim in each team's namespace.

Source: kubernetes-sigs/aws-fsx-csi-driver, examples of static provisioning; the same for HyperPod in
awslabs/awsome-distributed-training, module fsx_lustre. A PersistentVolume serves one claim, so each team has its own,
of the same file system. The driver neither attaches nor stages volumes, so that volumes of one handle do not meet on a
node.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from hpkit.components.base import Component
from hpkit.components.eks import Eks
from hpkit.config.storage import Lustre
from hpkit.plan.lustre import CLAIM, STORAGE_CLASS, volume_name
from hpkit.plan.model import Plan

__all__ = ["TeamVolumes"]

_DRIVER = "fsx.csi.aws.com"
_ACCESS_MODES = ("ReadWriteMany",)
# What the smallest file system has. It limits nothing, and what a claim requests can never change, while a file system
# can grow.
_REQUEST = {"storage": "1200Gi"}


class TeamVolumes(Component):
    """A StorageClass, and a PersistentVolume and a claim for each team that works in this environment."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        wanted: Lustre,
        *,
        eks: Eks,
        file_system: aws.fsx.LustreFileSystem,
        driver: pulumi.Resource,
        quotas: Mapping[str, pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__(name, opts=opts)
        # It tells these volumes from others; the kit's role lets the driver make no file system.
        storage_class = k8s.storage.v1.StorageClass(
            STORAGE_CLASS,
            metadata={"name": STORAGE_CLASS},
            provisioner=_DRIVER,
            opts=self.child(after=[driver], provider=eks.kubernetes),
        )
        teams = [team for team in plan.teams if not team.is_shared_pool]
        for team in teams:
            volume = k8s.core.v1.PersistentVolume(
                team.name,
                metadata={"name": volume_name(team)},
                spec=k8s.core.v1.PersistentVolumeSpecArgs(
                    access_modes=list(_ACCESS_MODES),
                    capacity={"storage": f"{wanted.storage_capacity_gib}Gi"},
                    storage_class_name=STORAGE_CLASS,
                    persistent_volume_reclaim_policy="Retain",
                    # Locks of files, which training frameworks take, are those of the whole file system.
                    mount_options=["flock"],
                    claim_ref=k8s.core.v1.ObjectReferenceArgs(
                        api_version="v1", kind="PersistentVolumeClaim", namespace=team.namespace, name=CLAIM
                    ),
                    csi=k8s.core.v1.CSIPersistentVolumeSourceArgs(
                        driver=_DRIVER,
                        volume_handle=file_system.id,
                        volume_attributes={"dnsname": file_system.dns_name, "mountname": file_system.mount_name},
                    ),
                ),
                opts=self.child(after=[storage_class], provider=eks.kubernetes),
            )
            k8s.core.v1.PersistentVolumeClaim(
                team.name,
                metadata={"name": CLAIM, "namespace": team.namespace},
                spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
                    access_modes=list(_ACCESS_MODES),
                    storage_class_name=STORAGE_CLASS,
                    # A volume that is replaced, as for another file system, is held by its claim: that goes before.
                    volume_name=volume.metadata["name"],
                    resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests=_REQUEST),
                ),
                # The namespace comes with the team's quota.
                opts=self.child(after=[volume, quotas[team.name]], provider=eks.kubernetes),
            )
        self.register_outputs({"claims": [f"{team.namespace}/{CLAIM}" for team in teams]})
