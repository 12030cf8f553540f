"""Kueue outside a cluster, as a service: its webhooks answer on loopback, and the API server calls them by address."""

import http.client
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpkit_local.processes import Service, http_status, write_private

__all__ = ["INTEGRATIONS", "NAMESPACE", "OUTSIDE", "OWN_GATES", "SECRET", "SERVICE", "SHIPPED_GATES", "Kueue"]

NAMESPACE = "kueue-system"
SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"  # noqa: S105 - a Secret's name
# Feature gates that are the local cloud's, whatever the settings in the cluster say.
OWN_GATES = {"VisibilityOnDemand": False}
# Gang scheduling is off until the console or hpkit turns it on (SageMaker HyperPod developer guide, using gang
# scheduling). Since 0.19, it takes a gate to turn it off.
SHIPPED_GATES = {"DisableWaitForPodsReady": True}
# Namespaces that Kueue manages: all but the cluster's own.
OUTSIDE = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
    ]
}
# Source: SageMaker developer guide, "Set up for HyperPod task governance": the add-on's ConfigMap.
INTEGRATIONS: dict[str, Any] = {
    "frameworks": [
        *("batch/job", "kubeflow.org/mpijob", "ray.io/rayjob", "ray.io/raycluster", "jobset.x-k8s.io/jobset"),
        *("kubeflow.org/paddlejob", "kubeflow.org/pytorchjob", "kubeflow.org/tfjob", "kubeflow.org/xgboostjob"),
        *("kubeflow.org/jaxjob", "workload.codeflare.dev/appwrapper", "pod", "deployment", "statefulset"),
        "leaderworkerset.x-k8s.io/leaderworkerset",
    ],
    "externalFrameworks": ["HyperPodPyTorchJob.v1.sagemaker.amazonaws.com"],
}
# Objects for its webhooks: one of Kueue's kinds, and some of the kinds that it queues.
_PODS: dict[str, Any] = {
    "metadata": {"labels": {"app": "probe"}},
    "spec": {"containers": [{"name": "probe", "image": "probe"}]},
}
_SERVED: dict[str, Any] = {"selector": {"matchLabels": {"app": "probe"}}, "template": _PODS}
_PROBES: dict[str, dict[str, Any]] = {
    folder: {"apiVersion": version, "kind": kind, "metadata": {"name": "hpkit-local-probe"}, "spec": spec}
    for folder, version, kind, spec in (
        ("/apis/kueue.x-k8s.io/v1beta2/resourceflavors", "kueue.x-k8s.io/v1beta2", "ResourceFlavor", {}),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            "batch/v1",
            "Job",
            {"template": {"spec": {**_PODS["spec"], "restartPolicy": "Never"}}},
        ),
        ("/apis/apps/v1/namespaces/default/deployments", "apps/v1", "Deployment", _SERVED),
        ("/apis/apps/v1/namespaces/default/statefulsets", "apps/v1", "StatefulSet", {**_SERVED, "serviceName": ""}),
    )
}


@dataclass(frozen=True)
class Kueue:
    """Kueue's requirements.

    Ports `kueue-webhook`, `kueue-health`, `kueue-metrics`, and a folder for its files.

    `manifests` is the folder with its CRDs and webhooks. `training_operator` is an executable that can be missing.
    `authority` and `client` are the certificates and the key for requests to the API server, at port `kube-apiserver`.
    `on_by_default` are the feature gates that are on unless the settings in the cluster turn them off.
    """

    executable: Path
    manifests: Path
    training_operator: Path
    folder: Path
    kubeconfig: Path
    authority: Path
    client: tuple[Path, Path]
    log: Path
    ports: dict[str, int]
    on_by_default: tuple[str, ...]

    def service(self) -> Service:
        """Return the service, which prepares the API server for Kueue and then runs it."""
        return Service(
            name="kueue",
            # By the time that its modules are loaded, the API server answers.
            needs=("etcd",),
            command=(
                *(sys.executable, "-m", "hpkit_local.kubernetes.kueue_run"),
                f"--kueue={self.executable}",
                f"--config={self.folder / 'config.json'}",
                f"--manifests={self.manifests}",
                f"--webhook-port={self.ports['kueue-webhook']}",
                f"--log={self.log}",
                f"--training-operator={self.training_operator}",
                f"--kubeconfig={self.kubeconfig}",
                f"--health-port={self.ports['kueue-health']}",
            ),
            environment={"KUBECONFIG": str(self.kubeconfig)},
            folder=Path(__file__).resolve().parents[2],
            prepare=self.prepare,
            healthy=self.healthy,
        )

    def healthy(self) -> bool:
        """Return whether the API server reaches all webhooks: Kueue reports ready while it still adds some."""
        if http_status(self.ports["kueue-health"], "/readyz") != http.client.OK:
            return False
        statuses = (
            http_status(
                self.ports["kube-apiserver"],
                f"{folder}?dryRun=All",
                authority=self.authority,
                client=self.client,
                posts=document,
            )
            for folder, document in _PROBES.items()
        )
        return all(status < http.client.INTERNAL_SERVER_ERROR for status in statuses)

    def prepare(self) -> None:
        """Write the configuration."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        write_private(self.folder / "config.json", json.dumps(self._configuration()).encode())

    def _configuration(self) -> dict[str, Any]:
        """Return the settings that the task governance add-on ships."""
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self.ports['kueue-health']}"},
            "metrics": {"bindAddress": f"127.0.0.1:{self.ports['kueue-metrics']}", "enableClusterQueueResources": True},
            "webhook": {
                "host": "127.0.0.1",
                "port": self.ports["kueue-webhook"],
                "certDir": str(self.folder / "served"),
            },
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"qps": 50, "burst": 100},
            "internalCertManagement": {"enable": True, "webhookServiceName": SERVICE, "webhookSecretName": SECRET},
            # Gates that are on anyway are listed, so that settings with them don't cause a restart.
            "featureGates": {**dict.fromkeys(self.on_by_default, True), **SHIPPED_GATES, **OWN_GATES},
            "manageJobsWithoutQueueName": False,
            "managedJobsNamespaceSelector": OUTSIDE,
            "integrations": INTEGRATIONS,
            "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        }
