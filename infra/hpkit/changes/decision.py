"""A guard's decision about one loss: it blocks the run, or the file allows it.

The engine's guards are ChangeGuard, the Cluster of the `hyperpod` plugin, and `protect`. The other modules of this
package make the same decisions without an engine.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hpkit.plan.model import Plan

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
    "with_advice",
]

# The codes of decisions about a stack that moves elsewhere. No allowance covers them.
RELOCATIONS: Final = ("account-changed", "region-changed")
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


def with_advice(decisions: Sequence[GuardDecision], before: Plan, after: Plan) -> list[GuardDecision]:
    """Return the decisions; those that an allowance lifts state all allowances that the change needs."""
    refused = [each for each in decisions if each.refused]
    needs = [allowance for each in refused for allowance in each.needs]
    first = [allowance for each in refused for allowance in each.first]
    if not needs and not first:
        return list(decisions)
    everything = _text([*needs, *first], after)
    how = (
        f"the preview fails unless the environment has {everything}"
        if not first
        else f"to allow it, first run `pulumi up` with {_text(first, before)} and without this change, then make this "
        f"change with {everything}"
    )
    return [_advised(each, how, everything) if each.refused else each for each in decisions]


def _advised(decision: GuardDecision, how: str, everything: str) -> GuardDecision:
    if not decision.needs and not decision.first:
        return decision
    return replace(decision, fix=f"{decision.fix} and {everything}" if decision.fix else how)


def _text(needed: Iterable[Allowance], plan: Plan) -> str:
    """Return the allowances for the environment, including its existing ones."""
    allowances = dict.fromkeys(needed)
    allowance_keys = {kind for kind, _ in allowances}
    settings = ["`protect: false`"] if UNPROTECTED in allowances else []
    if REPLACE in allowance_keys:
        keys = {name for kind, name in allowances if kind == REPLACE} | {*plan.spec.allow_replace}
        settings.append(f"`{REPLACE}: [{', '.join(key for key in GUARDED_TYPES.values() if key in keys)}]`")
    deletions = allowance_keys - {REPLACE, UNPROTECTED[0]}
    if deletions:
        written = plan.spec.allow_delete.model_dump(by_alias=True)
        names = {
            allow_key: [*dict.fromkeys([*existing, *(name for other, name in allowances if other == allow_key)])]
            for allow_key, existing in written.items()
        }
        listed = ", ".join(f"{kind}: [{', '.join(own)}]" for kind, own in names.items() if own)
        settings.append(f"`allowDelete: {{{listed}}}`")
    return " and ".join(settings)
