"""etcd as a service: on loopback only, with plain HTTP.

With TLS, etcd before 3.5.8 lets watches starve (etcd issue 15402): the API server then never sees its own writes.
"""

import json
from pathlib import Path

from hpkit_local.kubernetes.pki import Pair, authority, signed
from hpkit_local.processes.files import write_private
from hpkit_local.processes.health import http_status
from hpkit_local.processes.service import Service

__all__ = ["etcd"]


def etcd(executable: Path, data: Path, *, ports: dict[str, int]) -> Service:
    """Return the service; ports `etcd`, `etcd-peer` and `etcd-metrics`.

    Its settings and its peer certificates are written next to `data`.
    """
    settings = data.with_name("etcd.json")
    return Service(
        name="etcd",
        command=(str(executable), f"--config-file={settings}"),
        prepare=lambda: _prepare(settings, data, ports),
        healthy=lambda: http_status(ports["etcd-metrics"], "/health") == 200,
    )


def _prepare(settings: Path, data: Path, ports: dict[str, int]) -> None:
    folder = data.with_name("pki")
    folder.mkdir(mode=0o700, exist_ok=True)
    issuer = authority(folder, "etcd-peers")
    written = _settings(data, ports, issuer=issuer, peer_pair=signed(folder, "etcd-peer", issuer=issuer))
    write_private(settings, json.dumps(written, indent=2).encode())


def _settings(data: Path, ports: dict[str, int], *, issuer: Pair, peer_pair: Pair) -> dict[str, object]:
    """Return the configuration file; only there can the gateway be switched off."""
    client = f"http://127.0.0.1:{ports['etcd']}"
    peer = f"https://127.0.0.1:{ports['etcd-peer']}"
    return {
        "name": "local",
        "data-dir": str(data),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"local={peer}",
        # `host-whitelist` applies only to the client port (etcd, server/embed/etcd.go). A page whose name resolves to
        # loopback could send raft messages to the other one, and with them writes.
        "peer-transport-security": {
            "cert-file": str(peer_pair.certificate),
            "key-file": str(peer_pair.key),
            "trusted-ca-file": str(issuer.certificate),
            "client-cert-auth": True,
        },
        # The gateway takes JSON of any content type from any origin: a web page could rewrite the cluster's objects.
        # The API server speaks gRPC, which no page can.
        "enable-grpc-gateway": False,
        "host-whitelist": "127.0.0.1",
        "cors": client,
        # The only member elects itself at the latest an election timeout after its start. No other member waits for its
        # heartbeats, so short times make the start fast. They aren't shorter, because each heartbeat wakes the process.
        "heartbeat-interval": 100,
        "election-timeout": 500,
        # Writes of a killed process are kept; after a power failure, the instance might have to be recreated.
        "unsafe-no-fsync": True,
        # Health is served in plain HTTP there, without data.
        "listen-metrics-urls": f"http://127.0.0.1:{ports['etcd-metrics']}",
    }
