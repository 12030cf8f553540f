"""A guard's decision about one loss: it blocks the run, or the file allows it.

The engine's guards are ChangeGuard, the Cluster of the `hyperpod` plugin, and `protect`. The other modules of this
package make the same decisions without an engine.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final

from hpkit.changes.compare import Recorded
from hpkit.plan.model import Plan
from hpkit.plan.protected import parts_allowed, parts_of
from hpkit.text.formatting import allowances, to_allow

__all__ = [
    "CLUSTER",
    "CODES",
    "DELETION_ALLOWED",
    "EKS",
    "GUARDED_TYPES",
    "RELOCATIONS",
    "RENAMED",
    "REPLACE",
    "VPC",
    "Allowance",
    "GuardDecision",
    "deletion_decisions",
    "renamed_parts",
    "with_advice",
]

# The codes of decisions about a stack that moves elsewhere. No allowance covers them.
RELOCATIONS: Final = ("account-changed", "region-changed", "network-changed")
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


@dataclass(frozen=True, slots=True)
class GuardDecision:
    """A guard's decision about one thing that is lost or can't change.

    - code: the kind of thing, for tools.
    - key: its key in an allowance; empty if no allowance applies.
    - subject: resource or group.
    - reason: what happens and why, in one sentence.
    - fix: what to do; for allowances, what to do before they are set.
    - rejected: whether it blocks the run.
    - needs: the allowances that lift the block.
    - first: what must be deployed before the change, because the state protects what is lost.
    """

    code: str
    key: str
    subject: str
    reason: str
    fix: str
    rejected: bool
    needs: tuple[Allowance, ...] = ()
    first: tuple[Allowance, ...] = ()

    @property
    def message(self) -> str:
        """Reason and fix as one text."""
        return f"{self.reason}; {self.fix}"


def with_advice(decisions: Sequence[GuardDecision], before: Plan, after: Plan) -> list[GuardDecision]:
    """Return the decisions; those that an allowance lifts state all allowances that the change needs."""
    rejected = [each for each in decisions if each.rejected]
    needs = [allowance for each in rejected for allowance in each.needs]
    first = [allowance for each in rejected for allowance in each.first]
    if not needs and not first:
        return list(decisions)
    used = {allowance for each in decisions for allowance in (*each.needs, *each.first)}
    everything = _text([*needs, *first], after, used)
    how = to_allow(everything, _text(first, before, used))
    return [_advised(each, how, everything) if each.rejected else each for each in decisions]


def _advised(decision: GuardDecision, how: str, everything: str) -> GuardDecision:
    if not decision.needs and not decision.first:
        return decision
    return replace(decision, fix=f"{decision.fix} and {everything}" if decision.fix else how)


def _text(needed: Sequence[Allowance], plan: Plan, used: Set[Allowance]) -> str:
    """Return the allowances for the environment, including its existing ones that the change uses."""
    if not needed:
        return ""
    names = {key: [name for kind, name in dict.fromkeys(needed) if kind == key] for key, _ in needed}
    replaced = {*names.pop(REPLACE)} | {*plan.spec.allow_replace} if REPLACE in names else set()
    existing = plan.spec.allow_delete.model_dump(by_alias=True) if names else {}
    deleted = {
        key: [*dict.fromkeys([*(name for name in existing[key] if (key, name) in used), *names.get(key, ())])]
        for key in existing
    }
    return allowances([key for key in GUARDED_TYPES.values() if key in replaced], deleted)


# By key in `allowDelete`: the decision's code, and the resource with which it's deleted, by its name in `allowReplace`.
CODES: Final = {
    "teams": "team-removed",
    "nodePools": "node-pool-removed",
    "addons": "addon-removed",
    "natGateways": "nat-gateway-removed",
    "repositories": "repository-removed",
}
# The same for probable renames.
RENAMED: Final = {"teams": "team-renamed", "nodePools": "node-pool-renamed"}
_GOES_WITH: Final = {"teams": "cluster", "nodePools": "cluster", "addons": "eks", "natGateways": "vpc"}
# Others, such as repositories, depend on nothing that is guarded.


def deletion_decisions(
    resources: Sequence[GuardDecision], before: Recorded, after: Recorded
) -> tuple[list[GuardDecision], list[GuardDecision]]:
    """Return the decisions about resources, and those about each deletion.

    Each loss is reported once: if a team is deleted with a rejected cluster, the cluster's decision needs both
    allowances.
    """
    rejected = {each.key for each in resources if each.rejected}
    deletions: list[GuardDecision] = []
    included: dict[str, list[Allowance]] = defaultdict(list)
    for kind, decision in _deletions(before, after):
        larger = _GOES_WITH.get(kind)
        if larger is None or larger not in rejected:
            deletions.append(decision)
        elif decision.rejected:
            included[larger] += decision.needs
    return [replace(each, needs=(*each.needs, *included[each.key])) for each in resources], deletions


def _deletions(before: Recorded, after: Recorded) -> Iterator[tuple[str, GuardDecision]]:
    """Yield deleted parts, and parts with a new API name, with their key in `allowDelete`."""
    allowed = set(parts_allowed(after.plan))
    staying = {name: called for name, (called, _) in parts_of(after.plan).items()}
    for part, (called, words) in parts_of(before.plan).items():
        if staying.get(part) == called:
            continue
        allow_key, _, name = part.partition("/")
        named = part in allowed
        decision_fields: dict[str, Any] = {"rejected": not named, "needs": ((allow_key, name),)}
        fix = DELETION_ALLOWED if named else ""
        anew = f" and recreated as {staying[part]}" if part in staying else ""
        new_name = None if anew else _renamed_to(allow_key, name, before.plan, after.plan)
        if new_name is None:
            yield (
                allow_key,
                GuardDecision(CODES[allow_key], name, name, f"{words} is deleted{anew}", fix, **decision_fields),
            )
        else:
            what = "team" if allow_key == "teams" else "NodePool"
            reason = f"{words} is deleted, {new_name} starts empty; HyperPod can't rename an existing {what}"
            yield allow_key, GuardDecision(RENAMED[allow_key], name, name, reason, fix, **decision_fields)


def renamed_parts(allow_key: str, before: Plan, after: Plan) -> dict[str, str]:
    """Return the new parts that equal deleted ones, with the old names: probable renames."""
    leaving = set(_alike(allow_key, before)) - set(_alike(allow_key, after))
    renames = {name: _renamed_to(allow_key, name, before, after) for name in sorted(leaving)}
    return {new: name for name, new in renames.items() if new is not None}


def _renamed_to(kind: str, name: str, before: Plan, after: Plan) -> str | None:
    old, new = (_alike(kind, plan) for plan in (before, after))
    return next((other for other in new if other not in old and name in old and new[other] == old[name]), None)


def _alike(allow_key: str, plan: Plan) -> dict[str, object]:
    """Return name → what of a team or a NodePool stays as it is when only its name is another."""
    if allow_key == "teams":
        return {
            team.name: [replace(each, path=()) for each in team.quota_resources]
            for team in plan.teams
            if not team.is_shared_pool
        }
    if allow_key == "nodePools":
        return {pool.spec.name: pool.spec.model_copy(update={"name": ""}) for pool in plan.node_pools}
    return {}
