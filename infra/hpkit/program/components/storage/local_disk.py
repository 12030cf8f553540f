"""Local disks of nodes: a claim in each team's namespace, on the team's own folder.

Pod Security rejects `hostPath` in a pod, because a pod could name any folder of the node. Only administrators create
PersistentVolumes, and each of these serves one claim, so a team's pods see the team's folder only.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

import pulumi

from hpkit.config.models.storage import LocalDisk
from hpkit.plan.lustre import FOLDER, LOCAL_CLAIM, shell_image
from hpkit.plan.model import Plan
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, KubernetesObject

__all__ = ["TeamDisks"]

_ACCESS_MODES = ("ReadWriteMany",)
# Kubernetes requires a size, which limits nothing here.
_SIZE = {"storage": "1Ti"}


_MAKER: Final = "local-disk-folders"


class TeamDisks(Component):
    """A PersistentVolume and a claim for each team that works in this environment.

    A DaemonSet creates the folders, and only on nodes where the path is a mount. Elsewhere, pods with the claim don't
    start, so that no team fills the root volume.
    """

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
        # Kubernetes rejects changes to a volume's path and nodes. With another name, the new volume exists before the
        # claim is replaced, and the old one is deleted after its claim.
        settings = f"{disk.model_dump_json()}{plan.spec.cluster.name}"
        teams = [team for team in plan.teams if not team.is_shared_pool]
        KubernetesObject(
            "folders",
            "apps/v1:DaemonSet",
            # Nodes appear later, and one whose disk isn't mounted must not stop `up`.
            metadata={"name": _MAKER, "namespace": "kube-system", "annotations": {"pulumi.com/skipAwait": "true"}},
            spec=_folder_maker(shell_image(plan.spec), disk, [team.name for team in teams]),
            opts=self.child(provider=eks.kubernetes),
        )
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": LOCAL_CLAIM}
        for team in teams:
            # With the quota, the claim is deleted, and no other claim can use the volume after it.
            digest = hashlib.sha256(f"{settings}{team.quota_name}".encode()).hexdigest()[:8]
            volume = KubernetesObject(
                f"local-{team.name}",
                "core/v1:PersistentVolume",
                metadata={"name": f"local-{team.namespace}-{digest}"},
                spec={
                    "accessModes": list(_ACCESS_MODES),
                    "capacity": _SIZE,
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {**claim, "namespace": team.namespace},
                    "hostPath": {"path": f"{disk.path}/{FOLDER}/{team.name}", "type": "Directory"},
                    "nodeAffinity": {"required": _of_types(disk)},
                },
                opts=self.child(provider=eks.kubernetes),
            )
            KubernetesObject(
                f"local-{team.name}",
                "core/v1:PersistentVolumeClaim",
                metadata={"name": LOCAL_CLAIM, "namespace": team.namespace},
                spec={
                    "accessModes": list(_ACCESS_MODES),
                    # Without a class, so that no driver provisions the claim. A volume has none by default.
                    "storageClassName": "",
                    "volumeName": volume.metadata["name"],
                    "resources": {"requests": _SIZE},
                },
                opts=self.child(
                    after=[volume, quotas[team.name]],
                    provider=eks.kubernetes,
                    replace_with=[quotas[team.name]],
                ),
            )
        self.register_outputs({"claims": [f"{team.namespace}/{LOCAL_CLAIM}" for team in teams]})


def _of_types(disk: LocalDisk) -> dict[str, Any]:
    """Return a node selector of the disk's instance types."""
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(disk.instance_types)}
    return {"nodeSelectorTerms": [{"matchExpressions": [types]}]}


def _folder_maker(image: str, disk: LocalDisk, teams: Sequence[str]) -> Any:
    """Return a DaemonSet that checks on each node that the path is a mount, and creates the teams' folders."""
    path = PurePosixPath(disk.path)
    # A container sees the mounts below a folder of the node, so the folder above the disk shows whether it's one.
    inside = f"/node/{path.name}"
    script = (
        f"set -eu; mountpoint -q {inside} || {{ echo '{path} is not a mount on this node; folders would fill the "
        "root volume. Set storage.localDisk.path to the mount of the disk: /opt/sagemaker or /opt/dlami/nvme'; "
        f"exit 1; }}; mkdir -p {' '.join(f'{inside}/{FOLDER}/{team}' for team in teams)}; exec tail -f /dev/null"
    )
    labels = {"app.kubernetes.io/name": _MAKER}
    container = {
        "name": "folders",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "16Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsUser": 0,
            "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "node", "mountPath": "/node", "mountPropagation": "HostToContainer"}],
    }
    pod = {
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _of_types(disk)}},
        "containers": [container],
        "volumes": [{"name": "node", "hostPath": {"path": str(path.parent), "type": "Directory"}}],
    }
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
