"""The upgrade steps from running versions: one minor version at a time, with add-ons, then nodes. No side effects.

Sources:
- EKS user guide, "Update existing cluster to new Kubernetes version": one minor version at a time. Add-ons that support
  both versions are updated first.
- Kubernetes, "Version Skew Policy": a kubelet is at most three minor versions behind.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Final

from hpkit.catalog import TASK_GOVERNANCE, addons, eks_versions, find_kubernetes_version, kubernetes_versions
from hpkit.cluster.upgrade.model import Running, Step, UpgradePlan
from hpkit.config.document import Path
from hpkit.errors import SelectionError
from hpkit.plan.model import Plan
from hpkit.text.plural import plural

__all__ = ["plan_upgrade", "versions_between"]

_GUIDE: Final = "https://docs.aws.amazon.com/eks/latest/userguide"
_HYPERPOD: Final = "https://docs.aws.amazon.com/sagemaker/latest/dg"
_AMI_NOTES: Final = f"{_HYPERPOD}/sagemaker-hyperpod-release-ami-eks.html"
_KUBERNETES_NOTES: Final = "https://github.com/kubernetes/kubernetes/blob/master/CHANGELOG/CHANGELOG-{version}.md"
_KUEUE_NOTES: Final = "https://github.com/kubernetes-sigs/kueue/blob/main/CHANGELOG/CHANGELOG-{version}.md"
_SOON_DAYS: Final = 180


def versions_between(current: str, target: str | None, today: datetime.date) -> tuple[str, ...]:
    """Return the minor versions on the way, the target last; empty if nothing newer is requested or offered.

    By default, the target is the newest version that HyperPod offers and EKS supports on that date. Raises
    SelectionError for a target that HyperPod doesn't offer, or that is older than the running version.
    """
    offered = [each for each in kubernetes_versions() if _order(each) > _order(current)]
    if target is None:
        known = {each.version for each in eks_versions() if each.support(today) == "STANDARD_SUPPORT"}
        offered = [each for each in offered if each in known]
        target = max(offered, key=_order, default=current)
    elif target != current and target not in offered:
        there = ", ".join(kubernetes_versions())
        raise SelectionError(
            f"--to {target}: HyperPod offers {there}, and the cluster has {current}; EKS doesn't support downgrades"
        )
    major, first = current.split(".")
    last = target.split(".")[1]
    return tuple(f"{major}.{minor}" for minor in range(int(first) + 1, int(last) + 1))


def plan_upgrade(plan: Plan, running: Running, versions: tuple[str, ...], today: datetime.date) -> UpgradePlan:
    """Return outdated parts and the steps to the last of versions; plan is that of the current stack file."""
    written = _written_versions(plan)
    # For an existing cluster, the stack has at most the task governance add-on.
    versions = () if plan.spec.cluster.existing else versions
    blocked = tuple(_blocked(plan, running))
    steps = list(_through(plan, running, written, versions))
    if not versions:
        steps += _addon_steps(plan, running, written, running.kubernetes)
    is_behind = any(status not in ("", "UpToDate") for _, _, status in running.nodes)
    if versions or (is_behind and not plan.spec.cluster.existing):
        steps.append(_nodes(plan, running, versions))
    notes = tuple(_newest_ends(running.kubernetes, today))
    return UpgradePlan(tuple(_behind(plan, running, today)), tuple(steps), blocked, notes)


def _blocked(plan: Plan, running: Running) -> Iterator[str]:
    if running.kubernetes != plan.spec.eks.version:
        first = "" if plan.spec.eks.existing else f"run `pulumi up --stack {plan.stack}` first, or "
        yield (
            f"the cluster has Kubernetes {running.kubernetes}, but the organization file has "
            f"{plan.spec.eks.version}: {first}set the running version"
        )
    if plan.spec.eks.existing is not None:
        nodes = " and the nodes (cluster.existing): upgrade them" if plan.spec.cluster.existing else ": upgrade it"
        yield (
            f"hpkit doesn't manage the EKS cluster (eks.existing){nodes} with the tool that created it, then set its "
            "version"
        )


def _behind(plan: Plan, running: Running, today: datetime.date) -> Iterator[str]:
    yield from _kubernetes_behind(running.kubernetes, today)
    for name, version in sorted(running.addons.items()):
        offered = running.offered.get((name, running.kubernetes))
        newest = max(offered.versions, key=_order) if offered and offered.versions else version
        if _order(newest) > _order(version):
            behind = f"add-on {name} is {version}; EKS offers {newest} for Kubernetes {running.kubernetes}"
            yield "; ".join((behind, *_held(plan, name, version)))
    for (group, release, status), count in sorted(running.nodes.items()):
        if status not in ("", "UpToDate"):
            yield f"{plural(count, 'node')} of {group} with AMI release {release}: {status}"


def _held(plan: Plan, name: str, running: str) -> Iterator[str]:
    """Yield why no step raises an add-on: its version is not the organization file's."""
    if name in _written_versions(plan):
        return
    planned = next((addon for addon in plan.addons if addon.name == name), None)
    write = f"for another version, set environments.{plan.environment}.addons.{name}.version"
    if planned is None:
        yield "it isn't in the organization file; upgrade it with the tool that installed it"
    elif planned.version is None:
        yield f"EKS chose it at installation: {write}"
    elif planned.version != running:
        yield f"hpkit pins it to {planned.version}, which `pulumi up --stack {plan.stack}` installs: {write}"
    else:
        yield f"hpkit pins it, and a later hpkit upgrades it: {write}"


