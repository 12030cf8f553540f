"""What is known of a cluster's past: its nodes, its Workloads, and the quotas, each with the time that it lasted.

Kubernetes and SageMaker forget: Kueue keeps a Workload as long as its job, and SageMaker lists only nodes that exist.
A history that is read and written regularly keeps what one reading has seen.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeVar

from annotated_types import Len
from pydantic import TypeAdapter

from hpkit.catalog import find_instance_type
from hpkit.cluster.live.model import Observed, team_of
from hpkit.cluster.live.parse import assigned_of, owner_of, project_of, usage_of
from hpkit.errors import InputError
from hpkit.text.formatting import plural

__all__ = [
    "Admissions",
    "History",
    "NodeSpan",
    "QuotaSpan",
    "TaskSpan",
    "losses",
    "merged",
    "observed_history",
    "parse_history",
    "written",
]

_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """An instance of the cluster; times are seconds since 1970, end is None while it exists."""

    instance_id: str
    instance_type: str
    begin: float
    end: float | None = None


@dataclass(frozen=True, slots=True)
class TaskSpan:
    """One admission of a Workload on one instance type.

    instances: how many of them it reserves, even in parts; 0 if that isn't known.
    """

    uid: str
    team: str
    project: str
    job: str
    instance_type: str
    instances: float
    begin: float
    end: float | None = None


_Span = TypeVar("_Span", NodeSpan, TaskSpan)


@dataclass(frozen=True, slots=True)
class QuotaSpan:
    """A team's nominal quota of an instance type, in instances, from a time until the next one of both."""

    team: str
    instance_type: str
    instances: float
    begin: float


@dataclass(frozen=True, slots=True)
class History:
    """All that is known. read: when the cluster was read, in order; notes: what these readings couldn't see."""

    read: tuple[float, ...] = ()
    nodes: tuple[NodeSpan, ...] = ()
    tasks: tuple[TaskSpan, ...] = ()
    quotas: tuple[QuotaSpan, ...] = ()
    notes: tuple[str, ...] = ()


class Admissions:
    """The admissions of the Workloads that `add` gets one by one, so that they needn't all be in memory."""

    def __init__(self) -> None:
        self.spans: list[TaskSpan] = []
        self._evicted = 0

    def add(self, workload: Mapping[str, Any]) -> None:
        """Add a Workload's current or last admission, on each instance type."""
        metadata, status = workload["metadata"], workload.get("status") or {}
        conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
        self._evicted += "Evicted" in conditions
        begin = _true_since(conditions.get("Admitted"))
        if begin is None:
            return
        end = _true_since(conditions.get("Finished"))
        team, project = team_of(metadata["namespace"]), project_of(workload["spec"]["podSets"])
        job = "/".join(owner_of(metadata))
        for flavor, instances in _reserved(assigned_of(status.get("admission") or {})):
            self.spans.append(TaskSpan(metadata["uid"], team, project, job, flavor, instances, begin, end))

    def notes(self) -> Iterator[str]:
        """Yield what isn't counted."""
        if self._evicted:
            yield (
                f"{plural(self._evicted, 'Workload')} had evictions; Kueue keeps only the last admission of each, so "
                "earlier ones aren't counted unless a history has them"
            )


def _true_since(condition: Mapping[str, Any] | None) -> float | None:
    """Return since when a condition is true, None if it isn't."""
    if condition is None or condition["status"] != "True" or not condition.get("lastTransitionTime"):
        return None
    return datetime.fromisoformat(condition["lastTransitionTime"]).timestamp()


def observed_history(observed: Observed, admissions: Admissions) -> History:
    """Return what a cluster tells now about its past."""
    notes: list[str] = []
    now = observed.time.timestamp()
    listed = () if observed.platform is None else observed.platform.nodes
    nodes = tuple(
        NodeSpan(node.instance_id, node.instance_type, node.launched.timestamp())
        for node in listed
        if node.launched is not None
    )
    if len(nodes) < len(listed):
        notes.append(f"SageMaker gives no launch time for {len(listed) - len(nodes)} nodes; they aren't counted")
    quotas = tuple(_quotas(observed, now))
    return History((now,), nodes, tuple(admissions.spans), quotas, (*notes, *admissions.notes()))


