"""What a guard decides about one loss: the run ends there, or the file allows it.

The engine's guards are ChangeGuard, the Cluster of the `hyperpod` plugin, and `protect`. The other modules of this
package decide the same without an engine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = [
    "CLUSTER",
    "EKS",
    "GUARDED_TYPES",
    "RELOCATIONS",
    "VPC",
    "GuardDecision",
    "deletion_allowance",
    "deletion_fix",
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


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """A guard's decision about one thing that is lost or cannot change.

    - code: what kind of thing, for tools.
    - key: how an allowance names it; empty if no allowance applies.
    - subject: resource or group.
    - reason: what happens and why, one sentence.
    - fix: what to do.
    - refused: whether the run ends here.
    """

    code: str
    key: str
    subject: str
    reason: str
    fix: str
    refused: bool

    @property
    def message(self) -> str:
        """Reason and fix as one text."""
        return f"{self.reason}; {self.fix}"


def deletion_fix(kind: str, name: str, *, named: bool) -> str:
    """Return how `allowDelete` allows a deletion, or that it does; kind is its key there."""
    allowance = deletion_allowance({kind: [name]})
    return f"allowed by {allowance}" if named else f"the preview fails unless the environment has {allowance}"


def deletion_allowance(names: Mapping[str, Sequence[str]]) -> str:
    """Return what an environment says to allow deletions: key of `allowDelete` → names."""
    kinds = ", ".join(f"{kind}: [{', '.join(own)}]" for kind, own in names.items())
    return f"`allowDelete: {{{kinds}}}`"
