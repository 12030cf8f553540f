"""What a guard says of a change: refused, or allowed because the file names it; and allowances that nothing needs.

The engine's guards are ChangeGuard, the Cluster of the hyperpod plugin, and `protect`; this is their twin without an
engine. Sources: UpdateCluster of the SageMaker API, Amazon EKS user guide (VPC requirements, cluster versions).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hpkit.change.recorded import Recorded, RecordedResource
from hpkit.change.steps import Cause, Step

__all__ = ["CLUSTER", "EKS", "PRECIOUS", "Judgement", "deletion_fix", "judged_resources", "roots", "said"]

CLUSTER: Final = "hyperpod:index:Cluster"
EKS: Final = "aws:eks/cluster:Cluster"
VPC: Final = "aws:ec2/vpc:Vpc"
# What is lost for good with a resource, by what allowReplace calls it.
PRECIOUS: Final = {
    VPC: "vpc",
    EKS: "eks",
    CLUSTER: "cluster",
    "aws:s3/bucket:Bucket": "bucket",
    "aws:kms/key:Key": "key",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "fileSystem",
    "aws:amp/workspace:Workspace": "prometheus",
    "aws:grafana/workspace:Workspace": "grafana",
}
_NAMES: Final = {
    "vpc": "the VPC",
    "eks": "the EKS cluster",
    "cluster": "the HyperPod cluster",
    "bucket": "the bucket of lifecycle scripts",
    "key": "the key of Kubernetes secrets and control-plane logs",
    "fileSystem": "the FSx for Lustre file system",
    "prometheus": "the workspace of Managed Prometheus",
    "grafana": "the workspace of Managed Grafana",
}
_WITH_IT: Final = {
    "vpc": "everything in it",
    "eks": "everything in it",
    "bucket": "every version of every object in it",
    "key": "the means to read what it encrypted",
    "fileSystem": "every file on it",
    "prometheus": "every metric kept in it",
    "grafana": "every dashboard made in it",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """One thing that the guards have something to say about.

    code: what kind of thing, for tools; key: how an allowance names it, empty where there is none; subject: resource or
    group; reason: what happens and why, one sentence; fix: what to do; refused: whether the run ends here.
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


def judged_resources(before: Recorded, after: Recorded, steps: Sequence[Step]) -> Iterator[Judgement]:
    """Yield what is said of precious resources that are replaced or deleted."""
    found: dict[str, tuple[str, list[str]]] = {}
    for step in steps:
        if step.lost and step.type in PRECIOUS:
            found[PRECIOUS[step.type]] = (step.action, roots(step, steps) or _taken_over(PRECIOUS[step.type], after))
    moved = _moved(before, after, steps)
    if moved and "eks" not in found and any(each.type == EKS for each in after.resources.values()):
        found["eks"] = ("replace", [f"it cannot leave the VPC that it was made in: {moved}"])
    held = {PRECIOUS[each.type]: each.urn in after.resources for each in _protected(before, after, steps)}
    for key in sorted(found, key=list(PRECIOUS.values()).index):
        action, causes = found[key]
        yield _judge(key, action, causes, before, after, held.get(key))


def _moved(before: Recorded, after: Recorded, steps: Sequence[Step]) -> str:
    """Return how the VPC becomes another one; empty where it stays."""
    sides = [side.plan.spec.network.existing for side in (before, after)]
    old, new = (side.vpc_id if side else "the kit's own" for side in sides)
    if old != new:
        return f"{old} → {new}"
    return "; ".join(cause for step in steps if step.lost and step.type == VPC for cause in roots(step, steps))


def _taken_over(key: str, after: Recorded) -> list[str]:
    """Return what stands in for a deleted one, where the file names one that is there already."""
    network, eks = after.plan.spec.network.existing, after.plan.spec.eks.existing
    names = {"vpc": network.vpc_id if network else "", "eks": eks.name if eks else ""}
    return [f"the kit's own → {names[key]}"] if names.get(key) else []


