"""The callbacks of the AWS endpoint: each submits what should be, and waits until the API server is so."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from hpkit_local.aws.api import BackendView
from hpkit_local.aws.controllers import ControllerError, Controllers, Document, EksConnection
from hpkit_local.aws.errors import EndpointError
from hpkit_local.aws.services.eks.view import why_cut_off
from hpkit_local.controllers.access import review
from hpkit_local.controllers.dependencies import has_cert_manager
from hpkit_local.controllers.policy import ADDON
from hpkit_local.controllers.reconciler import Reconciler
from hpkit_local.controllers.training import TRAINING
from hpkit_local.kubernetes.api import Api

__all__ = ["KUBELET_PORT", "ClusterControllers", "make"]

# Add-ons with a counterpart in the API server.
_BRINGING = (ADDON, TRAINING)

# The variable with the port of kwok, which is every node's kubelet.
KUBELET_PORT = "HPKIT_KUBELET_PORT"


def make() -> ClusterControllers:
    """Return the controllers of the API server that KUBECONFIG leads to."""
    path = os.environ.get("KUBECONFIG", "")
    if not path:
        raise EndpointError("--controllers hpkit_local.controllers:make needs KUBECONFIG; `hpkit local start` sets it")
    return ClusterControllers(Path(path), kubelet_port=int(os.environ.get(KUBELET_PORT, "0")))


class ClusterControllers(Controllers):
    """The changes that HyperPod, EKS and task governance make in a cluster when their APIs are called."""

    def __init__(self, kubeconfig: Path, *, kubelet_port: int = 0) -> None:
        self._kubeconfig = kubeconfig
        self._kubelet_port = kubelet_port
        self._view: BackendView | None = None
        self._reconciler: Reconciler | None = None

    def started(self, view: BackendView) -> None:
        """Start reconciling."""
        self._view = view
        self._reconciler = Reconciler(self._kubeconfig, view, kubelet_port=self._kubelet_port)
        self._reconciler.start()

    def stopped(self) -> None:
        """Stop reconciling."""
        if self._reconciler is not None:
            self._reconciler.stop()

    def asked(self, page: str, body: bytes) -> Document | None:
        """Answer the API server's TokenReview, and whether EKS's endpoint admits callers."""
        if self._view is None:
            return None
        if page == "unreachable":
            return {"why": self._why_unreachable()}
        if page != "token-review":
            return None
        try:
            request = json.loads(body)
        except ValueError:
            request = None
        if not isinstance(request, dict):
            raise EndpointError("the body is not a TokenReview")
        return review(self._view, request, why_unreachable=self._why_unreachable())

    def eks_cluster_requested(self, name: str, others: Sequence[str]) -> None:
        """Reject a second cluster: there is one API server."""
        if others:
            raise ControllerError(
                f"EKS cluster '{name}' cannot be created: a local cloud has one API server, and EKS cluster "
                f"'{others[0]}' has it. Start another local cloud for it: hpkit local start --name NAME"
            )

    def eks_cluster_created(self, cluster: Document) -> EksConnection | None:
        """Return the API server's address, when it answers."""
        self.submit(f"eks/{cluster['name']}", cluster)
        server: Mapping[str, Any] = yaml.safe_load(self._kubeconfig.read_text(encoding="utf-8"))["clusters"][0][
            "cluster"
        ]
        return EksConnection(str(server["server"]), str(server["certificate-authority-data"]))

    def brings_cert_manager(self) -> bool:
        """Check for it in the API server; if that doesn't respond, it doesn't exist."""
        try:
            return has_cert_manager(Api.of_kubeconfig(self._kubeconfig))
        except OSError:
            return False

    def submit(self, key: str, document: Document | None) -> None:
        """Make the API server so; most add-ons have no counterpart in it."""
        if key.startswith("addon/") and key.rpartition("|")[2] not in _BRINGING:
            return
        if self._reconciler is None:
            raise ControllerError("the controllers have not been started")
        self._reconciler.submit(key, document)

    def noticed(self) -> None:
        """Reconcile soon."""
        if self._reconciler is not None:
            self._reconciler.wake()

    def _why_unreachable(self) -> str:
        """Return why callers can't reach the API server through EKS's endpoint, or ""."""
        return "the endpoint has not been started" if self._view is None else why_cut_off(self._view)
