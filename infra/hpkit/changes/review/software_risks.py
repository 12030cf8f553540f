"""Risks in the platform's software: Kubernetes, add-ons, parts of the dependencies chart, and their values.

hpkit.changes reports removed add-ons. Sources: values.yaml of the chart and of its parts, whose defaults apply to
omitted values; Kubernetes documentation, device plugins; SageMaker developer guide, upgrading task
governance.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hpkit.catalog import TASK_GOVERNANCE, cluster_hour, dependencies_chart
from hpkit.catalog.prices import HOURS_PER_MONTH
from hpkit.changes import is_plain, value_text
from hpkit.changes.review.formatting import money
from hpkit.changes.review.model import Risk
from hpkit.plan.dependencies import takes_over
from hpkit.plan.model import Plan

__all__ = ["software_risks"]

# What data scientists lose.
_WITHOUT: Final = {
    "health-monitoring-agent": "failed nodes are no longer detected, so none is rebooted or replaced",
    "nvidia-device-plugin": "nodes offer no nvidia.com/gpu, and pods that request it aren't scheduled",
    "aws-efa-k8s-device-plugin": "nodes offer no vpc.amazonaws.com/efa, and pods that request it aren't scheduled",
    "neuron-device-plugin": "nodes offer no aws.amazon.com/neuron, and pods that request it aren't scheduled",
    "mpi-operator": "MPIJobs are accepted, but nothing runs them",
    "training-operators": "PyTorchJobs and the other Kubeflow jobs are accepted, but nothing runs them",
}
# Versions of the task governance add-on by how they store cohorts (developer guide, troubleshooting its upgrade).
_STORES_OLD_COHORTS = ("v1.0.", "v1.1.", "v1.2.", "v1.3.")
_READS_OLD_COHORTS = (*_STORES_OLD_COHORTS, "v1.4.")
_DEFAULT: Final = "its own default"


def software_risks(before: Plan, after: Plan) -> Iterator[Risk]:
    """Yield what to watch in Kubernetes, and in charts and add-ons that exist before and after."""
    yield from _versions(before, after)
    yield from _support(before, after)
    yield from _addons(before, after)
    if before.dependencies is not None and after.dependencies is not None:
        registries = [plan.spec.cluster.dependencies.image_registry for plan in (before, after)]
        was, now = (dict(_leaves(each.values)) for each in (before.dependencies, after.dependencies))
        if registries[0] != registries[1]:
            yield _registry(*registries)
            was, now = (_of_elsewhere(*side) for side in zip((was, now), registries, strict=True))
        yield from _chart(was, now)
    new = {addon.name: addon for addon in after.addons}
    for name in sorted(new.keys() - {addon.name for addon in before.addons}):
        if (effect := takes_over(after.spec, name)) is not None:
            yield Risk("addon-version", "attention", name, f"the add-on {name} is created: {effect}")
    for addon in before.addons:
        if addon.name in new:
            yield from _older_version(addon.name, addon.version, new[addon.name].version)
            was, now = (dict(_leaves(side.configuration)) for side in (addon, new[addon.name]))
            yield from _values(f"the add-on {addon.name}", addon.name, was, now)


def _older_version(name: str, before: str | None, after: str | None) -> Iterator[Risk]:
    """Yield an add-on that is downgraded; if EKS chooses the version, this isn't known."""
    old, new = ([int(part) for part in re.findall(r"\d+", version or "")] for version in (before, after))
    if old and new and new < old:
        means = "the older version might not support changes that the newer one made in the cluster"
        yield Risk("addon-version", "attention", name, f"the add-on {name} goes back {before} → {after}: {means}")


def _registry(before: str | None, after: str | None) -> Risk:
    old, new = (each or "the chart's own registries" for each in (before, after))
    means = "parts whose image is missing there don't start on new nodes; `hpkit aws images` lists the images"
    return Risk(
        "configuration",
        "attention",
        "dependencies",
        f"images of the dependencies chart come from {new} instead of {old}: {means}",
    )


