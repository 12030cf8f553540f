"""etcd, as a part: loopback only, in plain HTTP.

With TLS, etcd before 3.5.8 lets watches starve (etcd issue 15402): the API server then never sees its own writes.
"""

from pathlib import Path

from local.kubernetes.api import get
from local.supervisor.part import Part

__all__ = ["etcd"]


def etcd(executable: Path, data: Path, *, ports: dict[str, int]) -> Part:
    """Return the part; ports `etcd`, `etcd-peer` and `etcd-metrics`."""
    client = f"http://127.0.0.1:{ports['etcd']}"
    peer = f"http://127.0.0.1:{ports['etcd-peer']}"
    return Part(
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
            # Health is served in plain HTTP there, without data.
            f"--listen-metrics-urls=http://127.0.0.1:{ports['etcd-metrics']}",
        ),
        healthy=lambda: get(ports["etcd-metrics"], "/health") == 200,
    )
