"""A guard's decision about one loss: it blocks the run, or the file allows it.

The engine's guards are ChangeGuard, the Cluster of the `hyperpod` plugin, and `protect`. The other modules of this
package make the same decisions without an engine.
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
# Types whose deletion loses what can't be created again → their names in `allowReplace`.
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

# A setting of an environment that allows a loss: REPLACE or a key of `allowDelete`, and a name in it.
Allowance = tuple[str, str]
REPLACE: Final = "allowReplace"
# What to do about a deletion that the environment names.
DELETION_ALLOWED: Final = "allowDelete allows it"
# `protect: false` is a separate key.
UNPROTECTED: Final[Allowance] = ("protect", "false")


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """A guard's decision about one thing that is lost or can't change.

    - code: the kind of thing, for tools.
    - key: its key in an allowance; empty if no allowance applies.
    - subject: resource or group.
    - reason: what happens and why, in one sentence.
    - fix: what to do; for allowances, what to do before they are set.
    - refused: whether it blocks the run.
    - needs: the allowances that lift the block.
    - first: what must be deployed before the change, because the state protects what is lost.
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