def _newest_ends(version: str, today: datetime.date) -> Iterator[str]:
    """Yield when the standard support of the newest version ends, if that is soon."""
    release = find_kubernetes_version(version)
    if release is None or version != max(kubernetes_versions(), key=_order):
        return
    days = (release.end_of_standard_support - today).days
    if 0 <= days <= _SOON_DAYS:
        yield (
            f"Kubernetes {version} is the newest that HyperPod offers; its standard support ends on "
            f"{release.end_of_standard_support}, in {days} days"
        )


def _kubernetes_behind(version: str, today: datetime.date) -> Iterator[str]:
    release = find_kubernetes_version(version)
    newest = max(kubernetes_versions(), key=_order)
    if release is None:
        yield f"Kubernetes {version}: the catalog doesn't know when its EKS support ends"
        return
    support = release.support(today)
    if support == "STANDARD_SUPPORT":
        if version != newest:
            days = (release.end_of_standard_support - today).days
            yield (
                f"Kubernetes {version} is in standard support until {release.end_of_standard_support}, for {days} more "
                f"days; HyperPod offers {newest}"
            )
    elif support == "EXTENDED_SUPPORT":
        yield (
            f"Kubernetes {version} left standard support on {release.end_of_standard_support}, and costs more until "
            f"{release.end_of_extended_support}; HyperPod offers {newest}"
        )
    else:
        yield (
            f"Kubernetes {version} has been out of support since {release.end_of_extended_support}; HyperPod offers "
            f"{newest}"
        )


def _through(plan: Plan, running: Running, written: dict[str, str], versions: tuple[str, ...]) -> Iterator[Step]:
    before = running.kubernetes
    for version in versions:
        yield from _addons_first(plan, running, written, before, version)
        yield _kubernetes(plan, running, written, version)
        yield from _addon_steps(plan, running, written, version)
        before = version


def _addons_first(plan: Plan, running: Running, written: dict[str, str], old: str, new: str) -> Iterator[Step]:
    """Yield the step before: add-ons whose version the next Kubernetes has not, raised to one that both have."""
    edits: dict[Path, str] = {}
    for name, version in written.items():
        both = _in_both(running, name, old, new)
        if both and not _offers(running, name, new, version):
            edits[_addon_path(plan, name)] = written[name] = max(both, key=_order)
    if edits:
        names = ", ".join(path[-2] for path in map(_texts, edits))
        yield Step(
            f"Update add-ons that Kubernetes {new} requires in a newer version: {names}",
            f"EKS doesn't offer the current versions for {new}. The new versions also work with {old}.",
            edits,
            (_up(plan),),
            _notes_of_addons(written, edits),
        )


