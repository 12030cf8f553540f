"""Status of 1,000 teams and 1,000 nodes, and topology of 1,000 nodes: read over HTTP from fakes, and computed.

`python bench/live.py`. The fakes respond at once, with documents of the services' size. Only hpkit's work is timed:
requests, pages, parsing, the page. `--growth` shows the growth from a tenth of the size.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("infra", "whatif")]

from kubernetes.client import ApiClient, Configuration  # noqa: E402 - the path comes first

from hpkit.cluster.live.as_html import status_html, topology_html  # noqa: E402
from hpkit.cluster.live.kubernetes import Kubernetes  # noqa: E402
from hpkit.cluster.live.model import Observed  # noqa: E402
from hpkit.cluster.live.parse import platform_of  # noqa: E402
from hpkit.cluster.live.read import objects_of  # noqa: E402
from hpkit.cluster.live.status import status_of  # noqa: E402
from hpkit.cluster.live.topology import placements, tree_of  # noqa: E402

COUNT = 1000
STATUS_SECONDS, TOPOLOGY_SECONDS = 3.0, 2.0
GPU, KIND = "nvidia.com/gpu", "ml.p5.48xlarge"
LAYERS = "topology.k8s.aws/network-node-layer-"
RESOURCES = (("cpu", "192"), ("memory", "2048Gi"), (GPU, "8"), ("vpc.amazonaws.com/efa", "32"))


def node(number):
    """Return a node as the API server returns it: labels, conditions, addresses, images."""
    labels = {f"{LAYERS}{layer}": f"nn-{layer}-{number // size}" for layer, size in ((1, 256), (2, 64), (3, 16))}
    labels |= {"node.kubernetes.io/instance-type": KIND, "topology.kubernetes.io/zone": "us-west-2a"}
    labels |= {"sagemaker.amazonaws.com/instance-group-name": "gpu"}
    conditions = [
        {"type": kind, "status": str(kind == "Ready"), "reason": "Kubelet", "message": "x" * 60}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [{"names": [f"registry.example/{'x' * 80}:{image}"], "sizeBytes": 10**9} for image in range(30)]
    amounts = dict(RESOURCES)
    status = {"allocatable": amounts, "capacity": amounts, "conditions": conditions, "images": images}
    return {"metadata": {"name": f"hyperpod-i-{number:017x}", "labels": labels}, "spec": {}, "status": status}


def pod(number):
    """Return a pod of a team's task."""
    variables = [{"name": f"E{each}", "value": "x" * 30} for each in range(20)]
    resources = {"limits": {GPU: "8"}, "requests": {"cpu": "100"}}
    containers = [{"name": "main", "image": "train", "env": variables, "resources": resources}]
    owner = {"kind": "Job", "name": f"train-{number}", "controller": True}
    metadata = {"name": f"train-{number}-0", "namespace": f"hyperpod-ns-team-{number}", "ownerReferences": [owner]}
    metadata["annotations"] = {"kueue.x-k8s.io/workload": f"job-train-{number}"}
    return {"metadata": metadata, "spec": {"nodeName": f"hyperpod-i-{number:017x}", "containers": containers}}


def queue(number):
    """Return a team's ClusterQueue; every fifth one borrows from the others."""
    quotas = [{"name": name, "nominalQuota": "8" if name == GPU else amount} for name, amount in RESOURCES]
    used = [{"name": GPU, "total": "16" if number % 5 == 0 else "4", "borrowed": "8" if number % 5 == 0 else "0"}]
    group = {"coveredResources": [name for name, _ in RESOURCES], "flavors": [{"name": KIND, "resources": quotas}]}
    status = {
        "flavorsReservation": [{"name": KIND, "resources": used}],
        "conditions": [{"type": "Active", "status": "True"}],
    }
    metadata = {"name": f"hyperpod-ns-team-{number}-clusterqueue"}
    return {"metadata": metadata, "spec": {"cohortName": "all", "resourceGroups": [group]}, "status": status}


def local_queue(number):
    """Return a team's LocalQueue."""
    metadata = {"name": f"hyperpod-ns-team-{number}-localqueue", "namespace": f"hyperpod-ns-team-{number}"}
    return {"metadata": metadata, "spec": {"clusterQueue": f"hyperpod-ns-team-{number}-clusterqueue"}}


