"""kube-controller-manager, kube-scheduler, and kwok as services: they create, place, and run pods.

kwok is every node's kubelet; stages.yaml defines what pods do there. Nodes and their conditions are written by the
reconciler. A node lifecycle controller would wait for heartbeats, so it doesn't run. Controllers that act in a cloud
(routes, load balancers, addresses) or on a node (attaching volumes) don't run either.
"""

import http.client
import json
from pathlib import Path

from hpkit_local.kubernetes.pki import Pair
from hpkit_local.processes.files import write_private
from hpkit_local.processes.health import http_status
from hpkit_local.processes.service import Service

__all__ = [
    "KUBELET_ADDRESS",
    "NODE_ANNOTATION",
    "READY_ANNOTATION",
    "UNREACHABLE",
    "controller_manager",
    "kwok",
    "scheduler",
]

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
