"""Runs probes: creates objects, waits for their pods with a time limit, and deletes everything, even on Ctrl-C."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kubernetes.client import ApiException

from hpkit.cluster.check.probes import NAME, NAMESPACE, SERVICE, Probe, Status
from hpkit.cluster.live.kubernetes import CONFLICT, NOT_FOUND, Kubernetes, message_of
from hpkit.errors import ToolError
from hpkit.plan.pods import mapping, mappings

__all__ = ["Result", "cleared", "run"]

_NAMESPACES: Final = "/api/v1/namespaces"
_PAUSE_SECONDS: Final = 1.0
_DELETE_SECONDS: Final = 120.0
_NAMESPACE_SECONDS: Final = 30.0
_WITH_PODS: Final = {"propagationPolicy": "Foreground"}
Document = Mapping[str, Any]


class Clock(Protocol):
    """The functions of `time` that waiting needs."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    def sleep(self, seconds: float, /) -> None:
        """Wait for some seconds."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a probe, and how long it took."""

    probe: Probe
    status: Status
    seconds: float
    detail: str


@contextmanager
def cleared(api: Kubernetes, *, clock: Clock, say: Callable[[str], None]) -> Iterator[list[str]]:
    """Create the namespace of the probes, and delete it in the end, with all objects at the yielded paths.

    The namespace is also a lock. Raises ToolError if it exists, or if it couldn't be deleted.
    """
    made: list[str] = []
    is_mine = True
    try:
        try:
            api.create(_NAMESPACES, NAMESPACE)
        except ApiException as error:
            is_mine = False
            if error.status != CONFLICT:
                raise
            raise ToolError(
                f"namespace {NAME} exists: another check is running, or was killed. If none is running, run: kubectl "
                f"delete namespace {NAME}"
            ) from None
        api.create(f"{_NAMESPACES}/{NAME}/services", SERVICE)
        yield made
    finally:
        if is_mine:
            try:
                _delete(api, [*made, f"{_NAMESPACES}/{NAME}"], clock)
            except BaseException:
                say(f"not everything was deleted. Run: {_commands(made)}")
                raise


def _delete(api: Kubernetes, paths: Sequence[str], clock: Clock) -> None:
    """Delete objects, and wait until none of them exists. Raises ApiException for the first that can't be deleted."""
    failed: list[ApiException] = []
    for path in paths:
        try:
            api.delete(path, _WITH_PODS)
        except ApiException as error:
            if error.status != NOT_FOUND:
                failed.append(error)
    if failed:
        raise failed[0]
    until = clock.monotonic() + _DELETE_SECONDS
    while remaining := [path for path in paths if api.find(path) is not None]:
        if clock.monotonic() > until:
            raise ToolError(f"{', '.join(remaining)} couldn't be deleted within {_DELETE_SECONDS:g} s")
        clock.sleep(_PAUSE_SECONDS)


def _commands(paths: Sequence[str]) -> str:
    jobs = [path.split("/") for path in paths if path.split("/")[-3] != NAME]
    return "; ".join(
        [*(f"kubectl delete job -n {words[-3]} {words[-1]}" for words in jobs), f"kubectl delete namespace {NAME}"]
    )


def run(
    api: Kubernetes,
    probes: Sequence[Probe],
    made: list[str],
    *,
    seconds: float,
    clock: Clock,
    report: Callable[[Result], None],
) -> list[Result]:
    """Run probes at the same time, and report each result when it's known. made: gets the paths of created objects."""
    begun = clock.monotonic()
    waiting: dict[str, Probe] = {}
    results: dict[str, Result] = {}

    def end(probe: Probe, status: Status, detail: str) -> None:
        waiting.pop(probe.name, None)
        results[probe.name] = Result(probe, status, clock.monotonic() - begun, detail)
        report(results[probe.name])

    for probe in probes:
        if probe.outcome is not None:
            end(probe, *probe.outcome)
            continue
        try:
            _create(api, probe, made, clock)
            waiting[probe.name] = probe
        except ApiException as error:
            end(probe, "failed", f"the API server rejects it: {message_of(error)}")
    while waiting:
        is_late = clock.monotonic() - begun > seconds
        for probe in list(waiting.values()):
            pods = _pods(api, probe)
            outcome = _outcome(probe, pods)
            if outcome is None and is_late:
                outcome = "failed", f"not within {seconds:g} s: {_reason(api, probe, pods)}"
            if outcome is not None:
                end(probe, *outcome)
        if waiting:
            clock.sleep(_PAUSE_SECONDS)
    return [results[probe.name] for probe in probes]


