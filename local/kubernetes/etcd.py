"""etcd as a service: loopback only, in plain HTTP.

With TLS, etcd before 3.5.8 lets watches starve (etcd issue 15402): the API server then never sees its own writes.
"""

from pathlib import Path

from local.processes.health import http_status
from local.processes.service import Service

__all__ = ["etcd"]


def etcd(executable: Path, data: Path, *, ports: dict[str, int]) -> Service:
    """Return the service; ports `etcd`, `etcd-peer` and `etcd-metrics`."""
    client = f"http://127.0.0.1:{ports['etcd']}"
    peer = f"http://127.0.0.1:{ports['etcd-peer']}"
    return Service(
        name="etcd",
        command=(
            str(executable),
            "--name=local",
            f"--data-dir={data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=local={peer}",
            # There is no other member to be told that this one is there.
            "--heartbeat-interval=500",
            "--election-timeout=2500",
            # Health is served in plain HTTP there, without data.
            f"--listen-metrics-urls=http://127.0.0.1:{ports['etcd-metrics']}",
        ),
        healthy=lambda: http_status(ports["etcd-metrics"], "/health") == 200,
    )
