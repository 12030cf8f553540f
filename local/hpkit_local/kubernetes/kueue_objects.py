"""Kueue's objects in the cluster at its start: its kinds, and webhooks that the API server calls by address."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path
from typing import Any

from hpkit_local.kubernetes.api import Api
from hpkit_local.kubernetes.crds import apply_crds, documents
from hpkit_local.kubernetes.kueue import NAMESPACE, OUTSIDE, SECRET, SERVICE
from hpkit_local.kubernetes.pki import Pair, authority, signed

__all__ = ["apply_objects"]

_HOOKS = "/apis/admissionregistration.k8s.io/v1"
# Kueue's webhooks for foreign kinds skip the cluster's own namespaces; those for its own kinds don't. Source: its
# config/components/webhook/kustomization.yaml.
_OWN_KINDS = {"workload", "clusterqueue", "cohort", "localqueue", "resourceflavor"}


def apply_objects(api: Api, manifests: Path, folder: Path, *, port: int) -> None:
    """Write certificates into a folder, and apply kinds and webhooks.

    Raises OSError while the API server is unavailable.

    manifests: the folder with its CRDs and webhooks; port: the webhooks' port on loopback.
    """
    ca, pair = _certificates(folder)
    bundle = base64.b64encode(ca.certificate.read_bytes()).decode()
    base = f"https://127.0.0.1:{port}"
    apply_crds(api, manifests, convert_url=f"{base}/convert", bundle=bundle)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    api.apply(f"/api/v1/namespaces/{NAMESPACE}", namespace)
    api.apply(f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}", _secret(ca, pair))
    for hooks in documents(manifests / "manifests.yaml"):
        plural = f"{hooks['kind'].lower()}s"
        hooks["metadata"] = {"name": f"kueue-{hooks['metadata']['name']}"}
        hooks["webhooks"] = [_by_address(hook, base, bundle) for hook in hooks["webhooks"]]
        api.apply(f"{_HOOKS}/{plural}/{hooks['metadata']['name']}", hooks)


def _certificates(folder: Path) -> tuple[Pair, Pair]:
    """Return authority and server pair; Kueue's rotator keeps them only if names and files are these."""
    ca = authority(folder, "kueue-ca", rsa=True)
    pair = signed(folder, "webhook", issuer=ca, names=(f"{SERVICE}.{NAMESPACE}.svc", "127.0.0.1"))
    served = folder / "served"
    served.mkdir(mode=0o700, exist_ok=True)
    for source, name in ((ca.certificate, "ca.crt"), (pair.certificate, "tls.crt"), (pair.key, "tls.key")):
        shutil.copy(source, served / name)
    return ca, pair


def _secret(ca: Pair, pair: Pair) -> dict[str, Any]:
    files = {"ca.crt": ca.certificate, "ca.key": ca.key, "tls.crt": pair.certificate, "tls.key": pair.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "data": {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()},
    }


def _by_address(hook: dict[str, Any], base: str, bundle: str) -> dict[str, Any]:
    path = hook["clientConfig"]["service"]["path"]
    own = str(hook["name"]).removesuffix(".kb.io")[1:] in _OWN_KINDS
    scope = {} if own else {"namespaceSelector": OUTSIDE}
    return {**hook, **scope, "clientConfig": {"url": f"{base}{path}", "caBundle": bundle}}
