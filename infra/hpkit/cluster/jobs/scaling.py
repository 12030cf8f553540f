"""How many pods a job can have beyond those in its manifest: autoscalers and rollouts, compared with the quota."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from hpkit.cluster.jobs.fits import fit
from hpkit.cluster.jobs.kinds import Path, PodTemplate, Unit, is_paused, templates, units
from hpkit.cluster.jobs.limits import Breach, Severity
from hpkit.cluster.jobs.resources import pod_sets_of
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.pods import mapping
from hpkit.plan.team_limits import SCALABLE

if TYPE_CHECKING:
    from hpkit.cluster.jobs.server import Server

__all__ = ["breaches_of_autoscaler", "breaches_of_rollout", "deleted_first", "most_of"]

# Kind → its fields for the lowest and the highest number of pods, with their defaults.
_BOUNDS: Final = {
    "HorizontalPodAutoscaler": (("minReplicas", 1), ("maxReplicas", 1)),
    "ScaledObject": (("minReplicaCount", 0), ("maxReplicaCount", 100)),
}


def most_of(plan: Plan, team: TeamPlan, pods: PodTemplate, count: int) -> int:
    """Return how many of a number of a Deployment's pods can run on an idle platform."""
    result = fit(plan, team, pod_sets_of([replace(pods, count=count)], plan))
    return result.most if result.kind == "never" and not result.closed else count


def breaches_of_autoscaler(
    document: Mapping[Any, Any], others: Sequence[Any], plan: Plan, team: TeamPlan | None, server: Server | None
) -> Iterator[Breach]:
    """Yield the problems of an autoscaler, whose Deployment is one of the other documents, or already runs."""
    kind = str(document.get("kind"))
    if kind not in _BOUNDS:
        return
    spec = mapping(document.get("spec"))
    target = mapping(spec.get("scaleTargetRef"))
    scaled = target.get("kind", SCALABLE)
    if scaled != SCALABLE:
        yield Breach(
            ("spec", "scaleTargetRef", "kind"),
            f"it scales a {scaled}: Kueue doesn't count the pods that are added to a running {scaled}",
            f"Scale a {SCALABLE}, or remove the {kind} and set the number of pods in the {scaled}",
            "autoscaler",
        )
    name = target.get("name")
    if team is None or not team.quota_resources or scaled != SCALABLE or not name:
        return
    pods, running = _pods_of(others, name, document.get("metadata")), None
    if pods is None and server is not None:
        running = server.deployment(team, str(name))
        pods = _pods_of([running], name, {"namespace": team.namespace})
    if pods is None:
        if running == {}:
            nowhere = f"neither a file here nor {team.namespace} has the {SCALABLE} {name}"
            message = f"{nowhere}: until it exists, nothing is scaled"
            fix = f"Create the {SCALABLE}, or correct the name"
        else:
            message = f"no file here has the {SCALABLE} {name}, so its pods aren't compared with the quota"
            fix = f"Check it together with the {SCALABLE}, or use --live as a member of {team.name}"
        yield Breach(("spec", "scaleTargetRef"), message, fix, "autoscaler", "warning")
        return
    words: tuple[tuple[str, Severity], ...] = (("keeps at least", "error"), ("can add up to", "warning"))
    for (field, default), (verb, severity) in zip(_BOUNDS[kind], words, strict=True):
        count = spec.get(field, default)
        most = most_of(plan, team, pods, count) if isinstance(count, int) and count > 0 else count
        if most != count:
            yield Breach(
                ("spec", field),
                f"it {verb} {count} pods, but the quota and borrow limit of {team.name} allow {most}; the others wait "
                "without end",
                f"Set {field} to at most {most}, or raise the quota of {team.name}",
                "autoscaler",
                severity,
            )
            return


def _pods_of(others: Sequence[Any], name: object, near: Any) -> PodTemplate | None:
    for document in others:
        for unit in units(document) if isinstance(document, Mapping) else ():
            mine, there = mapping(unit.content.get("metadata")), mapping(near).get("namespace")
            if unit.kind == SCALABLE and mine.get("name") == name and mine.get("namespace") == there:
                return next(templates(unit), None)
    return None


def breaches_of_scale(unit: Unit) -> Iterator[Breach]:
    """Yield why an object creates no pods: a paused rollout, or a Job without parallelism."""
    if is_paused(unit):
        message = "its rollout is paused, so Kubernetes creates no pods of this version"
        yield Breach(("spec", "paused"), message, "Remove `paused`", "rollout", "warning")
    elif unit.kind == "Job" and not any(pods.count for pods in templates(unit)):
        message = "its `parallelism` or `completions` is 0, so nothing runs"
        fix = "Set `parallelism` and `completions` to at least 1"
        yield Breach(("spec", "parallelism"), message, fix, "parallelism", "warning")


def breaches_of_rollout(spec: Mapping[Any, Any], pods: PodTemplate, plan: Plan, team: TeamPlan) -> Iterator[Breach]:
    """Yield the problem of a Deployment whose next version needs pods for which there is no quota.

    Source: Kubernetes, Deployments: by default, 25% more pods, rounded up, and 25% fewer, rounded down.
    """
    if deleted_first(spec, pods.count) or not pods.count:
        return
    if most_of(plan, team, pods, pods.count + 1) == pods.count:
        path: Path = ("spec", "strategy") if spec.get("strategy") else ("spec",)
        yield Breach(
            path,
            f"a new version needs one pod more than its {pods.count}, for which the quota and borrow limit of "
            f"{team.name} have no capacity: the rollout would never end",
            "Set `strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}`",
            "rollout",
            "warning",
        )


def deleted_first(spec: Mapping[Any, Any], count: int) -> int:
    """Return how many of a Deployment's pods a rollout deletes before new ones are ready.

    If both bounds round to 0, it deletes one (Kubernetes, ResolveFenceposts).
    """
    strategy = mapping(spec.get("strategy"))
    if strategy.get("type") == "Recreate":
        return count
    rolling = mapping(strategy.get("rollingUpdate"))
    surge, unavailable = (_of(rolling.get(key, "25%"), count) for key in ("maxSurge", "maxUnavailable"))
    return math.floor(unavailable) if unavailable >= 1 or surge > 0 else 1


def _of(bound: Any, count: int) -> Fraction:
    number = str(bound).removesuffix("%")
    if not number.isdecimal():
        return Fraction(0)
    return Fraction(int(number) * count, 100) if str(bound).endswith("%") else Fraction(int(number))
