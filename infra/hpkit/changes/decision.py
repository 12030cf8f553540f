"""What a guard decides about one loss: the run ends there, or the file allows it.

The engine's guards are ChangeGuard, the Cluster of the `hyperpod` plugin, and `protect`. The other modules of this
package decide the same without an engine.
"""

from dataclasses import dataclass
from typing import Final

__all__ = [
    "CLUSTER",
    "DELETION_ALLOWED",
    "EKS",
    "GUARDED_TYPES",
    "RELOCATIONS",
    "REPLACE",
    "UNPROTECTED",
    "VPC",
    "Allowance",
    "GuardDecision",
]

# The codes of decisions about a stack that moves elsewhere. No allowance covers them.
RELOCATIONS: Final = ("another-account", "another-region")
CLUSTER: Final = "hyperpod:index:Cluster"
EKS: Final = "aws:eks/cluster:Cluster"
VPC: Final = "aws:ec2/vpc:Vpc"
# Types that take with them what cannot be made again → what `allowReplace` calls them.
GUARDED_TYPES: Final = {
    VPC: "vpc",
    EKS: "eks",
    CLUSTER: "cluster",
    "aws:s3/bucket:Bucket": "bucket",
    "aws:kms/key:Key": "key",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "fileSystem",
    "aws:amp/workspace:Workspace": "prometheus",
    "aws:grafana/workspace:Workspace": "grafana",
}

# Something that an environment says to allow a loss: REPLACE or a key of `allowDelete`, and a name there.
Allowance = tuple[str, str]
REPLACE: Final = "allowReplace"
# What to do about a deletion that the environment names.
DELETION_ALLOWED: Final = "allowDelete allows it"
# That nothing is protected is a key of its own.
UNPROTECTED: Final[Allowance] = ("protect", "false")


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """A guard's decision about one thing that is lost or cannot change.

    - code: what kind of thing, for tools.
    - key: how an allowance names it; empty if no allowance applies.
    - subject: resource or group.
    - reason: what happens and why, one sentence.
    - fix: what to do; of what allowances lift, what to do before they are written.
    - refused: whether the run ends here.
    - needs: the allowances that lift the refusal.
    - first: what has to be deployed before the change, since the state protects what is lost.
    """

    code: str
    key: str
    subject: str
    reason: str
    fix: str
    refused: bool
    needs: tuple[Allowance, ...] = ()
    first: tuple[Allowance, ...] = ()

    @property
    def message(self) -> str:
        """Reason and fix as one text."""
        return f"{self.reason}; {self.fix}"