def _protected(before: Recorded, after: Recorded, steps: Sequence[Step]) -> Iterator[RecordedResource]:
    """Yield what the engine itself does not let go: it is protected in the state, and stays so."""
    for step in steps:
        if step.lost and step.type in PRECIOUS and before.resources[step.urn].protect:
            stays = after.resources.get(step.urn)
            if stays is None or stays.protect:
                yield before.resources[step.urn]


def _judge(
    key: str, action: str, causes: Sequence[str], before: Recorded, after: Recorded, held: bool | None
) -> Judgement:
    """Return what is said; held: protected on both sides, or (false) until it goes; None: not."""
    named = key in after.plan.spec.allow_replace
    name = f"{_NAMES[key]} {before.plan.spec.cluster.name}" if key == "cluster" else _NAMES[key]
    why = f" ({'; '.join(causes)})" if causes else ""
    reason = f"{name} will be {action}d, and {_with_it(key, before)} with it{why}"
    lift = "`protect: false`" if held else "the allowance alone"
    if not named:
        fix = f"the preview fails unless allowReplace names {key}"
    elif held is not None:
        fix = f"the preview fails, since it is protected: write {lift}, run `pulumi up`, then make the change"
    else:
        fix = f"allowReplace names {key}, so it will be done"
    return Judgement(f"{action}-{key}", key, key, reason, fix, refused=not named or held is not None)


def _with_it(key: str, before: Recorded) -> str:
    if key != "cluster":
        return _WITH_IT[key]
    groups = [
        f"Karpenter's of {group.spec.name}" if group.autoscaled else f"{group.spec.instance_count} × {kind}"
        for group in sorted(before.plan.groups, key=lambda group: group.autoscaled)
        if (kind := "/".join(group.spec.types)) and (group.autoscaled or group.spec.instance_count)
    ]
    teams = [team.name for team in before.plan.teams]
    queues = f" and the queues of {_listing(teams)}" if teams else ""
    return f"its nodes ({_listing(groups)}), what runs on them{queues}"


def _listing(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def deletion_fix(kind: str, name: str, *, named: bool) -> str:
    """Return what is said of something that only `allowDelete` lets go, by its key there and its name."""
    remedy = f"`allowDelete: {{{kind}: [{name}]}}`"
    return f"allowed by {remedy}" if named else f"the preview fails unless the environment says {remedy}"


def roots(step: Step, steps: Sequence[Step]) -> list[str]:
    """Return where a replacement begins: the properties that a person changed, however far away."""
    by_urn = {each.urn: each for each in steps}
    found: dict[str, None] = {}
    seen: set[str] = set()
    todo = [step]
    while todo:
        here = todo.pop(0)
        if here.urn in seen:
            continue
        seen.add(here.urn)
        for cause in here.causes:
            if not cause.because and cause.replaces:
                found[("" if here is step else f"{_name(here)}: ") + said(cause)] = None
            todo += [by_urn[urn] for urn in cause.because if cause.replaces and urn in by_urn]
    # Another region is another everything: what follows from it is no cause of its own.
    provider = [each for each in found if each.startswith("provider ")]
    return (provider or list(found))[:3]


def _name(step: Step) -> str:
    if step.type.startswith("pulumi:providers:"):
        return f"provider {step.name}"
    kind = step.type.rpartition(":")[2]
    return kind if kind.lower() == step.name.lower() else f"{kind} {step.name}"


def said(cause: Cause) -> str:
    """Return a difference in words: `cidrBlock 10.1.0.0/16 → 10.2.0.0/16`."""
    if not cause.path:
        return "its provider is another"
    if cause.because:
        return f"{cause.path} known only later"
    before, after = _short(cause.before), _short(cause.after)
    return f"{cause.path} {before} → {after}" if len(before) + len(after) <= 120 else cause.path


def _short(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value) or "none"
    if isinstance(value, dict):
        return "…"
    return "unset" if value is None else str(value)
