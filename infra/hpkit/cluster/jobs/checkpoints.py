"""Checkpoints of a job that resumes after a preemption: their path, and the time that pods have to save the last one.

Kueue preempts a job by suspending it. Its controller then deletes the pods: the kubelet sends SIGTERM to process 1 of
each container, and SIGKILL when terminationGracePeriodSeconds are over. The kubelet and Kueue limit that period to no
maximum; the admission policies limit it to `teamLimits.terminationGracePeriodSeconds`. Kueue gives the quota to another
job at once, but that job's pods find no free instance until these pods have ended. Sources: Kubernetes, "Pod
Lifecycle", termination of pods; Kueue 0.19.2, pkg/controller/jobframework/reconciler.go, stopJob.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from hpkit.errors import SelectionError
from hpkit.plan.lustre import CLAIM, has_team_volumes
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.team_limits import pod_limits

__all__ = ["VARIABLE", "Checkpoints", "with_claim"]

# The environment variable from which the training script reads the path.
VARIABLE: Final = "CHECKPOINTS"
_MOUNT: Final = "/fsx"
# hpkit's choice: a script that saves ends earlier, and one that ignores SIGTERM delays the lender no longer.
_GRACE_SECONDS: Final = 120
_S3: Final = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<prefix>[\w.=/-]*[\w.=-])/?", re.ASCII)
_FILES: Final = re.compile(rf"{_MOUNT}(/[\w.=-]+)+/?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Where a team's job keeps checkpoints, and how many seconds its pods have to save the last one.

    user: the user and group ID with which its pods write to the team's claim; None for S3.
    """

    path: str
    grace_seconds: int
    user: int | None

    @classmethod
    def at(cls, path: str, plan: Plan, team: TeamPlan) -> Checkpoints:
        """Return the checkpoints of a team's job; SelectionError if its pods can't reach the path."""
        grace = min(_GRACE_SECONDS, pod_limits(plan).grace_seconds)
        if _S3.fullmatch(path):
            return cls(path.rstrip("/"), grace, None)
        if not _FILES.fullmatch(path) or ".." in PurePosixPath(path).parts:
            raise SelectionError(
                f"--checkpoint {path}: use a folder of the claim {CLAIM}, such as {_MOUNT}/train, or s3://BUCKET/PREFIX"
            )
        if not has_team_volumes(plan):
            raise SelectionError(
                f"--checkpoint {path}: {plan.stack} has no claim {CLAIM}. Set storage.lustre.teams to true in the "
                "organization file, or use s3://BUCKET/PREFIX"
            )
        return cls(path.rstrip("/"), grace, team.user_ids.start)

    def pod(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Return a pod's specification with the path, the volume, and the grace period; it has one container."""
        (container,) = spec["containers"]
        container = {**container, "env": [*container["env"], {"name": VARIABLE, "value": self.path}]}
        spec = {**spec, "terminationGracePeriodSeconds": self.grace_seconds, "containers": [container]}
        return spec if self.user is None else with_claim(spec, self.user)

    def words(self, kind: str) -> str:
        """Return what the training script must do, and which permissions it needs."""
        saves = f"When the job is preempted, its processes get SIGTERM, and SIGKILL after {self.grace_seconds} s"
        if kind == "rayjob":
            saves = "When the job is preempted, Ray ends the training functions without a signal, so save regularly"
        words = f"{saves}. At each start, resume from the newest checkpoint in ${VARIABLE}"
        match = _S3.fullmatch(self.path)
        if match is None:
            return words
        return (
            f"{words}. The pods' service account needs s3:ListBucket for {match['bucket']}, and s3:GetObject and "
            f"s3:PutObject for {match['bucket']}/{match['prefix']}/*"
        )


def with_claim(spec: dict[str, Any], user: int) -> dict[str, Any]:
    """Return a pod's specification with the team's claim at /fsx, and one of the team's user IDs.

    It has one container.
    """
    (container,) = spec["containers"]
    ids = {"runAsNonRoot": True, "runAsUser": user, "runAsGroup": user, "supplementalGroupsPolicy": "Strict"}
    return {
        **spec,
        "volumes": [*spec.get("volumes", ()), {"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}}],
        "securityContext": {**spec["securityContext"], **ids},
        "containers": [
            {**container, "volumeMounts": [*container.get("volumeMounts", ()), {"name": CLAIM, "mountPath": _MOUNT}]}
        ],
    }
