"""The real Kueue as a scheduler for a scenario: Jobs go in, its decisions come out."""

import http.client
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hpkit.errors import ToolError
from hpkit.kueue.events import Admitted, Preempted
from hpkit.kueue.model import Workload
from hpkit_local.kubernetes.api import Api, ApiResource
from hpkit_local.rehearsal.jobs import JOBS, REHEARSED, assignments, controlled, job_of, namespace_of, status_of_ended

__all__ = ["KueueScheduler", "Metrics"]

_NAME = "hpkit-rehearsal"
_NAMESPACE = "kueue-system"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_SECONDS = 10.0
_PENDING = r'^kueue_pending_workloads\{[^}]*status="%s"[^}]*\} (\S+)$'
_ACTIVE, _PARKED = (re.compile(_PENDING % status, re.MULTILINE) for status in ("active", "inadmissible"))
_ATTEMPTS = re.compile(r"^kueue_admission_attempts_total\{[^}]*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Activity:
    """active: workloads in the queue; parked: those set aside. attempts: cycles since Kueue started."""

    active: int
    parked: int
    attempts: int


class Metrics:
    """Kueue's metrics, with an account that may read them."""

    def __init__(self, api: Api, port: int) -> None:
        self._api = api
        # Kueue signs its certificate itself; no other process uses the port on loopback.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_SECONDS, context=context)
        self._token = ""

    def prepare(self) -> None:
        """Create the account."""
        account = {"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME}
        rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
        for path, document in (
            (self._accounts(), {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(_NAMESPACE)}),
            (f"{_RBAC}/clusterroles/{_NAME}", {**_rbac_head("ClusterRole"), "rules": rules}),
            (
                f"{_RBAC}/clusterrolebindings/{_NAME}",
                {**_rbac_head("ClusterRoleBinding"), "roleRef": role, "subjects": [account]},
            ),
        ):
            self._api.apply(path, document)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        self._token = self._api.create(f"{self._accounts()}/token", request)["status"]["token"]

    def read(self) -> Activity:
        """Return how busy Kueue is. Raises ConnectionError while it doesn't respond."""
        try:
            self._connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {self._token}"})
            answer = self._connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise ConnectionError(f"Kueue's metrics: {error}") from error
        if answer.status != http.client.OK:
            raise ConnectionError(f"Kueue's metrics: {answer.status} {text[:200]}")
        return Activity(
            sum(int(float(each)) for each in _ACTIVE.findall(text)),
            sum(int(float(each)) for each in _PARKED.findall(text)),
            sum(int(float(each)) for each in _ATTEMPTS.findall(text)),
        )

    def close(self) -> None:
        """Delete the account."""
        self._connection.close()
        for path in (f"{_RBAC}/clusterrolebindings/{_NAME}", f"{_RBAC}/clusterroles/{_NAME}", self._accounts()):
            self._api.delete(path)

    @staticmethod
    def _accounts() -> str:
        return f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/{_NAME}"


def _named(namespace: str = "") -> dict[str, object]:
    return {"name": _NAME, "labels": REHEARSED, **({"namespace": namespace} if namespace else {})}


def _rbac_head(kind: str) -> dict[str, object]:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": _named()}


# In this version, domains of a topology are written one by one.
_WORKLOADS = ApiResource("kueue.x-k8s.io/v1beta1", "Workload", "workloads", namespaced=True)
_LABELS = "hpkit.local/rehearsal=true"
_PREEMPTOR = re.compile(r"UID: ([0-9a-f-]+)")
_POLL_SECONDS = 0.15
# Kueue takes up what was set aside once a second.
_CALM_SECONDS = 1.6
# Far more than the busiest machine needs between two changes.
_HANGS_SECONDS = 300.0
_MOST_CHANGES = 40
Document = Mapping[str, Any]


@dataclass(slots=True)
class _Task:
    workload: Workload
    namespace: str
    job: str
    uid: str
    state: str = "waiting"


@dataclass(slots=True)
class _Seen:
    """The state of the cluster at one poll."""

    in_step: bool = True
    problem: str = ""
    changes: list[Admitted | Preempted] = field(default_factory=list)


class KueueScheduler:
    """Kueue of a local cloud: its Jobs are begun and ended here as their controller and kubelets would."""

    def __init__(
        self, api: Api, metrics: Metrics, *, classes: Mapping[int, str], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Create it with the API server, Kueue's metrics, and the names of priority classes by weight."""
        self._api = api
        self._metrics = metrics
        self._classes = classes
        self._sleep = sleep
        self._tasks: dict[str, _Task] = {}
        self._names: dict[str, str] = {}
        self._number = 0
        self._attempts = 0
        self._freed = False
        self._last = 0

    def submit(self, workload: Workload) -> None:
        """Create a workload's Job."""
        self._begin()
        self._number += 1
        job = job_of(workload, self._number, priority_class=self._classes.get(workload.priority))
        namespace = namespace_of(workload)
        made = self._api.create(JOBS.folder(namespace), job)
        uid = made["metadata"]["uid"]
        self._tasks[workload.name] = _Task(workload, namespace, made["metadata"]["name"], uid)
        self._names[uid] = workload.name
        self._freed = False

    def finish(self, name: str) -> None:
        """Mark a running Job as complete."""
        self._begin()
        task = self._tasks[name]
        path = JOBS.path(task.namespace, task.job)
        self._api.merge(f"{path}/status", {"status": status_of_ended(self._api.read(path))})
        task.state = "ended"
        self._freed = True

    def settle(self) -> list[Admitted | Preempted]:
        """Wait until Kueue is idle. Raises ToolError if it doesn't become idle."""
        changes: list[Admitted | Preempted] = []
        changed = time.monotonic()
        while True:
            try:
                seen, activity = self._look(), self._metrics.read()
            except OSError as error:
                # Kueue's webhooks or its metrics do not answer for a moment, or someone else wrote first.
                seen, activity = _Seen(in_step=False, problem=str(error)), None
            changes += seen.changes
            self._reject_endless(changes)
            since = time.monotonic() - changed
            if seen.changes or (not seen.in_step and not seen.problem):
                changed = time.monotonic()
            elif activity is not None and self._is_idle(activity) and since > self._calm(changes):
                self._last = int(time.time())
                return changes
            if since > _HANGS_SECONDS:
                raise ToolError(
                    f"Kueue didn't settle within {_HANGS_SECONDS:.0f} s; {seen.problem or 'waiting'}: "
                    f"{', '.join(self._waiting()) or 'nothing'}. To fix: run `tail .local/*/logs/kueue.log`"
                )
            self._sleep(_POLL_SECONDS)

    def reasons(self) -> dict[str, str]:
        """Return Kueue's message about each waiting task."""
        messages = {}
        for workload in self._api.items(_WORKLOADS.folder()):
            name = self._names.get(_owner(workload), "")
            conditions = {one["type"]: one for one in workload.get("status", {}).get("conditions", ())}
            if name in self._tasks and not _holds(conditions, "QuotaReserved"):
                messages[name] = str(conditions.get("QuotaReserved", {}).get("message", "nothing yet"))
        return messages

    def _calm(self, changes: list[Admitted | Preempted]) -> float:
        """Return how long nothing may change: freed quota is offered to waiting tasks only after a while."""
        if not self._waiting():
            return 0.0
        freed = self._freed or any(isinstance(each, Preempted) for each in changes)
        return _CALM_SECONDS if freed else 0.0

    def _waiting(self) -> list[str]:
        return sorted(name for name, task in self._tasks.items() if task.state == "waiting")

    def _begin(self) -> None:
        """Start a new second: Kueue records creation and admission in whole seconds."""
        while int(time.time()) <= self._last:
            self._sleep(0.05)
        self._attempts = self._metrics.read().attempts

    def _is_idle(self, activity: Activity) -> bool:
        looked = not self._freed or not self._waiting() or activity.attempts > self._attempts
        return looked and activity.active == 0 and activity.parked == len(self._waiting())

    def _reject_endless(self, changes: list[Admitted | Preempted]) -> None:
        if len(changes) > _MOST_CHANGES + 4 * len(self._tasks):
            again = sorted({each.name for each in changes if isinstance(each, Preempted)})
            raise ToolError(
                f"Kueue doesn't settle: {', '.join(again)} are preempted repeatedly. To fix: "
                f"`hpkit whatif simulate` also reports this as `flapping`. Change priorities, weights or "
                "limits of the teams"
            )

    def _look(self) -> _Seen:
        seen = _Seen()
        jobs = {each["metadata"]["uid"]: each for each in self._api.items(JOBS.folder(), labels=_LABELS)}
        workloads = {_owner(each): each for each in self._api.items(_WORKLOADS.folder())}
        by_uid = {each["metadata"]["uid"]: self._names.get(owner, "") for owner, each in workloads.items()}
        for name in sorted(self._tasks):
            task = self._tasks[name]
            job, workload = jobs.get(task.uid), workloads.get(task.uid)
            if job is None or workload is None:
                seen.in_step = False
                continue
            status = controlled(job)
            if status is not None:
                self._api.merge(f"{JOBS.path(task.namespace, task.job)}/status", {"status": status})
                seen.in_step = False
            self._compare(task, job, workload, by_uid, seen)
        seen.changes.sort(key=lambda each: isinstance(each, Admitted))
        return seen

    def _compare(self, task: _Task, job: Document, workload: Document, by_uid: Mapping[str, str], seen: _Seen) -> None:
        """Record a task's changes since the last poll, and whether Kueue, Job and task agree."""
        conditions = {each["type"]: each for each in workload.get("status", {}).get("conditions", ())}
        reserved, evicted, finished = (_holds(conditions, kind) for kind in ("QuotaReserved", "Evicted", "Finished"))
        suspended = bool(job["spec"].get("suspend"))
        if task.state == "ended":
            if finished:
                del self._tasks[task.workload.name]
            seen.in_step = seen.in_step and finished
        elif task.state == "running" and (evicted or not reserved):
            task.state = "waiting"
            by = _PREEMPTOR.search(conditions.get("Preempted", {}).get("message", ""))
            reason = conditions.get("Preempted", conditions.get("Evicted", {})).get("reason", "")
            name = by_uid.get(by[1], "") if by else ""
            seen.changes.append(Preempted(task.workload.name, reason, name))
        elif task.state == "waiting" and reserved and not evicted:
            task.state = "running"
            seen.changes.append(Admitted(task.workload.name, assignments(workload)))
        else:
            agree = (not reserved and suspended) if task.state == "waiting" else not suspended
            seen.in_step = seen.in_step and agree


def _owner(workload: Document) -> str:
    owners = workload["metadata"].get("ownerReferences", ())
    return str(owners[0]["uid"]) if owners else ""


def _holds(conditions: Mapping[str, Document], kind: str) -> bool:
    return conditions.get(kind, {}).get("status") == "True"
