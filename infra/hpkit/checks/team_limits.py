"""TEA: what `teamLimits` may open for the work of members."""

import re
from collections.abc import Iterator
from fractions import Fraction

from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.document import Path
from hpkit.config.team_limits import TeamLimits
from hpkit.plan.capacity import quantity
from hpkit.plan.team_limits import LONGEST_GRACE, MORE_VOLUMES, NOT_READY, VOLUMES, is_reserved_taint

__all__ = ["RULES"]

_TAINTS = "Kubernetes, taints and tolerations; SageMaker developer guide, HyperPod node health"
_VOLUMES = "Kubernetes, volumes; Pod Security Standards"
_GRACE = "Kubernetes, pod lifecycle: termination; Kueue, preemption"
_REQUESTS = "Kubernetes, limit ranges; Kueue, workload: resource requests"
# As the API server validates a toleration's key: a qualified name (Kubernetes, labels: syntax and character set).
_KEY = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")


def _grace(context: Context) -> Iterator[Issue]:
    limits, path = _stated(context)
    seconds = limits.termination_grace_period_seconds
    if not 0 <= seconds <= LONGEST_GRACE:
        yield Issue(
            (*path, "terminationGracePeriodSeconds"),
            f"`terminationGracePeriodSeconds` is {seconds}; the limit is 0–{LONGEST_GRACE} (one day), because Kueue "
            "frees the quota before the pods stop",
            f"Set a number from 0 to {LONGEST_GRACE}, or remove the key for the default of 600.",
        )


def _tolerations(context: Context) -> Iterator[Issue]:
    limits, path = _stated(context)
    for index, key in enumerate(limits.tolerations):
        place: Path = (*path, "tolerations", index)
        if not _KEY.match(key):
            yield Issue(place, f"{key!r} isn't a valid taint key", "Use the key of a taint, such as `team/reserved`.")
        elif is_reserved_taint(key):
            why = (
                "pods already tolerate it for a limited time"
                if key in NOT_READY
                else "it keeps work off nodes that are faulty, under test, or being removed"
            )
            yield Issue(place, f"team members' pods must not tolerate {key}: {why}", "Remove the key.")


def _volumes(context: Context) -> Iterator[Issue]:
    limits, path = _stated(context)
    for index, name in enumerate(limits.volumes):
        place: Path = (*path, "volumes", index)
        if name in VOLUMES:
            yield Issue(place, f"pods may already use volumes of type {name}", "Remove the entry.")
        elif name not in MORE_VOLUMES:
            why = (
                "it exposes the node's files to the pod"
                if name == "hostPath"
                else f"only {' and '.join(MORE_VOLUMES)} can be added"
            )
            yield Issue(
                place,
                f"team members' pods must not use volumes of type {name}: {why}",
                "Remove the entry, and give the team a PersistentVolume and a claim instead.",
            )


def _requests(context: Context) -> Iterator[Issue]:
    limits, path = _stated(context)
    least = {"cpu": Fraction(1, 1000), "memory": Fraction(1024**2)}
    for name, amount in limits.default_requests.model_dump().items():
        if quantity(amount) < least[name]:
            yield Issue(
                (*path, "defaultRequests", name),
                f"`{name}` is {amount}; the minimum is {'1m' if name == 'cpu' else '1Mi'}, or Kueue doesn't count "
                "pods whose containers don't request any",
                f"Set at least {'1m' if name == 'cpu' else '1Mi'}.",
            )


def _stated(context: Context) -> tuple[TeamLimits, Path]:
    governance = context.spec.governance
    limits = governance.team_limits if governance is not None else TeamLimits()
    return limits, (*context.path, "governance", "teamLimits")


RULES = (
    Rule("TEA005", "error", "Team members' pods stop within a day.", _GRACE, _grace, waivable=False),
    Rule("TEA006", "error", "Team members' pods don't tolerate taints of faulty or departing nodes.", _TAINTS,
         _tolerations, waivable=False),
    Rule("TEA007", "error", "Team members' pods can't mount files of the node.", _VOLUMES, _volumes, waivable=False),
    Rule("TEA008", "error", "Containers without requests count toward quota.", _REQUESTS, _requests, waivable=False),
)  # fmt: skip
