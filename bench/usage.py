"""Usage of 100,000 Workloads, read from an API server and accounted; then also merged with a history of as many.

`python bench/usage.py [COUNT]`. The API server is a fake in another process, with documents of the real one's size, so
its work isn't counted. Prints processor time and the largest memory; exits with 1 if one exceeds its limit. The time
may be 10 s for each 100,000 Workloads.
"""

import gc
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
SECONDS, MEBIBYTES = 10.0 * COUNT / 100_000, 500
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
FIRST = (NOW - timedelta(days=DAYS)).timestamp()
exceeded = []


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
    started = time.process_time()
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=serve, args=(there,), daemon=True)
    child.start()
    port = here.recv()
    begun = time.process_time()
    with ApiClient(Configuration(host=f"http://127.0.0.1:{port}")) as client:
        admissions = Admissions()
        found = objects_of(Kubernetes(client), [], on_workload=admissions.add)
    seen = replace(observed_history(Observed(time=NOW, platform=aws(NODES), **found), admissions), nodes=nodes())
    read = started + time.process_time() - begun
    del found, admissions
    begun = time.process_time()
    report(seen, COUNT)
    within("", SECONDS, {"start and read": read, "account": time.process_time() - begun})
    lines = list(written(earlier(), stack="bench"))
    begun = time.process_time()
    history = merged(parse_history(lines, stack="bench", file="history"), seen)
    text = "".join(f"{line}\n" for line in written(history, stack="bench"))
    merge = time.process_time() - begun
    begun = time.process_time()
    report(history, 2 * COUNT)
    account_both = time.process_time() - begun
    child.kill()
    if not text:
        sys.exit("no history")
    parts = {"start and read": read, "history": merge, "account": account_both}
    within(" with a history of as many", 2 * SECONDS, parts)
    sys.exit(bool(exceeded))


def nodes():
    """Return the spans of all nodes."""
    return tuple(NodeSpan(f"i-{number}", KIND, FIRST) for number in range(NODES))


def earlier():
    """Return a history of other Workloads that have ended."""
    tasks = (
        TaskSpan(f"old-{n}", f"team-{n % TEAMS}", "", f"Job/old-{n}", KIND, 1.0, FIRST + n, FIRST + n + 3600.0)
        for n in range(COUNT)
    )
    return History((FIRST,), nodes(), tuple(tasks))


def report(history, count):
    """Account a history, and write its table and page."""
    begin, end = FIRST, NOW.timestamp()
    usage = usage_report(
        account(history, begin=begin, end=end), by="team", begin=begin, end=end, price=lambda _: Decimal("55.04")
    )
    if len(history.tasks) != count or not usage.total.cost or not usage_html("bench", "", usage):
        sys.exit(f"{len(history.tasks)} admissions, not {count}")


def within(what, limit, parts):
    """Print processor time and the largest memory so far, and keep whether one exceeds its limit."""
    seconds, memory = sum(parts.values()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"usage of {COUNT:,} Workloads{what}: {seconds:.1f} s of processor time (limit {limit:g} s), of which: "
        f"{', '.join(f'{name} {part:.1f}' for name, part in parts.items())}; {memory:.0f} MiB (limit {MEBIBYTES})"
    )
    if seconds > limit or memory > MEBIBYTES:
        exceeded.append(what)


if __name__ == "__main__":
    main()
