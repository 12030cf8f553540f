"""Pods with a claim on the shared file system run as users of their team, and can't become others.

Lustre trusts the user ID that a client sends (Lustre manual, "Root Squash"), except with an identity upcall. So the
node's container runtime must start a pod's processes with one of the team's IDs, and without the image's groups. A node
whose runtime can't do the latter rejects the pod (Kubernetes, "Configure fine-grained SupplementalGroups control").

A container that doesn't mount the claim may have more privileges, but shares no processes with the others: Kubeflow's
operator adds such a one to the workers of a PyTorchJob (1.7.0, initcontainer.go).

The volume accepts one claim, which is recognized by its name. An ephemeral volume creates a claim named after the pod
and the volume, and counts too.
"""

from collections.abc import Sequence

from hpkit.plan.lustre import CLAIM
from hpkit.plan.model import TeamPlan
from hpkit.program.components.admission.model import CREATE, AdmissionPolicy, Rejection, ResourceRule

__all__ = ["policies_of_users"]

_PODS = (ResourceRule(("",), ("pods",)), "object.spec")
_JOBS = (ResourceRule(("batch",), ("jobs",)), "object.spec.template.spec")

_FILES = f"(has(volume.ephemeral) || volume.?persistentVolumeClaim.?claimName.orValue('') == '{CLAIM}')"


def policies_of_users(teams: Sequence[TeamPlan]) -> list[AdmissionPolicy]:
    """Return the policies of the namespaces of teams whose claim is on the file system."""
    ids = {team.namespace: team.user_ids for team in teams}
    literal = "{" + ", ".join(f"'{name}': [{own.start}, {own.stop - 1}]" for name, own in sorted(ids.items())) + "}"
    return [
        AdmissionPolicy(f"hpkit-files-of-{object_kind}", (rule,), CREATE, _rejections(spec, literal))
        for object_kind, (rule, spec) in (("pods", _PODS), ("jobs", _JOBS))
    ]


def _rejections(spec: str, literal: str) -> tuple[Rejection, ...]:
    mounts = f"{spec}.?volumes.orValue([]).exists(volume, {_FILES})"
    containers = f"({spec}.containers + {spec}.?initContainers.orValue([]))"
    own = f"{literal}[?request.namespace].orValue([0, -1])"

    def inside(value: str) -> str:
        return f"({value} >= {own}[0] && {value} <= {own}[1])"

    def every(field: str) -> str:
        pod_wide = f"{spec}.?securityContext.?{field}.orValue(-1)"
        return f"{containers}.all(c, {inside(f'c.?securityContext.?{field}.orValue({pod_wide})')})"

    groups = f"{spec}.?securityContext.?supplementalGroups.orValue([]).all(id, {inside('id')})"
    fs_group = f"{spec}.?securityContext.?fsGroup"
    optional = f"(!{fs_group}.hasValue() || {inside(f'{fs_group}.value()')})"
    files = f"{spec}.?volumes.orValue([]).exists(volume, volume.name == mount.name && {_FILES})"
    locked = (
        f"!{spec}.?shareProcessNamespace.orValue(false) && {containers}.all(c, "
        f"!c.?securityContext.?allowPrivilegeEscalation.orValue(true) || "
        f"!c.?volumeMounts.orValue([]).exists(mount, {files}))"
    )
    locked_words = (
        "securityContext.allowPrivilegeEscalation must be false in each container that mounts the claim "
        f"{CLAIM}, and shareProcessNamespace must be false"
    )
    range_words = f"the team's userIds, with the claim {CLAIM}"
    return tuple(
        Rejection(field, f"!({mounts}) || ({expression})", message, reason)
        for field, expression, message, reason in (
            (
                "securityContext.runAsUser",
                every("runAsUser"),
                f"securityContext.runAsUser must be one of {range_words}",
                "root and the users of other teams can access other files on the shared file system",
            ),
            (
                "securityContext.runAsGroup",
                every("runAsGroup"),
                f"securityContext.runAsGroup must be one of {range_words}",
                "a group of another team can read that team's files",
            ),
            (
                "securityContext.supplementalGroups",
                f"{groups} && {optional}",
                f"securityContext.supplementalGroups and fsGroup must be of {range_words}",
                "a group of another team can read that team's files",
            ),
            (
                "securityContext.supplementalGroupsPolicy",
                f"{spec}.?securityContext.?supplementalGroupsPolicy.orValue('Merge') == 'Strict'",
                f"securityContext.supplementalGroupsPolicy must be Strict, with the claim {CLAIM}",
                "the image's /etc/group could add the user to a group of another team",
            ),
            (
                "securityContext.allowPrivilegeEscalation",
                locked,
                locked_words,
                "a setuid-root program in the image could become any user",
            ),
        )
    )