def _quotas(observed: Observed, now: float) -> Iterator[QuotaSpan]:
    for queue in observed.queues:
        if queue.team is not None:
            nominal = {key: quota.nominal for key, quota in queue.quotas.items()}
            for flavor in dict.fromkeys(flavor for flavor, _ in nominal):
                yield QuotaSpan(queue.team, flavor, _instances(flavor, nominal), now)


@lru_cache(maxsize=10_000)
def _reserved(assigned: tuple[tuple[str, str, str], ...]) -> tuple[tuple[str, float], ...]:
    """Return how many instances of each flavor were assigned; many Workloads have the same."""
    usage = usage_of(assigned)
    return tuple((flavor, _instances(flavor, usage)) for flavor in dict.fromkeys(flavor for flavor, _ in usage))


def _instances(flavor: str, amounts: Mapping[tuple[str, str], Decimal]) -> float:
    """Return amounts of a flavor in instances; HyperPod names flavors after instance types."""
    return _of_type(flavor, tuple((resource, value) for (name, resource), value in amounts.items() if name == flavor))


@lru_cache(maxsize=10_000)
def _of_type(instance_type: str, amounts: tuple[tuple[str, Decimal], ...]) -> float:
    """Return amounts in instances: by accelerators if the type has any, otherwise by vCPUs. Unknown types are 0."""
    return round(float(_exactly(instance_type, amounts)), _DIGITS)


def _exactly(instance_type: str, amounts: tuple[tuple[str, Decimal], ...]) -> Fraction:
    details = find_instance_type(instance_type)
    if details is None:
        return Fraction(0)
    own = {resource: Fraction(value) for resource, value in amounts}
    if not details.accelerators:
        return own.get("cpu", Fraction(0)) / details.vcpu if details.vcpu else Fraction(0)
    instances = max(
        (own[name] / count for name, count in details.device_resources.items() if count and name in own),
        default=Fraction(0),
    )
    for profile in details.mig_profiles or ():
        partitions = own.get(f"nvidia.com/{profile.name}", Fraction(0))
        instances += partitions * profile.slices / details.mig_slices_per_accelerator / details.accelerators
    return instances


def merged(old: History, new: History) -> History:
    """Return a history with a later reading. What the later one lacks ended when the earlier ones saw it last."""
    last = max(old.read, default=0.0)
    nodes = _continued(old.nodes, new.nodes, lambda span: span.instance_id, last)
    tasks = _continued(old.tasks, new.tasks, _key, last)
    quotas = list(old.quotas)
    current = {(span.team, span.instance_type): span.instances for span in sorted(old.quotas, key=_begin)}
    later = {(span.team, span.instance_type): span.instances for span in new.quotas}
    for (team, instance_type), instances in {**dict.fromkeys(current, 0.0), **later}.items():
        if current.get((team, instance_type)) != instances:
            quotas.append(QuotaSpan(team, instance_type, instances, new.read[0]))
    return History(tuple(sorted((*old.read, *new.read))), nodes, tasks, tuple(sorted(quotas, key=_begin)), new.notes)


def _continued(
    old: Iterable[_Span], new: Iterable[_Span], key: Callable[[_Span], Any], last: float
) -> tuple[_Span, ...]:
    """Return the spans of two readings; what ended in between ended at the last time of the earlier one."""
    spans, later = {key(span): span for span in old}, {key(span): span for span in new}
    ended = [span for span in spans.values() if span.end is None and key(span) not in later]
    spans |= {key(span): replace(span, end=max(last, span.begin)) for span in ended}
    return tuple((spans | later).values())


def _key(span: TaskSpan) -> tuple[str, str, float]:
    return span.uid, span.instance_type, span.begin


