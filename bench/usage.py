"""Usage of 100,000 Workloads: read from an API server, merged with a history of as many, and accounted.

`python bench/usage.py [COUNT]`. The API server is a fake in another process, with documents of the real one's size, so
its work isn't counted. Prints processor time and the largest memory; exits with 1 if one exceeds its limit.
"""

import gc
import itertools
import json
import multiprocessing
import resource
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from kubernetes.client import ApiClient, Configuration
from live import KIND, ApiServer, aws, queue, workload

from hpkit.cluster.live.kubernetes import Kubernetes
from hpkit.cluster.live.model import Observed
from hpkit.cluster.live.read import objects_of
from hpkit.cluster.usage.account import account
from hpkit.cluster.usage.as_html import usage_html
from hpkit.cluster.usage.history import (
    Admissions,
    History,
    NodeSpan,
    TaskSpan,
    merged,
    observed_history,
    parse_history,
    written,
)
from hpkit.cluster.usage.report import usage_report

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
TEAMS, NODES, DAYS = 25, 1000, 30
SECONDS, MEBIBYTES = 10.0, 500
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Server(ApiServer):
    """Lists Workloads in pages that are created for each request."""

    def do_GET(self):  # noqa: N802 - http.server's name
        url = urlsplit(self.path)
        start = int(parse_qs(url.query).get("continue", ["0"])[0])
        if url.path.endswith("/workloads"):
            following = {"continue": str(start + 500)} if start + 500 < COUNT else {}
            items = [finished(number) for number in range(start, min(COUNT, start + 500))]
            self.pages[url.path, start] = json.dumps({"items": items, "metadata": following}).encode()
        elif url.path.endswith("/clusterqueues"):
            items = [queue(number) for number in range(TEAMS)]
            self.pages[url.path, start] = json.dumps({"items": items, "metadata": {}}).encode()
        super().do_GET()
        self.pages.clear()


def finished(number):
    """Return a Workload that ran for an hour within the last 30 days."""
    document = workload(3 * number + 1)
    team = f"hyperpod-ns-team-{number % TEAMS}"
    document["metadata"]["namespace"] = team
    document["status"]["admission"]["clusterQueue"] = f"{team}-clusterqueue"
    begin = NOW - timedelta(days=DAYS) + timedelta(seconds=number * DAYS * 86400 // COUNT)
    for condition in document["status"]["conditions"]:
        condition["lastTransitionTime"] = f"{begin:%Y-%m-%dT%H:%M:%SZ}"
    end = f"{begin + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    document["status"]["conditions"].append(
        {"type": "Finished", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": end}
    )
    return document


def serve(pipe):
    """Serve in this process, and tell the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    pipe.send(server.server_port)
    server.serve_forever()


def main():
    """Print the figures; exit with 1 if one exceeds its limit."""
    gc.set_threshold(200_000)  # as the command does
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=serve, args=(there,), daemon=True)
    child.start()
    port = here.recv()
    first = (NOW - timedelta(days=DAYS)).timestamp()
    nodes = tuple(NodeSpan(f"i-{number}", KIND, first) for number in range(NODES))
    tasks = tuple(
        TaskSpan(f"old-{n}", f"team-{n % TEAMS}", "", f"Job/old-{n}", KIND, 1.0, first + n, first + n + 3600.0)
        for n in range(COUNT)
    )
    lines = list(written(History((first,), nodes, tasks), stack="bench"))
    del tasks
    times = [time.process_time()]
    with ApiClient(Configuration(host=f"http://127.0.0.1:{port}")) as client:
        admissions = Admissions()
        found = objects_of(Kubernetes(client), [], on_task=admissions.add)
    seen = replace(observed_history(Observed(time=NOW, platform=aws(NODES), **found), admissions), nodes=nodes)
    del found
    times.append(time.process_time())
    history = merged(parse_history(lines, stack="bench", file="history"), seen)
    text = "".join(f"{line}\n" for line in written(history, stack="bench"))
    times.append(time.process_time())
    begin, end = first, NOW.timestamp()
    usage = usage_report(
        account(history, begin=begin, end=end), by="team", begin=begin, end=end, price=lambda _: Decimal("55.04")
    )
    page = usage_html("bench", "", usage)
    times.append(time.process_time())
    child.kill()
    if len(history.tasks) != 2 * COUNT or not usage.total.cost or not text or not page:
        sys.exit(f"{len(history.tasks)} admissions, not {2 * COUNT}")
    parts = [after - before for before, after in itertools.pairwise(times)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"usage of {COUNT:,} Workloads: {sum(parts):.1f} s of processor time (limit {SECONDS:g} s), of which: "
        f"read {parts[0]:.1f}, history of as many {parts[1]:.1f}, account {parts[2]:.1f}; "
        f"{memory:.0f} MiB (limit {MEBIBYTES})"
    )
    sys.exit(sum(parts) > SECONDS or memory > MEBIBYTES)


if __name__ == "__main__":
    main()
