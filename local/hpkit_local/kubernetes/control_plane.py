"""The services of a control plane, as in EKS: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok.

kwok is every node's kubelet; stages.yaml defines what pods do there. Nodes and their conditions are written by the
reconciler. A node lifecycle controller would wait for heartbeats, so it doesn't run. Controllers that act in a cloud
(routes, load balancers, addresses) or on a node (attaching volumes) don't run either.

etcd is on loopback only, with plain HTTP: with TLS, etcd before 3.5.8 lets watches starve (etcd issue 15402), and the
API server then never sees its own writes.
"""

import base64
import http.client
import json
from pathlib import Path

from hpkit_local.kubernetes.pki import Pair, authority, signed
from hpkit_local.processes import Service, http_status, write_private

__all__ = [
    "KUBELET_ADDRESS",
    "NODE_ANNOTATION",
    "READY_ANNOTATION",
    "UNREACHABLE",
    "apiserver",
    "controller_manager",
    "etcd",
    "kwok",
    "scheduler",
    "write_kubeconfig",
    "write_reviews",
]
# etcd before 3.5.13 can't report a watch's progress, which streamed lists need, so watches would break. Without the
# lease of the only API server, nothing is written while nothing happens; from 1.36 on, a proxy to others would need it.
_OFF = ("WatchList", "APIServerIdentity", "UnknownVersionInteroperabilityProxy")


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
        # Writes of a killed process are kept; after a power failure, the local cloud might have to be recreated.
        "unsafe-no-fsync": True,
        # Health is served in plain HTTP there, without data.
        "listen-metrics-urls": f"http://127.0.0.1:{ports['etcd-metrics']}",
    }


# Nodes with this annotation are kwok's.
NODE_ANNOTATION = {"kwok.x-k8s.io/node": "fake"}
# "false" on a pod: it runs, and is not ready until this is "true".
READY_ANNOTATION = "hpkit.local/ready"
# Where the API server reads the logs of a node's pods: at kwok, on this machine.
KUBELET_ADDRESS = {"type": "ExternalDNS", "address": "localhost"}
# Reason of the condition Ready of a node whose network is cut.
UNREACHABLE = "NodeStatusUnknown"
_STAGES = Path(__file__).with_name("stages.yaml")
# In the format of a container runtime: time, stream, F for a whole line.
_LOG = "2026-01-01T00:00:00.000000000Z stdout F No container runs on the local cloud: kwok simulates its pods.\n"
_LEFT_OUT = (
    "cloud-node-lifecycle-controller",
    "node-ipam-controller",
    "node-lifecycle-controller",
    "node-route-controller",
    "persistentvolume-attach-detach-controller",
    "service-lb-controller",
    "ttl-controller",
)


def controller_manager(
    executable: Path, *, minor: str, kubeconfig: Path, port: int, authority: Pair, server: Pair
) -> Service:
    """Return the service; minor is the Kubernetes version that it behaves as."""
    return Service(
        name="kube-controller-manager",
        needs=("kube-apiserver",),
        command=(
            str(executable),
            *_alike(minor, kubeconfig, port, server),
            f"--controllers=*,{','.join(f'-{name}' for name in _LEFT_OUT)}",
            f"--root-ca-file={authority.certificate}",
            f"--service-account-private-key-file={server.key}",
        ),
        # A small heap: one cluster with few objects.
        environment={"GOGC": "50"},
        healthy=lambda: http_status(port, "/healthz", authority=authority.certificate) == http.client.OK,
    )


def scheduler(executable: Path, *, minor: str, kubeconfig: Path, port: int, authority: Pair, server: Pair) -> Service:
    """Return the service; minor is the Kubernetes version that it behaves as."""
    return Service(
        name="kube-scheduler",
        needs=("kube-apiserver",),
        command=(str(executable), *_alike(minor, kubeconfig, port, server)),
        healthy=lambda: http_status(port, "/readyz", authority=authority.certificate) == http.client.OK,
    )