def _begin(span: QuotaSpan) -> float:
    return span.begin


def losses(history: History, begin: float) -> Iterator[str]:
    """Yield what isn't counted since a time, or only in part, although it was seen."""
    unmeasured = {span.uid: span.job for span in history.tasks if not span.instances and _lasts(span, begin)}
    if unmeasured:
        yield (
            f"{plural(len(unmeasured), 'Workload')}, such as {min(unmeasured.values())}: their use of a type counts as "
            "0, because they request none of its accelerators, or because hpkit doesn't know the type"
        )
    read = set(history.read)
    nodes = sum(span.end is not None and _lasts(span, begin) for span in history.nodes)
    # The other ends are those of Finished conditions.
    unseen = (span for span in history.tasks if span.end is not None and (span.end in read or span.end == span.begin))
    tasks = len({(span.uid, span.begin) for span in unseen if _lasts(span, begin)})
    if nodes or tasks:
        yield (
            f"{plural(nodes, 'node')} and {plural(tasks, 'admission')} ended between two readings; they are counted "
            "until the reading that saw them last"
        )


def _lasts(span: NodeSpan | TaskSpan, begin: float) -> bool:
    return span.end is None or span.end >= begin


def written(history: History, *, stack: str) -> Iterator[str]:
    """Yield the lines of a history file: stack and number of lines, then each reading, node, admission and quota."""
    spans: tuple[tuple[str, Sequence[Any]], ...] = (
        ("node", history.nodes),
        ("task", history.tasks),
        ("quota", history.quotas),
    )
    lines = len(history.read) + sum(len(objects) for _, objects in spans)
    yield _line("history", _Head(stack, lines))
    for moment in history.read:
        yield _line("read", moment)
    for kind, objects in spans:
        for span in objects:
            yield _line(kind, span)


def _line(kind: str, value: Any) -> str:
    return _LINES[kind].dump_json({kind: value}).decode()


def parse_history(lines: Iterable[str], *, stack: str, file: str) -> History:
    """Return the history in a file's lines.

    Raises InputError with the line that isn't part of one, for another stack's history, and for a truncated file.
    """
    parsed: dict[str, list[Any]] = {kind: [] for kind in _LINES}
    number = 0
    for number, line in enumerate(lines, 1):
        try:
            kind = line.split('"', 2)[1]
            parsed[kind] += _LINES[kind].validate_json(line).values()
            (head,) = parsed["history"]
        except (ValueError, LookupError):
            raise InputError(
                f"{file}:{number}:1 isn't a line of a usage history. Name a file that `hpkit cluster usage --history` "
                "wrote, or a new file"
            ) from None
        if head.stack != stack:
            raise InputError(f"{file}:1:1 is the history of {head.stack}, not of {stack}. Name another file")
    if not number or head.lines != number - 1:
        raise InputError(f"{file} is cut off: it has {number} lines. Restore a copy, or name a new file")
    return History(
        tuple(sorted(parsed["read"])),
        tuple(parsed["node"]),
        tuple(parsed["task"]),
        tuple(sorted(parsed["quota"], key=_begin)),
    )


@dataclass(frozen=True, slots=True)
class _Head:
    """The first line of a history file: whose it is, and how many lines follow."""

    stack: str
    lines: int


# A line of each kind: an object with one key. pydantic's own reader takes a third of the time of json's.
_LINES: Final[Mapping[str, TypeAdapter[Any]]] = {
    "history": TypeAdapter(Annotated[dict[Literal["history"], _Head], Len(1, 1)]),
    "read": TypeAdapter(Annotated[dict[Literal["read"], float], Len(1, 1)]),
    "node": TypeAdapter(Annotated[dict[Literal["node"], NodeSpan], Len(1, 1)]),
    "task": TypeAdapter(Annotated[dict[Literal["task"], TaskSpan], Len(1, 1)]),
    "quota": TypeAdapter(Annotated[dict[Literal["quota"], QuotaSpan], Len(1, 1)]),
}
