"""Resources of a team's pods on nodes, compared with what Kueue counts for the team."""

import time
from collections import Counter
from datetime import UTC, datetime

from kubernetes.utils.quantity import parse_quantity

from hpkit_local.kubernetes.api import RefusedError
from tests.running import HANGS

__all__ = ["ALLOWED_SECONDS", "counted", "pause", "settled_excess", "taken"]

# The longest grace period that members may set (teamLimits.terminationGracePeriodSeconds, its default).
ALLOWED_SECONDS = 600
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
TERMINAL = ("Succeeded", "Failed")
# If nobody writes for this long, no earlier action has further effects.
QUIET_SECONDS = 5.0


def taken(api, team):
    """Return the resources of pods on nodes, except for pods that end within the allowed period."""
    total = Counter()
    for pod in api.items(f"/api/v1/namespaces/hyperpod-ns-{team}/pods"):
        if "nodeName" not in pod["spec"] or pod.get("status", {}).get("phase") in TERMINAL or _ends_in_time(pod):
            continue
        for container in pod["spec"]["containers"]:
            total.update({name: parse_quantity(text) for name, text in _requests(container).items()})
    return total


def counted(api, team):
    """Return a team's usage in Kueue, by resource."""
    status = api.read(f"{QUEUES}/hyperpod-ns-{team}-clusterqueue").get("status", {})
    total = Counter()
    for flavor in status.get("flavorsUsage") or []:
        total.update({resource["name"]: parse_quantity(resource["total"]) for resource in flavor["resources"]})
    return total


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
        except RefusedError:
            # An object that still changes isn't settled.
            return {team: "unknown"}
        excess |= {
            f"{team} {name}": f"{amount} on nodes, {books[name]} counted"
            for name, amount in pods.items()
            if amount > books[name]
        }
    return excess


def _requests(container):
    resources = container.get("resources", {})
    return {**resources.get("limits", {}), **resources.get("requests", {})}


def _ends_in_time(pod):
    deleted = pod["metadata"].get("deletionTimestamp")
    if deleted is None:
        return False
    return (datetime.fromisoformat(deleted) - datetime.now(UTC)).total_seconds() <= ALLOWED_SECONDS