def kwok(executable: Path, *, folder: Path, kubeconfig: Path, port: int, server: Pair) -> Service:
    """Return the service, and write what it shows as the log of each container into the folder.

    It has no exec: a command would run on this machine, not in a container.
    """
    log, logs = folder / "container.log", folder / "logs.json"
    write_private(log, _LOG.encode())
    kind = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterLogs", "metadata": {"name": "all"}}
    write_private(logs, json.dumps({**kind, "spec": {"logs": [{"logsFile": str(log)}]}}).encode())
    ((annotation, value),) = NODE_ANNOTATION.items()
    return Service(
        name="kwok",
        needs=("kube-apiserver",),
        command=(
            str(executable),
            f"--kubeconfig={kubeconfig}",
            f"--config={_STAGES}",
            f"--config={logs}",
            f"--manage-nodes-with-annotation-selector={annotation}={value}",
            "--node-lease-duration-seconds=0",
            # From the range that VPCs use as a secondary range for pods.
            "--cidr=100.64.0.0/16",
            f"--server-address=127.0.0.1:{port}",
            f"--tls-cert-file={server.certificate}",
            f"--tls-private-key-file={server.key}",
        ),
        healthy=lambda: http_status(port, "/healthz") == http.client.OK,
    )


def _alike(minor: str, kubeconfig: Path, port: int, server: Pair) -> tuple[str, ...]:
    """Return the arguments that controller manager and scheduler share."""
    return (
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--emulated-version={minor}",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={server.certificate}",
        f"--tls-private-key-file={server.key}",
    )


def apiserver(
    executable: Path,
    *,
    minor: str,
    port: int,
    etcd_port: int,
    authority: Pair,
    server: Pair,
    client: Pair,
    reviews: Path,
) -> Service:
    """Return the service: RBAC, client certificates of the local cloud's authority, tokens that `reviews` leads to.

    minor: the Kubernetes version that it behaves as. client: who may ask it whether it is ready.

    Admission is that of EKS: the API server's own default, and two plugins more. Like EKS, it lets privileged
    containers be; a namespace's Pod Security level may not. Source: EKS user guide, "Platform versions".
    """
    return Service(
        name="kube-apiserver",
        needs=("etcd",),
        command=(
            str(executable),
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            # These metrics aren't used, and an idle local cloud should use few resources.
            "--etcd-count-metric-poll-period=0s",
            "--etcd-db-metric-poll-interval=0s",
            f"--client-ca-file={authority.certificate}",
            f"--tls-cert-file={server.certificate}",
            f"--tls-private-key-file={server.key}",
            "--authorization-mode=Node,RBAC",
            "--anonymous-auth=false",
            f"--authentication-token-webhook-config-file={reviews}",
            "--authentication-token-webhook-version=v1",
            # In addition to the ten seconds for which it caches every success.
            "--authentication-token-webhook-cache-ttl=1s",
            "--enable-admission-plugins=NodeRestriction,ExtendedResourceToleration",
            "--allow-privileged=true",
            f"--emulated-version={minor}",
            f"--feature-gates={','.join(f'{gate}=false' for gate in _OFF)}",
            f"--kubelet-preferred-address-types={KUBELET_ADDRESS['type']}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={server.key}",
            f"--service-account-signing-key-file={server.key}",
        ),
        # With Go's default of 100, a third of its processor time in an `up` is garbage collection.
        environment={"GOGC": "200"},
        healthy=lambda: (
            http_status(port, "/readyz", authority=authority.certificate, client=(client.certificate, client.key))
            == http.client.OK
        ),
    )


def write_kubeconfig(path: Path, *, name: str, port: int, authority: Pair, client: Pair) -> None:
    """Write a kubeconfig (mode 0600, JSON being YAML) with everything included."""
    user = {"client-certificate-data": _encoded(client.certificate), "client-key-data": _encoded(client.key)}
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": _encoded(authority.certificate)}
    _write(path, name, cluster=cluster, user=user)


def write_reviews(path: Path, url: str) -> None:
    """Write the address that the API server uses to review bearer tokens, in the form of a kubeconfig."""
    _write(path, "token-review", cluster={"server": url}, user={})


def _write(path: Path, name: str, *, cluster: dict[str, str], user: dict[str, str]) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    write_private(path, json.dumps(document, indent=2).encode())


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
