"""Commands for a running platform on a real API server with a real Kueue: the local cloud's.

`python bench/live_cluster.py [COUNT]`. The platform is handson-dev: first with that number of waiting jobs, for
`job check --live`; then with as many additional nodes, ClusterQueues and LocalQueues, for status and topology. The
commands run as users run them, three times each, after Kueue has nothing left to do; the shortest time counts.
bench/live.py measures status and topology without the services.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("infra", "local", "whatif", "bench"))]

import psutil  # noqa: E402 - the path comes first
import yaml  # noqa: E402
from cloud import cloud  # noqa: E402
from live import COUNT, STATUS_SECONDS, TOPOLOGY_SECONDS, node  # noqa: E402

from hpkit_local.kubernetes.api import Api  # noqa: E402
from hpkit_local.supervisor import control  # noqa: E402
from tests.program.cloud import Program  # noqa: E402

STACK = "handson-dev"
KUEUE = "kueue.x-k8s.io/v1beta2"
TEAM = "hyperpod-ns-john"
RUNS, AT_ONCE, BUSY, QUIET_SECONDS = 3, 4, 0.25, 600
CHECK_SECONDS = 2.0
NEW = ("job", "new", "--team", "john", "--instance-type", "ml.g5.12xlarge", "--count", "2")


def submit(kubeconfig, count, document):
    """Create jobs of john and smith, of which a few run and the others wait; return their paths."""
    clients = [Api.of_kubeconfig(kubeconfig, field_manager="bench") for _ in range(AT_ONCE)]

    def make(number):
        team = ("john", "smith")[number % 2]
        job = json.loads(json.dumps(document).replace("john", team))
        job["metadata"]["name"] = f"waits-{number}"
        job["spec"]["template"]["metadata"]["annotations"] = {"hpkit.local/run": "24h"}
        folder = f"/apis/batch/v1/namespaces/hyperpod-ns-{team}/jobs"
        clients[number % AT_ONCE].create(folder, job)
        return f"{folder}/{job['metadata']['name']}"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(make, range(count)))


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


def run(words, variables):
    """Return the output of a command."""
    hpkit = [str(ROOT / ".venv" / "bin" / "hpkit"), *words, "--stack", STACK]
    return subprocess.run(hpkit, cwd=ROOT, env=variables, capture_output=True, text=True, check=True).stdout


def within(limit, words, variables):
    """Print the shortest time of a command, and its processor time; return whether it's within a limit in seconds."""
    times = []
    for _ in range(RUNS):
        begun, used = time.perf_counter(), processor_seconds()
        output = run(words, variables)
        times.append((time.perf_counter() - begun, processor_seconds() - used))
    seconds, processor = min(times)
    print(
        f"hpkit {' '.join(words[:3])}: {seconds:.2f} s (limit {limit:g} s), of which {processor:.2f} s on a processor; "
        f"{output.count(chr(10))} lines",
        flush=True,
    )
    return seconds <= limit


def processor_seconds():
    """Return the processor time of all ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def at_rest(instance, what, begun):
    """Print how long it took to create objects, and until Kueue had handled them."""
    created = time.perf_counter() - begun
    share = rest(instance)
    print(
        f"{what}: created in {created:.0f} s; Kueue at rest {time.perf_counter() - begun - created:.0f} s later, the "
        f"API server at {share:.0%} of a core",
        flush=True,
    )


def main(arguments):
    """Print the figures; exit with 1 if one exceeds its limit."""
    count = int(arguments[0]) if arguments else COUNT
    with cloud(0) as instance, tempfile.TemporaryDirectory() as folder:
        Program(instance, STACK, root=ROOT).up()
        variables = {**os.environ, **control.environment(instance)}
        file = Path(folder, "job.yaml")
        file.write_text(run(NEW, variables), encoding="utf-8")
        begun = time.perf_counter()
        jobs = submit(instance.kubeconfig, count, yaml.safe_load(file.read_text(encoding="utf-8")))
        at_rest(instance, f"{count} jobs", begun)
        results = [within(CHECK_SECONDS, ("job", "check", "--live", str(file)), variables)]
        api = Api.of_kubeconfig(instance.kubeconfig, field_manager="bench")
        for path in jobs:
            api.delete(path)
        begun = time.perf_counter()
        fill(instance.kubeconfig, count)
        at_rest(instance, f"{count} nodes, ClusterQueues and LocalQueues", begun)
        results.append(within(STATUS_SECONDS, ("cluster", "status"), variables))
        results.append(within(TOPOLOGY_SECONDS, ("cluster", "topology"), variables))
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
