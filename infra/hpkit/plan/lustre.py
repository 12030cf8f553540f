"""Names of the objects in the cluster for teams' files: on a file system, and on local disks."""

from typing import Final

from hpkit.config.models.organization import Environment
from hpkit.plan.dependencies import mirror_name
from hpkit.plan.model import Plan, TeamPlan

__all__ = [
    "CLAIM",
    "FOLDER",
    "LOCAL_CLAIM",
    "STORAGE_CLASS",
    "folder_image",
    "folder_image_source",
    "has_team_volumes",
    "shell_image",
    "volume_name",
]

# As the driver's examples and AWS's own modules for HyperPod call them.
STORAGE_CLASS: Final = "fsx-sc"
CLAIM: Final = "fsx-claim"
LOCAL_CLAIM: Final = "local-claim"
# The folder on the file system, or on a local disk, that contains a folder per team.
FOLDER: Final = "teams"
# The tag is rebuilt with each base image; the digest is from docker-library/repo-info, busybox/remote/1.37.0.md.
_FOLDER_IMAGE: Final = (
    "public.ecr.aws/docker/library/busybox:1.37.0"
    "@sha256:9db7b59979c38555a39def84a31fb98b5296952f9e3afd4f6f11f05b07adfab0"
)


def folder_image(spec: Environment) -> str | None:
    """Return the image of the pods that make the teams' folders, in the mirror if any; None where no pod does."""
    storage = spec.storage
    makes = storage is not None and (storage.local_disk is not None or (storage.lustre and storage.lustre.teams))
    return shell_image(spec) if makes else None


def shell_image(spec: Environment) -> str:
    """Return an image with a shell: the one in `storage.lustre.image`, or a pinned one, in the mirror if any."""
    lustre = spec.storage.lustre if spec.storage else None
    registry = spec.cluster.dependencies.image_registry
    own = lustre.image if lustre else None
    return own or (_FOLDER_IMAGE if registry is None else mirror_name(_FOLDER_IMAGE, registry))


def folder_image_source(spec: Environment) -> str:
    """Return the image's source before it's copied to a mirror."""
    lustre = spec.storage.lustre if spec.storage else None
    return (lustre.image if lustre else None) or _FOLDER_IMAGE


def has_team_volumes(plan: Plan) -> bool:
    """Report whether teams have claims on a file system."""
    return bool(plan.spec.storage and plan.spec.storage.lustre and plan.spec.storage.lustre.teams)


def volume_name(team: TeamPlan) -> str:
    """Return the name of a team's PersistentVolume, which isn't namespaced."""
    return f"fsx-{team.namespace}"
