"""Kueue outside a cluster, as a service: its webhooks answer on loopback, and the API server calls them by address."""

import base64
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpkit_local.kubernetes.api import Api
from hpkit_local.kubernetes.crds import apply_crds, documents
from hpkit_local.kubernetes.pki import Pair, authority, signed
from hpkit_local.processes.files import write_private
from hpkit_local.processes.health import http_status
from hpkit_local.processes.service import Service

__all__ = ["INTEGRATIONS", "MANAGED_NAMESPACES", "Kueue"]

_NAMESPACE = "kueue-system"
_SERVICE = "kueue-webhook-service"
_SECRET = "kueue-webhook-server-cert"  # noqa: S105 - a Secret's name
_HOOKS = "/apis/admissionregistration.k8s.io/v1"
# Kueue looks at what others make, and leaves the cluster's own namespaces alone: its config/components/webhook/
# kustomization.yaml says so of every webhook but those of its own kinds.
_OWN_KINDS = {"workload", "clusterqueue", "cohort", "localqueue", "resourceflavor"}
_OUTSIDE = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", _NAMESPACE]}
    ]
}
# Source: SageMaker developer guide, "Set up for HyperPod task governance": the ConfigMap that the add-on brings.
INTEGRATIONS: dict[str, Any] = {
    "frameworks": [
        *("batch/job", "kubeflow.org/mpijob", "ray.io/rayjob", "ray.io/raycluster", "jobset.x-k8s.io/jobset"),
        *("kubeflow.org/paddlejob", "kubeflow.org/pytorchjob", "kubeflow.org/tfjob", "kubeflow.org/xgboostjob"),
        *("kubeflow.org/jaxjob", "workload.codeflare.dev/appwrapper", "pod", "deployment", "statefulset"),
        "leaderworkerset.x-k8s.io/leaderworkerset",
    ],
    "externalFrameworks": ["HyperPodPyTorchJob.v1.sagemaker.amazonaws.com"],
}
MANAGED_NAMESPACES = _OUTSIDE


@dataclass(frozen=True)
class Kueue:
    """What Kueue needs: ports `kueue-webhook`, `kueue-health`, `kueue-metrics`, `egress`, and a folder of its own.

    `manifests` is the folder that holds its CRDs and webhooks; `operators` executables by name, which may not be there;
    `front_proxy` the folder of the certificates by which the API server reaches them.
    """

    executable: Path
    manifests: Path
    operators: Mapping[str, Path]
    api: Api
    folder: Path
    front_proxy: Path
    kubeconfig: Path
    log: Path
    ports: dict[str, int]

    def service(self) -> Service:
        """Return the service."""
        return Service(
            name="kueue",
            needs=("kube-apiserver",),
            command=(
                *(sys.executable, "-m", "hpkit_local.kubernetes.kueue_run"),
                f"--kueue={self.executable}",
                f"--config={self.folder / 'config.json'}",
                f"--log={self.log}",
                *(word for name, path in self.operators.items() for word in ("--operator", name, str(path))),
                f"--kubeconfig={self.kubeconfig}",
                f"--health-port={self.ports['kueue-health']}",
                f"--egress-port={self.ports['egress']}",
                f"--front-proxy={self.front_proxy}",
            ),
            environment={"KUBECONFIG": str(self.kubeconfig)},
            folder=Path(__file__).resolve().parents[2],
            prepare=self.prepare,
            healthy=lambda: http_status(self.ports["kueue-health"], "/readyz") == 200,
        )

    def prepare(self) -> None:
        """Write certificates and configuration, and apply kinds and webhooks."""
        ca, pair = self._certificates()
        write_private(self.folder / "config.json", json.dumps(self._configuration()).encode())
        bundle = base64.b64encode(ca.certificate.read_bytes()).decode()
        base = f"https://127.0.0.1:{self.ports['kueue-webhook']}"
        apply_crds(self.api, self.manifests, convert_url=f"{base}/convert", bundle=bundle)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
        self.api.apply(f"/api/v1/namespaces/{_NAMESPACE}", namespace)
        self.api.apply(f"/api/v1/namespaces/{_NAMESPACE}/secrets/{_SECRET}", _secret(ca, pair))
        for hooks in documents(self.manifests / "manifests.yaml"):
            plural = f"{hooks['kind'].lower()}s"
            hooks["metadata"] = {"name": f"kueue-{hooks['metadata']['name']}"}
            hooks["webhooks"] = [_by_address(hook, base, bundle) for hook in hooks["webhooks"]]
            self.api.apply(f"{_HOOKS}/{plural}/{hooks['metadata']['name']}", hooks)

    def _certificates(self) -> tuple[Pair, Pair]:
        """Return authority and server pair; Kueue's rotator leaves them alone only if names and files are these."""
        ca = authority(self.folder, "kueue-ca", rsa=True)
        pair = signed(self.folder, "webhook", issuer=ca, names=(f"{_SERVICE}.{_NAMESPACE}.svc", "127.0.0.1"))
        served = self.folder / "served"
        served.mkdir(mode=0o700, exist_ok=True)
        for source, name in ((ca.certificate, "ca.crt"), (pair.certificate, "tls.crt"), (pair.key, "tls.key")):
            shutil.copy(source, served / name)
        return ca, pair

    def _configuration(self) -> dict[str, Any]:
        """Return the settings that the task governance add-on ships."""
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self.ports['kueue-health']}"},
            "metrics": {
                "bindAddress": f"127.0.0.1:{self.ports['kueue-metrics']}",
                "enableClusterQueueResources": True,
            },
            "webhook": {
                "host": "127.0.0.1",
                "port": self.ports["kueue-webhook"],
                "certDir": str(self.folder / "served"),
            },
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"qps": 50, "burst": 100},
            "internalCertManagement": {
                "enable": True,
                "webhookServiceName": _SERVICE,
                "webhookSecretName": _SECRET,
            },
            "featureGates": {"VisibilityOnDemand": False},
            "manageJobsWithoutQueueName": False,
            "managedJobsNamespaceSelector": MANAGED_NAMESPACES,
            "integrations": INTEGRATIONS,
            "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        }


def _secret(ca: Pair, pair: Pair) -> dict[str, Any]:
    files = {"ca.crt": ca.certificate, "ca.key": ca.key, "tls.crt": pair.certificate, "tls.key": pair.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _SECRET, "namespace": _NAMESPACE},
        "data": {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()},
    }


def _by_address(hook: dict[str, Any], base: str, bundle: str) -> dict[str, Any]:
    path = hook["clientConfig"]["service"]["path"]
    own = str(hook["name"]).removesuffix(".kb.io")[1:] in _OWN_KINDS
    scope = {} if own else {"namespaceSelector": _OUTSIDE}
    return {**hook, **scope, "clientConfig": {"url": f"{base}{path}", "caBundle": bundle}}
