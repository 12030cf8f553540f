"""The services of a local cloud: AWS endpoint, a Kubernetes control plane, kwok, Kueue."""

import sys
from pathlib import Path

from hpkit.catalog import topology_gates
from hpkit_local.kubernetes.control_plane import (
    apiserver,
    controller_manager,
    etcd,
    kwok,
    scheduler,
    write_kubeconfig,
    write_reviews,
)
from hpkit_local.kubernetes.kueue import Kueue
from hpkit_local.kubernetes.pki import authority, signed
from hpkit_local.kubernetes.training_operator import TRAINING_OPERATOR
from hpkit_local.processes import Service, http_status
from hpkit_local.supervisor.local_cloud import LATENCY_FACTOR, LocalCloud
from hpkit_local.toolchain import TOOLS, expected_path, tool_path

__all__ = ["services_of"]


def services_of(cloud: LocalCloud) -> list[Service]:
    """Return the services on the local cloud's ports, and write the certificates and kubeconfig that they need."""
    ports = cloud.ports()
    pki = cloud.folder / "pki"
    ca = authority(pki, "hpkit-local-ca")
    server = signed(pki, "server", issuer=ca, names=("127.0.0.1", "localhost", "kubernetes.default.svc", "10.0.0.1"))
    admin = signed(pki, "admin", issuer=ca, organization="system:masters")
    own = signed(pki, "system:kube-scheduler", issuer=ca)
    port = ports["kube-apiserver"]
    name = f"hpkit-local-{cloud.name}"
    write_kubeconfig(cloud.kubeconfig, name=name, port=port, authority=ca, client=admin)
    schedulers = pki / "scheduler-kubeconfig.json"
    write_kubeconfig(schedulers, name=name, port=port, authority=ca, client=own)
    reviews = pki / "token-review.json"
    write_reviews(reviews, f"http://127.0.0.1:{ports['aws']}/_hpkit/token-review")
    kueue = Kueue(
        tool_path("kueue"),
        manifests=tool_path("kueue-manifests"),
        training_operator=expected_path(TRAINING_OPERATOR),
        folder=pki / "kueue",
        kubeconfig=cloud.kubeconfig,
        authority=ca.certificate,
        client=(admin.certificate, admin.key),
        log=cloud.log("kueue"),
        ports=ports,
        on_by_default=topology_gates(next(tool.version for tool in TOOLS if tool.name == "kueue")),
    )
    return [
        _aws(cloud, ports["aws"], kubelet_port=ports["kwok"]),
        etcd(tool_path("etcd"), cloud.folder / "etcd", ports=ports),
        apiserver(
            tool_path("kube-apiserver"),
            minor=cloud.kubernetes(),
            port=port,
            etcd_port=ports["etcd"],
            authority=ca,
            server=server,
            client=admin,
            reviews=reviews,
        ),
        controller_manager(
            tool_path("kube-controller-manager"),
            minor=cloud.kubernetes(),
            kubeconfig=cloud.kubeconfig,
            port=ports["kube-controller-manager"],
            authority=ca,
            server=server,
        ),
        scheduler(
            tool_path("kube-scheduler"),
            minor=cloud.kubernetes(),
            kubeconfig=schedulers,
            port=ports["kube-scheduler"],
            authority=ca,
            server=server,
        ),
        kueue.service(),
        kwok(tool_path("kwok"), folder=pki, kubeconfig=cloud.kubeconfig, port=ports["kwok"], server=server),
    ]


def _aws(cloud: LocalCloud, port: int, *, kubelet_port: int) -> Service:
    state = cloud.folder / "aws.json"
    return Service(
        name="aws",
        command=(
            *(sys.executable, "-m", "hpkit_local.aws", "--port", str(port), "--state-file", str(state)),
            *("--controllers", "hpkit_local.controllers:make", "--latency-factor", LATENCY_FACTOR),
            *("--account", cloud.account()),
            *(("--caller-role", role) if (role := cloud.role()) else ()),
            *cloud.aws_arguments(),
        ),
        # Its controllers find the API server and kwok there.
        environment={
            "KUBECONFIG": str(cloud.kubeconfig),
            "HPKIT_KUBELET_PORT": str(kubelet_port),
            "MALLOC_ARENA_MAX": "2",
        },
        folder=Path(__file__).resolve().parents[2],
        # Any response means that it serves, regardless of its contents.
        healthy=lambda: http_status(port, "/") > 0,
    )
