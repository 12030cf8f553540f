"""The FSx for Lustre file system inside the cluster: a claim in each team's namespace, on the team's own folder.

Source: kubernetes-sigs/aws-fsx-csi-driver, examples of static provisioning; the same for HyperPod in
awslabs/awsome-distributed-training, module fsx_lustre. A PersistentVolume serves one claim, so each team has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from hpkit.config.models.storage import Lustre
from hpkit.plan.lustre import CLAIM, FOLDER, STORAGE_CLASS, folder_image, volume_name
from hpkit.plan.model import Plan
from hpkit.plan.user_ids import SQUASHED
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, KubernetesObject

__all__ = ["TeamVolumes"]

_DRIVER = "fsx.csi.aws.com"
_ACCESS_MODES = ("ReadWriteMany",)
# The size of the smallest file system. It limits nothing, and a claim's request can never change, while a file system
# can grow.
_REQUEST = {"storage": "1200Gi"}
# The whole file system, where no team has permissions.
_ROOT, _ROOT_NAMESPACE = "fsx-root", "kube-system"


class TeamVolumes(Component):
    """A StorageClass, and a PersistentVolume and a claim for each team that works in this environment."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        lustre: Lustre,
        *,
        eks: Eks,
        file_system: aws.fsx.LustreFileSystem | str,
        driver: Sequence[pulumi.Resource],
        quotas: Mapping[str, pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Register them; file_system: an ID, and no driver, if another stack or tool manages both."""
        super().__init__(name, opts=opts)
        # It distinguishes these volumes; hpkit's role doesn't let the driver create file systems.
        storage_class = KubernetesObject(
            STORAGE_CLASS,
            "storage.k8s.io/v1:StorageClass",
            metadata={"name": STORAGE_CLASS},
            provisioner=_DRIVER,
            opts=self.child(after=driver, provider=eks.kubernetes),
        )
        teams = [team for team in plan.teams if not team.is_shared_pool]
        self._wanted, self._eks = lustre, eks
        if isinstance(file_system, str):
            # A preview doesn't know the ID of a resource that it reads, and would replace the volumes.
            self._id: pulumi.Input[str] = file_system
            self._file_system = aws.fsx.LustreFileSystem.get("lustre", file_system, opts=self.child())
        else:
            self._id, self._file_system = file_system.id, file_system
        whole = self._claim("root", _ROOT, _ROOT_NAMESPACE, folder="", claim=_ROOT, after=[storage_class])
        for team in teams:
            quota = quotas[team.name]
            # The claim exists without the folder; pods with it start after the Job created the folder.
            directory = KubernetesObject(
                f"directory-{team.name}",
                "batch/v1:Job",
                metadata={
                    "name": f"fsx-directory-{team.name}",
                    "namespace": _ROOT_NAMESPACE,
                    # A file with only Karpenter's groups has no node yet.
                    "annotations": {"pulumi.com/skipAwait": "true"},
                },
                spec=_directory_job(folder_image(plan.spec), team.name, claim=whole.metadata["name"]),
                opts=self.child(
                    after=[whole, quota],
                    provider=eks.kubernetes,
                    replace_on_changes=["spec"],
                    replace_with=[quota],
                ),
            )
            self._claim(
                team.name,
                volume_name(team),
                team.namespace,
                folder=f"/{FOLDER}/{team.name}",
                claim=CLAIM,
                after=[storage_class],
                # The quota creates the namespace. With the quota, the claim is deleted, and no other claim can use the
                # volume after it. The engine deletes what is replaced with the quota in any order, so the volume, which
                # must be deleted after the claim, is replaced with the Job.
                quota=[quota],
                last=[directory],
            )
        self.register_outputs({"claims": [f"{team.namespace}/{CLAIM}" for team in teams]})

    def _claim(
        self,
        name: str,
        volume_name: str,
        namespace: str,
        *,
        folder: str,
        claim: str,
        after: Sequence[pulumi.Resource],
        quota: Sequence[pulumi.Resource] = (),
        last: Sequence[pulumi.Resource] = (),
    ) -> KubernetesObject:
        """Return a claim in a namespace on a folder of the file system, with the volume that no other claim takes.

        The driver mounts `<dnsname>@tcp:/<mountname>` (kubernetes-sigs/aws-fsx-csi-driver, pkg/driver/node.go,
        NodePublishVolume). Lustre mounts a folder behind that name (FSx for Lustre user guide, "Mounting specific
        filesets"), so a pod sees nothing above it.
        """
        mount = self._file_system.mount_name
        volume = KubernetesObject(
            name,
            "core/v1:PersistentVolume",
            metadata={"name": volume_name},
            spec={
                "accessModes": list(_ACCESS_MODES),
                "capacity": {"storage": f"{self._wanted.storage_capacity_gib}Gi"},
                "storageClassName": STORAGE_CLASS,
                "persistentVolumeReclaimPolicy": "Retain",
                # File locks, which training frameworks use, apply to the whole file system.
                "mountOptions": ["flock"],
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": namespace,
                    "name": claim,
                },
                "csi": {
                    "driver": _DRIVER,
                    # One handle for each folder: Kubernetes takes volumes of one handle for the same volume.
                    "volumeHandle": pulumi.Output.concat(self._id, folder) if folder else self._id,
                    "volumeAttributes": {
                        "dnsname": self._file_system.dns_name,
                        "mountname": pulumi.Output.concat(mount, folder) if folder else mount,
                    },
                },
            },
            opts=self.child(after=[*after, *last], provider=self._eks.kubernetes, replace_with=last),
        )
        return KubernetesObject(
            name,
            "core/v1:PersistentVolumeClaim",
            metadata={"name": claim, "namespace": namespace},
            spec={
                "accessModes": list(_ACCESS_MODES),
                "storageClassName": STORAGE_CLASS,
                "volumeName": volume.metadata["name"],
                "resources": {"requests": _REQUEST},
            },
            # A claim holds a volume that is replaced, such as for another file system, and so does a Job's pod that has
            # ended: the Job is deleted first, then the claim.
            opts=self.child(
                after=[volume, *quota],
                provider=self._eks.kubernetes,
                replace_on_changes=["spec"],
                replace_with=quota,
                delete_before_replace=True,
            ),
        )


def _directory_job(image: str | None, team: str, *, claim: pulumi.Input[str]) -> dict[str, Any]:
    """Return a Job that creates a team's folder, and can be repeated without changes.

    `teams` belongs to the user that squashed root becomes, so that later Jobs can create folders in it. Only root can
    enter it, so a team's folder is only reachable through the team's volume.
    """
    parent, folder, owner = f"/fsx/{FOLDER}", f"/fsx/{FOLDER}/{team}", f"{SQUASHED}:{SQUASHED}"
    script = (
        f"set -eu; umask 077; mkdir -p {folder}; "
        f'for path in {parent} {folder}; do [ "$(stat -c %u:%g "$path")" = {owner} ] || chown {owner} "$path"; done; '
        f"chmod 0700 {parent}; chmod 0777 {folder}"
    )
    container = {
        "name": "directory",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "16Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsUser": 0,
            "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "fsx", "mountPath": "/fsx"}],
    }
    pod = {
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [{"name": "fsx", "persistentVolumeClaim": {"claimName": claim}}],
    }
    return {"backoffLimit": 10, "template": {"spec": pod}}
