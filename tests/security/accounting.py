"""What a team's pods hold on nodes, ending pods included, compared with its limits and with what Kueue counts."""

import threading
import time
from collections import Counter
from contextlib import suppress

from kubernetes.utils.quantity import parse_quantity

from hpkit.config.models.team_limits import TeamLimits
from hpkit.plan.pods import pod_requests
from hpkit_local.kubernetes.api import RejectedError
from tests.running import HANGS

__all__ = ["GPU", "LONGEST", "Watch", "counted", "pause", "settled_excess", "taken"]

GPU = "nvidia.com/gpu"
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
TERMINAL = ("Succeeded", "Failed")
LONGEST = TeamLimits().termination_grace_period_seconds
# If nobody writes for this long, no earlier action has further effects.
QUIET_SECONDS = 5.0


def taken(api, team):
    """Return the resources of a team's pods on nodes, without those of ending pods."""
    return _resources(pod for pod in _on_nodes(api, team) if not _ends(pod))


def counted(api, team):
    """Return a team's usage in Kueue, by resource."""
    status = api.read(f"{QUEUES}/hyperpod-ns-{team}-clusterqueue").get("status", {})
    total = Counter()
    for flavor in status.get("flavorsUsage") or []:
        total.update({resource["name"]: parse_quantity(resource["total"]) for resource in flavor["resources"]})
    return total


def _reserved(api, team):
    """Return what Kueue has reserved for a team's Workloads; the queue reports it up to a second later."""
    total = Counter()
    for workload in api.items(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/hyperpod-ns-{team}/workloads"):
        status = workload.get("status", {})
        ended = any(each["type"] == "Finished" and each["status"] == "True" for each in status.get("conditions", ()))
        for assignment in () if ended else status.get("admission", {}).get("podSetAssignments", ()):
            usage = assignment.get("resourceUsage", {})
            total.update({name: parse_quantity(text) for name, text in usage.items()})
    return total


def limits(api, team):
    """Return a team's nominal quota plus its borrowing limit in Kueue, by resource."""
    spec = api.read(f"{QUEUES}/hyperpod-ns-{team}-clusterqueue")["spec"]
    total = Counter()
    for group in spec["resourceGroups"]:
        for flavor in group["flavors"]:
            for resource in flavor["resources"]:
                for key in ("nominalQuota", "borrowingLimit"):
                    total[resource["name"]] += parse_quantity(resource[key])
    return total


class Watch:
    """Looks at the pods of teams while members act, and keeps what no pod may hold.

    At any time, the pods of a team on nodes hold at most its quota and borrowing limit, ending ones included. An ending
    pod must have been counted when it was deleted: it was on a node at a moment at which Kueue counted all pods of the
    team that weren't ending, or it began to end between two looks and Kueue counted it and all others before. No pod
    may take longer to end than teamLimits.terminationGracePeriodSeconds allows.
    """

    def __init__(self, api, teams=("john", "smith")):
        self._api = api
        self._limits = {team: limits(api, team) for team in teams}
        self._counted_pods, self._seen = set(), set()
        # The pods of the last look that weren't ending, and what Kueue counted.
        self._before = {team: ([], Counter()) for team in teams}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.excess = {}
        self.most = {team: Counter() for team in teams}

    def __enter__(self):
        # Pods that live for a moment only are seen by their events, and a queue that is late, at the next look.
        for team in self._limits:
            for run in (self._on_each_change, self._again_and_again):
                threading.Thread(target=run, args=(team,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._stop.set()

    def _on_each_change(self, team):
        with suppress(OSError):
            for _ in self._api.changes(f"/api/v1/namespaces/hyperpod-ns-{team}/pods"):
                if self._stop.is_set():
                    return
                self._look(team)

    def _again_and_again(self, team):
        while not self._stop.wait(0.3):
            with suppress(OSError):
                self._look(team)

    def _look(self, team):
        pods = _on_nodes(self._api, team)
        held = _resources(pods)
        self.most[team] |= held
        for name, amount in held.items():
            if amount > self._limits[team][name]:
                self.excess[f"{team} {name}"] = f"{amount} on nodes, of at most {self._limits[team][name]}"
        for pod in pods:
            if pod["metadata"].get("deletionGracePeriodSeconds", 0) > LONGEST:
                self.excess[f"{team} {pod['metadata']['name']}"] = "ends too late"
        live = [pod for pod in pods if not _ends(pod)]
        books = _reserved(self._api, team)
        with self._lock:
            before, books_before = self._before[team]
            brief = [pod for pod in pods if _ends(pod) and pod["metadata"]["uid"] not in self._seen]
            self._seen.update(pod["metadata"]["uid"] for pod in pods)
            for together, amounts in ((live, books), ([*before, *brief] if brief else [], books_before)):
                if all(amount <= amounts[name] for name, amount in _resources(together).items()):
                    self._counted_pods.update(pod["metadata"]["uid"] for pod in together)
            self._before[team] = live, books

    def uncounted(self, team):
        """Return the names of ending pods on nodes that Kueue never counted."""
        return [
            pod["metadata"]["name"]
            for pod in _on_nodes(self._api, team)
            if _ends(pod) and pod["metadata"]["uid"] not in self._counted_pods
        ]


def settled_excess(api, teams=("john", "smith")):
    """Return by how much pods exceed what Kueue counts, by team and resource, once nothing changes anymore."""
    deadline = time.monotonic() + HANGS
    revision, since = api.revision(), time.monotonic()
    while True:
        time.sleep(0.2)
        now, excess = api.revision(), _excess(api, teams)
        if now != revision:
            revision, since = now, time.monotonic()
        # Without an excess, the state must hold for a moment; with one, Kueue has time to correct it.
        if time.monotonic() - since > (QUIET_SECONDS if excess else 1.0) or time.monotonic() > deadline:
            return excess


def pause(api, *, seconds=3.0):
    """Wait until nobody has written for a moment, or for at most this many seconds."""
    deadline = time.monotonic() + seconds
    before = None
    while time.monotonic() < deadline and (now := api.revision()) != before:
        before = now
        time.sleep(0.3)


def _excess(api, teams):
    excess = {}
    for team in teams:
        try:
            pods, books = taken(api, team), counted(api, team)
        except RejectedError:
            # An object that still changes isn't settled.
            return {team: "unknown"}
        excess |= {
            f"{team} {name}": f"{amount} on nodes, {books[name]} counted"
            for name, amount in pods.items()
            if amount > books[name]
        }
    return excess


def _on_nodes(api, team):
    pods = api.items(f"/api/v1/namespaces/hyperpod-ns-{team}/pods")
    return [pod for pod in pods if pod["spec"].get("nodeName") and pod["status"].get("phase") not in TERMINAL]


def _ends(pod):
    return pod["metadata"].get("deletionTimestamp") is not None


def _resources(pods):
    total = Counter()
    for pod in pods:
        total.update(pod_requests(pod["spec"], lambda _, text: parse_quantity(str(text))))
    return total