def _of_elsewhere(values: Mapping[str, Any], registry: str | None) -> dict[str, Any]:
    """Return the values without the names of images in a registry."""
    return {key: each for key, each in values.items() if registry is None or not str(each).startswith(registry)}


def _chart(was: dict[str, Any], now: dict[str, Any]) -> Iterator[Risk]:
    # A part that is on by default is turned off only by false; one that is also an EKS add-on is turned on only by
    # true.
    switches = {each.switch: (each.subchart, False) for each in dependencies_chart().images}
    switches |= {each.switch: (each.addon, True) for each in dependencies_chart().alternatives}
    for switch, (part, asked) in switches.items():
        on = [
            (side.pop(switch, None) is True) if asked else (side.pop(switch, None) is not False) for side in (was, now)
        ]
        if on == [True, False]:
            means = _WITHOUT.get(part, "its resources are deleted")
            message = f"{part} is removed from the dependencies chart ({switch} false): {means}"
            yield Risk("dependency-removed", "attention", part, message)
    yield from _values("the dependencies chart", "dependencies", was, now)


def _values(owner: str, subject: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Risk]:
    for key in sorted(was.keys() | now.keys()):
        old, new = (value_text(side[key]) if key in side else _DEFAULT for side in (was, now))
        if old != new:
            part = key.removesuffix(".enabled")
            message = f"{part} of {owner} is switched off" if part != key and new == "false" else ""
            change = f"{old} → {new}" if is_plain(key, old, new) else "changes"
            said = message or f"{key} of {owner} {change}: its behavior may change"
            yield Risk("configuration", "attention", subject, said)


def _leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value with its path, as the documentation of charts writes it."""
    for key, value in values.items():
        path = f"{above}.{key}" if above else key
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, path)
        else:
            yield path, value


def _addons(before: Plan, after: Plan) -> Iterator[Risk]:
    old, new = ({addon.name: addon.version for addon in plan.addons}.get(TASK_GOVERNANCE) for plan in (before, after))
    if old and new and old.startswith(_STORES_OLD_COHORTS) and not new.startswith(_READS_OLD_COHORTS):
        yield Risk(
            "addon-migration",
            "attention",
            TASK_GOVERNANCE,
            f"task governance {old} → {new}: the update fails while cohorts are stored as v1alpha1. Migrate them "
            "before you deploy this (developer guide, upgrading task governance)",
        )
    if old != new and None not in (old, new) and after.gang_scheduling is not None:
        means = "the update resets Kueue's configuration, and hpkit applies its own settings again; others are lost"
        yield Risk("addon-version", "attention", TASK_GOVERNANCE, f"task governance {old} → {new}: {means}")


def _versions(before: Plan, after: Plan) -> Iterator[Risk]:
    """Yield an upgrade that EKS accepts; rejected ones are among the guards' decisions."""
    old, new = before.spec.eks.version, after.spec.eks.version
    if before.spec.eks.existing or after.spec.eks.existing:
        return
    minors = [_minor(old), _minor(new)]
    if minors[0] is not None and minors[1] == minors[0] + 1:
        change = f"Kubernetes {old} → {new}"
        nodes = "nodes keep their software until `aws sagemaker update-cluster-software`"
        yield Risk("version", "attention", "eks", f"{change}: can't be undone; {nodes}")


def _support(before: Plan, after: Plan) -> Iterator[Risk]:
    old, new = before.spec.eks, after.spec.eks
    if old.existing or new.existing or old.support_type == new.support_type:
        return
    hour = cluster_hour(after.spec.region)
    if new.support_type == "EXTENDED":
        extra_cost = money((hour.extended - hour.standard) * HOURS_PER_MONTH)
        means = (
            "when standard support of its version ends, EKS no longer upgrades the cluster by itself. It then costs "
            f"${hour.extended} an hour instead of ${hour.standard}, {extra_cost} a month more"
        )
    else:
        means = "when standard support of its version ends, EKS upgrades the cluster by itself"
    yield Risk("version", "attention", "eks", f"supportType {old.support_type} → {new.support_type}: {means}")


def _minor(version: str) -> int | None:
    major, _, minor = version.partition(".")
    return int(minor) if major == "1" and minor.isdecimal() else None