def _create(api: Kubernetes, probe: Probe, made: list[str], clock: Clock) -> None:
    """Create a probe's object; one that a killed check left is deleted first.

    Kueue's webhook for pods answers NotFound until its cache has the namespace, which is new.
    """
    document = probe.document or {}
    made.append(f"{probe.path}/{document['metadata']['name']}")
    until = clock.monotonic() + _NAMESPACE_SECONDS
    while True:
        try:
            api.create(probe.path, document)
        except ApiException as error:
            if error.status == CONFLICT:
                _delete(api, made[-1:], clock)
            elif error.status == NOT_FOUND and _namespace(probe) == NAME and clock.monotonic() < until:
                clock.sleep(_PAUSE_SECONDS)
            else:
                raise
        else:
            return


def _pods(api: Kubernetes, probe: Probe) -> list[Document]:
    query = (("labelSelector", probe.selector),)
    return list(api.pages(f"/api/v1/namespaces/{_namespace(probe)}/pods", query))


def _outcome(probe: Probe, pods: Sequence[Document]) -> tuple[Status, str] | None:
    """Return the result of a probe whose pods have ended, None as long as they haven't."""
    phases = [mapping(pod.get("status")).get("phase") for pod in pods]
    messages = [message for pod in pods for message in _messages(pod)]
    if "Failed" in phases:
        return "failed", "; ".join(messages) or "its container failed without a message"
    if phases.count("Succeeded") >= probe.pods:
        return "ok", "; ".join([probe.tests, *messages])
    return None


def _messages(pod: Document) -> Iterator[str]:
    """Yield the last lines of a pod's containers that have ended, and why the pod failed."""
    status = mapping(pod.get("status"))
    if status.get("message"):
        yield str(status["message"])
    for container in mappings(status.get("containerStatuses")):
        ended = mapping(mapping(container.get("state")).get("terminated"))
        text = str(ended.get("message") or "").strip()
        if text:
            yield text.replace("\n", "; ")


def _reason(api: Kubernetes, probe: Probe, pods: Sequence[Document]) -> str:
    """Return why pods haven't ended: not admitted, not scheduled, an image that can't be pulled, or still running."""
    if not pods:
        return _queue_reason(api, probe)
    for pod in pods:
        status = mapping(pod.get("status"))
        for container in mappings(status.get("containerStatuses")):
            waits = mapping(mapping(container.get("state")).get("waiting"))
            if waits.get("reason") not in (None, "ContainerCreating"):
                return f"{waits['reason']}: {waits.get('message') or ''}".rstrip(": ")
        for condition in mappings(status.get("conditions")):
            if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
                return str(condition.get("message") or "it isn't scheduled")
    phases = {str(mapping(pod.get("status")).get("phase")) for pod in pods}
    return f"its pods are {', '.join(sorted(phases))}"


def _queue_reason(api: Kubernetes, probe: Probe) -> str:
    """Return why Kueue hasn't admitted a job."""
    kueue = api.version_of("kueue.x-k8s.io")
    for workload in api.pages(f"{kueue}/namespaces/{_namespace(probe)}/workloads") if kueue else ():
        owners = mappings(workload["metadata"].get("ownerReferences"))
        for condition in mappings(mapping(workload.get("status")).get("conditions")):
            is_waiting = (condition.get("type"), condition.get("status")) == ("QuotaReserved", "False")
            if is_waiting and NAME in [owner.get("name") for owner in owners]:
                return str(condition.get("message"))
    return "no pod was created"


def _namespace(probe: Probe) -> str:
    return probe.path.split("/")[-2]
