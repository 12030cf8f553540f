"""kube-apiserver as a service, and the kubeconfig that leads to it."""

import base64
import http.client
import json
from pathlib import Path

from hpkit_local.kubernetes.control_plane import KUBELET_ADDRESS
from hpkit_local.kubernetes.pki import Pair
from hpkit_local.processes.files import write_private
from hpkit_local.processes.health import http_status
from hpkit_local.processes.service import Service

__all__ = ["apiserver", "write_kubeconfig", "write_reviews"]


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
    """Return the service: RBAC, client certificates of the instance's authority, tokens that `reviews` leads to.

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
            # etcd before 3.5.13 can't report a watch's progress, which streamed lists need, so watches would break.
            # Without the lease of the only API server, nothing is written while nothing happens.
            "--feature-gates=WatchList=false,APIServerIdentity=false",
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
    user = {
        "client-certificate-data": _encoded(client.certificate),
        "client-key-data": _encoded(client.key),
    }
    cluster = {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority-data": _encoded(authority.certificate),
    }
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