def _kubernetes(plan: Plan, running: Running, written: dict[str, str], version: str) -> Step:
    edits: dict[Path, str] = {("environments", plan.environment, "eks", "version"): version}
    for name, has in written.items():
        offered = running.offered.get((name, version))
        if offered is not None and offered.versions and has not in offered.versions:
            written[name] = offered.default or max(offered.versions, key=_order)
            edits[_addon_path(plan, name)] = written[name]
    return Step(
        f"Kubernetes {version}",
        "The control plane is upgraded first, by one minor version, and stays reachable. Nodes keep their kubelet.",
        edits,
        (f"aws eks list-insights --cluster-name {plan.eks_name} --region {plan.spec.region}", _up(plan)),
        (
            f"{_GUIDE}/kubernetes-versions-standard.html",
            f"{_GUIDE}/update-cluster.html",
            _KUBERNETES_NOTES.format(version=version),
            "https://kubernetes.io/docs/reference/using-api/deprecation-guide/",
        ),
    )


def _addon_steps(plan: Plan, running: Running, written: dict[str, str], version: str) -> Iterator[Step]:
    """Yield the step that updates add-ons with a version in the file to the newest for a Kubernetes version."""
    edits: dict[Path, str] = {}
    for name, current in written.items():
        offered = running.offered.get((name, version))
        newest = max(offered.versions, key=_order) if offered and offered.versions else current
        if _order(newest) > _order(current):
            edits[_addon_path(plan, name)] = written[name] = newest
    if edits:
        names = ", ".join(path[-2] for path in map(_texts, edits))
        why = f"The newest versions that EKS offers for Kubernetes {version}."
        yield Step(f"Add-ons: {names}", why, edits, (_up(plan),), _notes_of_addons(written, edits))


def _nodes(plan: Plan, running: Running, versions: tuple[str, ...]) -> Step:
    behind = sorted({group for group, _, status in running.nodes if status not in ("", "UpToDate")})
    names = [group.spec.name for group in plan.all_groups] if versions else behind
    groups = " ".join(f"InstanceGroupName={name}" for name in names)
    custom = sorted(group.spec.name for group in plan.groups if group.spec.image_id not in (None, "default"))
    why = "An AMI belongs to a Kubernetes version: the new release gives nodes the new kubelet and its fixes."
    if custom:
        why += f" {', '.join(custom)} have a custom AMI (imageId): rebuild it first."
    why += " All nodes of the groups are unavailable at the same time, and the service doesn't drain them."
    return Step(
        "Nodes",
        why,
        commands=(
            f"aws sagemaker update-cluster-software --cluster-name {plan.spec.cluster.name} --instance-groups {groups}",
        ),
        reads=(_AMI_NOTES, f"{_HYPERPOD}/sagemaker-hyperpod-eks-operate-cli-command-update-cluster-software.html"),
    )


def _written_versions(plan: Plan) -> dict[str, str]:
    """Return the versions that the file itself sets; hpkit's pins follow Kubernetes automatically."""
    return {name: addon.version for name, addon in plan.spec.addons.items() if addon.version is not None}


def _in_both(running: Running, name: str, old: str, new: str) -> set[str]:
    lists = [running.offered.get((name, each)) for each in (old, new)]
    return set.intersection(*(set(each.versions) for each in lists if each is not None)) if all(lists) else set()


def _offers(running: Running, name: str, kubernetes: str, version: str) -> bool:
    offered = running.offered.get((name, kubernetes))
    return offered is None or not offered.versions or version in offered.versions


def _addon_path(plan: Plan, name: str) -> Path:
    return ("environments", plan.environment, "addons", name, "version")


def _texts(path: Path) -> list[str]:
    return [str(step) for step in path]


def _up(plan: Plan) -> str:
    return f"pulumi up --stack {plan.stack}"


def _notes_of_addons(written: Mapping[str, str], edits: Mapping[Path, str]) -> tuple[str, ...]:
    notes = [f"{_GUIDE}/managing-add-ons.html"]
    governance = next((each for each in addons() if each.name == TASK_GOVERNANCE), None)
    if governance is not None and any(path[-2] == TASK_GOVERNANCE for path in edits):
        kueue = {each.version: each.kueue for each in governance.versions}.get(written[TASK_GOVERNANCE])
        notes += [_KUEUE_NOTES.format(version=".".join(kueue.split(".")[:2]))] if kueue else []
    return tuple(notes)


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
