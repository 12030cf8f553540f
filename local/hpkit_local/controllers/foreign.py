"""A Kueue on the API server that isn't the local cloud's own: task governance can't be installed next to it."""

from __future__ import annotations

from hpkit_local.controllers.objects import MANAGED
from hpkit_local.kubernetes.api import Api

__all__ = ["foreign_kueue"]

_HOOKS = "/apis/admissionregistration.k8s.io/v1"


def foreign_kueue(api: Api) -> str:
    """Return why the add-on cannot be installed, or nothing."""
    foreign = [
        f"Deployment {deployment['metadata']['namespace']}/{deployment['metadata']['name']}"
        for deployment in api.items("/apis/apps/v1/deployments")
        if not deployment["metadata"].get("labels", {}).items() >= MANAGED.items()
        if "kueue"
        in (deployment["metadata"]["name"], deployment["metadata"].get("labels", {}).get("app.kubernetes.io/name"))
        or deployment["metadata"]["name"].endswith("kueue-controller-manager")
    ]
    for plural, object_kind in (
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    ):
        for webhooks in api.items(f"{_HOOKS}/{plural}"):
            services = [hook["clientConfig"].get("service") or {} for hook in webhooks.get("webhooks", [])]
            if any("-kueue-x-k8s-io-" in service.get("path", "") for service in services):
                foreign.append(f"{object_kind} {webhooks['metadata']['name']}")
    if not foreign:
        return ""
    return (
        f"Kueue is already installed in the cluster: {', '.join(foreign)}. Task governance brings its own: "
        "remove that one, then delete the add-on and create it again"
    )