def workload(number):
    """Return a task; every third one waits."""
    waits = number % 3 == 0
    conditions = [{"type": "QuotaReserved", "status": str(not waits), "reason": "Pending" if waits else "QuotaReserved",
                   "message": "couldn't assign flavors to pod set main: insufficient unused quota for " + GPU,
                   "lastTransitionTime": "2026-11-22T11:00:00Z"}]  # fmt: skip
    if not waits:
        conditions.append({"type": "Admitted", "status": "True", "reason": "Admitted", "message": ""})
    assigned = {"name": "main", "count": 1, "flavors": {GPU: KIND}, "resourceUsage": {GPU: "8"}}
    admission = {"clusterQueue": f"hyperpod-ns-team-{number}-clusterqueue", "podSetAssignments": [assigned]}
    template = {"spec": pod(number)["spec"]}
    return {
        "metadata": {
            "name": f"job-train-{number}",
            "namespace": f"hyperpod-ns-team-{number}",
            "uid": f"uid-{number}",
            "creationTimestamp": "2026-11-22T11:00:00Z",
            "ownerReferences": [{"kind": "Job", "name": f"train-{number}", "controller": True}],
        },
        "spec": {
            "queueName": f"hyperpod-ns-team-{number}-localqueue",
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
        "status": {"conditions": conditions, **({} if waits else {"admission": admission})},
    }


KINDS = {
    "/api/v1/nodes": node,
    "/api/v1/pods": pod,
    "/apis/kueue.x-k8s.io/v1beta1/clusterqueues": queue,
    "/apis/kueue.x-k8s.io/v1beta1/localqueues": local_queue,
    "/apis/kueue.x-k8s.io/v1beta1/workloads": workload,
}


class ApiServer(BaseHTTPRequestHandler):
    """Lists of each kind in pages, created before the timing."""

    pages: ClassVar[dict[tuple[str, int], bytes]] = {}
    count: ClassVar[int] = 0
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        start = int(query.get("continue", ["0"])[0])
        body = self.pages.get((url.path, start))
        if url.path == "/apis/kueue.x-k8s.io":
            body = b'{"preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta1"}}'
        elif query.get("limit") == ["1"]:
            body = b'{"items": [{}], "metadata": {"continue": "1", "remainingItemCount": %d}}' % (self.count - 1)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"{}")))
        self.end_headers()
        self.wfile.write(body or b"{}")

    def log_message(self, *_):
        """Log nothing."""


def pages_of(count):
    """Return the pages of every kind, with the 500 objects that the reader requests."""
    pages = {}
    for path, make in KINDS.items():
        items = [make(number) for number in range(count)]
        for start in range(0, count, 500):
            following = {"continue": str(start + 500)} if start + 500 < count else {}
            pages[path, start] = json.dumps({"items": items[start : start + 500], "metadata": following}).encode()
    pages["/apis/kueue.x-k8s.io/v1beta1/workloadpriorityclasses", 0] = b'{"items": [], "metadata": {}}'
    return pages


def aws(count):
    """Return SageMaker's responses for the same number of nodes."""
    alike = {"InstanceGroupName": "gpu", "InstanceType": KIND, "InstanceStatus": {"Status": "Running"}}
    summaries = [{"InstanceId": f"i-{number:017x}", **alike} for number in range(count)]
    group = {"InstanceGroupName": "gpu", "InstanceType": KIND, "TargetCount": count, "CurrentCount": count}
    cluster = {"ClusterName": "acme", "ClusterStatus": "InService", "InstanceGroups": [group]}
    return platform_of(cluster, summaries, None, (), ())


def measure(count):
    """Return the seconds of status and of topology: reading, computing and writing the page."""
    from datetime import UTC, datetime

    ApiServer.pages, ApiServer.count = pages_of(count), count
    server = ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with ApiClient(Configuration(host=f"http://127.0.0.1:{server.server_port}")) as client:
            begun, unknown = time.perf_counter(), []
            found = objects_of(Kubernetes(client), unknown)
            read = time.perf_counter() - begun
            seen = Observed(time=datetime.now(tz=UTC), platform=aws(count), **found, unknown=tuple(unknown))
            status = status_of(seen)
            status_html("acme", status, ())
            in_status = time.perf_counter() - begun
            begun = time.perf_counter()
            topology_html("acme", tree_of(seen), placements(seen))
            in_topology = read + time.perf_counter() - begun
    finally:
        server.shutdown()
    if unknown or (len(status.teams), len(seen.nodes)) != (count, count):
        sys.exit(f"read {len(status.teams)} teams and {len(seen.nodes)} nodes, not {count}: {unknown}")
    return in_status, in_topology


def main():
    """Print the figures; exit with 1 if one exceeds its limit."""
    status, topology = measure(COUNT)
    print(f"status of {COUNT} teams and nodes: {status:.2f} s (limit {STATUS_SECONDS:g} s)")
    print(f"topology of {COUNT} nodes: {topology:.2f} s (limit {TOPOLOGY_SECONDS:g} s)")
    if "--growth" in sys.argv:
        small = measure(COUNT // 10)
        print(f"ten times as many take {status / small[0]:.1f} and {topology / small[1]:.1f} times as long")
    sys.exit(status > STATUS_SECONDS or topology > TOPOLOGY_SECONDS)


if __name__ == "__main__":
    main()
