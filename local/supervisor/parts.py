"""The parts of an instance: AWS endpoint, etcd, kube-apiserver, Kueue."""

import sys
from pathlib import Path

import local
from local.kubernetes.api import Api, get
from local.kubernetes.apiserver import apiserver, write_kubeconfig, write_reviews
from local.kubernetes.etcd import etcd
from local.kubernetes.kueue import Kueue
from local.kubernetes.pki import authority, signed
from local.supervisor.instance import Instance
from local.supervisor.part import Part
from local.toolchain import tool_path

__all__ = ["LATENCY_FACTOR", "TOOL_NAMES", "parts_of"]

# A hundredth of what AWS takes: states are seen to change, and nobody waits for them.
LATENCY_FACTOR = "0.01"
TOOL_NAMES = ("etcd", "kube-apiserver", "kueue", "kueue-manifests", "karpenter-crds")


def parts_of(instance: Instance) -> list[Part]:
    """Return the parts, and write certificates and kubeconfig that they need."""
    ports = instance.claim_ports()
    pki = instance.folder / "pki"
    ca = authority(pki, "hpkit-local-ca")
    server = signed(pki, "server", issuer=ca, names=("127.0.0.1", "localhost", "kubernetes.default.svc", "10.0.0.1"))
    admin = signed(pki, "admin", issuer=ca, organization="system:masters")
    api = Api(port=ports["kube-apiserver"], authority=ca, client=admin)
    write_kubeconfig(instance.kubeconfig, api, name=f"hpkit-local-{instance.name}")
    reviews = pki / "token-review.json"
    write_reviews(reviews, f"http://127.0.0.1:{ports['aws']}/_hpkit/token-review")
    kueue = Kueue(
        tool_path("kueue"),
        manifests=tool_path("kueue-manifests"),
        api=api,
        folder=pki / "kueue",
        kubeconfig=instance.kubeconfig,
        log=instance.log("kueue"),
        ports=ports,
    )
    return [
        _aws(instance, ports["aws"]),
        etcd(tool_path("etcd"), instance.folder / "etcd", ports=ports),
        apiserver(tool_path("kube-apiserver"), api=api, etcd_port=ports["etcd"], server=server, reviews=reviews),
        kueue.part(),
    ]


def _aws(instance: Instance, port: int) -> Part:
    state = instance.folder / "aws.json"
    return Part(
        name="aws",
        command=(
            *(sys.executable, "-m", "local.aws", "--port", str(port), "--state-file", str(state)),
            *("--effects", "local.effects:make", "--latency-factor", LATENCY_FACTOR),
            *instance.aws_arguments(),
        ),
        # Effects of the endpoint find the API server there.
        environment={"KUBECONFIG": str(instance.kubeconfig)},
        folder=Path(next(iter(local.__path__))).parent,
        # Any answer says that it serves; what it answers is its own affair.
        healthy=lambda: get(port, "/") > 0,
    )
