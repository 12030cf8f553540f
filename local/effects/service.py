"""The callbacks of the AWS endpoint: each says what should be, and waits until the API server is so."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from local.aws.effects import Document, EffectError, EksConnection, NoEffects
from local.aws.errors import EndpointError
from local.aws.view import View
from local.effects.policy import ADDON
from local.effects.tokens import review
from local.effects.worker import Worker

__all__ = ["Service", "make"]


def make() -> Service:
    """Return the effects on the API server that KUBECONFIG leads to."""
    path = os.environ.get("KUBECONFIG", "")
    if not path:
        raise EndpointError("--effects local.effects:make needs KUBECONFIG; `hpkit local start` sets it")
    return Service(Path(path))


class Service(NoEffects):
    """What HyperPod, EKS and task governance do in a cluster when their APIs are called."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._view: View | None = None
        self._worker: Worker | None = None

    def started(self, view: View) -> None:
        """Begin to follow."""
        self._view = view
        self._worker = Worker(self._kubeconfig, view)
        self._worker.start()

    def stopped(self) -> None:
        """Follow no more."""
        if self._worker is not None:
            self._worker.stop()

    def asked(self, page: str, body: bytes) -> Document | None:
        """Answer the API server's TokenReview."""
        if page != "token-review" or self._view is None:
            return None
        try:
            request = json.loads(body)
        except ValueError:
            request = None
        if not isinstance(request, dict):
            raise EndpointError("the body is not a TokenReview")
        return review(self._view, request)

    def eks_cluster_requested(self, name: str, others: Sequence[str]) -> None:
        """Refuse a second cluster: there is one API server."""
        if others:
            raise EffectError(
                f"EKS cluster '{name}' cannot be created: a local cloud has one API server, and EKS cluster "
                f"'{others[0]}' has it. Start another local cloud for it: hpkit local start --name NAME"
            )

    def eks_cluster_created(self, cluster: Document) -> EksConnection | None:
        """Return the address of the API server, when it answers."""
        self._wish(f"eks/{cluster['name']}", cluster)
        told = yaml.safe_load(self._kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]
        return EksConnection(str(told["server"]), str(told["certificate-authority-data"]))

    def eks_cluster_deleted(self, cluster: Document) -> None:
        """Take away all that is in the cluster."""
        self._wish(f"eks/{cluster['name']}", None)

    def cluster_in_service(self, cluster: Document) -> None:  # noqa: ARG002 - see Effects
        """Let groups and nodes follow."""
        self._wake()

    def cluster_deleted(self, cluster: Document) -> None:
        """Take the nodes away."""
        self._wish(f"cluster/{cluster['ClusterName']}", None)

    def nodes_changed(self, cluster: Document, nodes: Sequence[Document]) -> None:  # noqa: ARG002 - see Effects
        """Let nodes follow."""
        self._wake()

    def autoscaling_enabled(self, cluster: Document) -> None:
        """Bring the kinds of Karpenter."""
        self._wish(f"autoscaling/{cluster['ClusterName']}", cluster["AutoScaling"])

    def autoscaling_disabled(self, cluster: Document) -> None:
        """Take the kinds of Karpenter away, and their objects with them."""
        self._wish(f"autoscaling/{cluster['ClusterName']}", None)

    def addon_active(self, addon: Document) -> None:
        """Bring what task governance installs; other add-ons have no counterpart here."""
        if addon["addonName"] == ADDON:
            self._wish(_addon_key(addon), addon)

    def addon_deleted(self, addon: Document, *, preserve: bool) -> None:
        """Take away what task governance installed, unless it is to stay."""
        if addon["addonName"] == ADDON and not preserve:
            self._wish(_addon_key(addon), None)

    def access_entry_changed(self, entry: Document, policies: Sequence[Document]) -> None:  # noqa: ARG002 - see Effects
        """Let bindings follow."""
        self._wake()

    def access_entry_deleted(self, entry: Document) -> None:  # noqa: ARG002 - see Effects
        """Let bindings follow."""
        self._wake()

    def quota_created(self, quota: Document, cluster: Document) -> None:  # noqa: ARG002 - see Effects
        """Make the team's namespace and queues."""
        self._wish(f"quota/{quota['ComputeQuotaId']}", quota)

    quota_updated = quota_created

    def quota_deleted(self, quota: Document, cluster: Document) -> None:  # noqa: ARG002 - see Effects
        """Take the team's namespace and queues away, and all that is in them."""
        self._wish(f"quota/{quota['ComputeQuotaId']}", None)

    def policy_created(self, policy: Document, cluster: Document) -> None:  # noqa: ARG002 - see Effects
        """Make priority classes, and share as the policy says."""
        self._wish(f"policy/{policy['ClusterSchedulerConfigId']}", policy)

    policy_updated = policy_created

    def policy_deleted(self, policy: Document, cluster: Document) -> None:  # noqa: ARG002 - see Effects
        """Take the priority classes away."""
        self._wish(f"policy/{policy['ClusterSchedulerConfigId']}", None)

    def _wish(self, key: str, document: Mapping[str, Any] | None) -> None:
        if self._worker is None:
            raise EffectError("the effects have not been started")
        self._worker.wish(key, document)

    def _wake(self) -> None:
        if self._worker is not None:
            self._worker.wake()


def _addon_key(addon: Document) -> str:
    return f"addon/{addon['clusterName']}|{addon['addonName']}"
