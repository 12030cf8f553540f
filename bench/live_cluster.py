"""Status and topology of 1,000 teams and 1,000 nodes on a real API server with a real Kueue: the local cloud's.

`python bench/live_cluster.py [COUNT]`. The platform is handson-dev, with that number of additional nodes, ClusterQueues
and LocalQueues. The commands run as users run them, three times each, after Kueue has nothing left to do; the shortest
time counts. bench/live.py measures the same without the services.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("infra", "local", "whatif", "bench"))]

import psutil  # noqa: E402 - the path comes first
from cloud import cloud  # noqa: E402
from live import COUNT, STATUS_SECONDS, TOPOLOGY_SECONDS, node  # noqa: E402

from hpkit_local.kubernetes.api import Api  # noqa: E402
from hpkit_local.supervisor import control  # noqa: E402
from tests.program.cloud import Program  # noqa: E402

STACK = "handson-dev"
KUEUE = "kueue.x-k8s.io/v1beta2"
TEAM = "hyperpod-ns-john"
RUNS, AT_ONCE, BUSY, QUIET_SECONDS = 3, 4, 0.25, 600
LIMITS = {"status": STATUS_SECONDS, "topology": TOPOLOGY_SECONDS}


def fill(kubeconfig, count):
    """Create nodes, and queues of one cohort with the quotas of a team of the stack."""
    clients = [Api.of_kubeconfig(kubeconfig, field_manager="bench") for _ in range(AT_ONCE)]
    like = clients[0].read(f"/apis/{KUEUE}/clusterqueues/{TEAM}-clusterqueue")["spec"]

    def make(number):
        api = clients[number % AT_ONCE]
        name = f"hyperpod-ns-bench-{number}-clusterqueue"
        api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **node(number)})
        whole = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": like}
        api.create(f"/apis/{KUEUE}/clusterqueues", whole)
        local = {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": name}, "spec": {"clusterQueue": name}}
        api.create(f"/apis/{KUEUE}/namespaces/{TEAM}/localqueues", local)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(make, range(count)))


def rest(instance):
    """Wait until the API server is nearly idle: Kueue has updated every queue for all others."""
    server = psutil.Process(instance.state().parts["kube-apiserver"].pid)
    deadline = time.monotonic() + QUIET_SECONDS
    while True:
        before = sum(server.cpu_times()[:2])
        time.sleep(5)
        share = (sum(server.cpu_times()[:2]) - before) / 5
        if share < BUSY or time.monotonic() > deadline:
            return share


def seconds_of(command, variables):
    """Return the shortest time of a command in seconds, and the lines that it prints."""
    best = float("inf")
    for _ in range(RUNS):
        begun = time.perf_counter()
        hpkit = [str(ROOT / ".venv" / "bin" / "hpkit"), command, "--stack", STACK]
        said = subprocess.run(hpkit, cwd=ROOT, env=variables, capture_output=True, text=True, check=True).stdout
        best = min(best, time.perf_counter() - begun)
    return best, said.count("\n")


def main(arguments):
    """Print the figures; exit with 1 if one exceeds its limit."""
    count = int(arguments[0]) if arguments else COUNT
    with cloud(0) as instance:
        Program(instance, STACK, root=ROOT).up()
        begun = time.perf_counter()
        fill(instance.kubeconfig, count)
        print(f"{count} nodes, ClusterQueues and LocalQueues: made in {time.perf_counter() - begun:.0f} s", flush=True)
        begun = time.perf_counter()
        share = rest(instance)
        print(f"Kueue at rest after {time.perf_counter() - begun:.0f} s more, the API server at {share:.0%} of a core")
        variables = {**os.environ, **control.environment(instance)}
        over = False
        for command, limit in LIMITS.items():
            seconds, lines = seconds_of(command, variables)
            print(f"hpkit {command}: {seconds:.2f} s (limit {limit:g} s), {lines} lines", flush=True)
            over = over or seconds > limit
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
