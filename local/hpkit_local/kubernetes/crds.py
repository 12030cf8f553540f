"""Reads CRDs and other manifests from folders, and applies Kueue's CRDs to the local API server."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from hpkit_local.kubernetes.api import Api

__all__ = ["apply_crds", "crds_in", "documents"]

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DIGEST = "hpkit.local/digest"
# As in Kueue 0.19.2, config/components/crd/kustomization.yaml.
_CONVERTED = {"clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads"}


def documents(file: Path) -> Iterator[dict[str, Any]]:
    """Yield every document of a manifest file."""
    # The C loader reads the 1.5 MB of CRDs eight times as fast; it is the same safe one.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yield from (each for each in yaml.load_all(file.read_text(encoding="utf-8"), Loader=loader) if each)


def crds_in(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every CRD of a folder; their files are named <group>_<plural>.yaml, as controller-gen names them."""
    for file in sorted(folder.glob("*_*.yaml")):
        yield from documents(file)


def apply_crds(api: Api, folder: Path, *, convert_url: str, bundle: str) -> None:
    """Apply Kueue's CRDs from a folder; CRDs with version conversion get their webhook's address.

    CRDs that are already up to date aren't applied: the API server takes seconds for them.
    """
    existing = {
        definition["metadata"]["name"]: definition["metadata"].get("annotations", {})
        for definition in api.items(_PATH, metadata_only=True)
    }
    names = []
    for crd in crds_in(folder):
        metadata = crd["metadata"]
        if crd["spec"]["names"]["plural"] in _CONVERTED:
            client = {"url": convert_url, "caBundle": bundle}
            webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
            crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        digest = hashlib.sha256(json.dumps(crd, sort_keys=True).encode()).hexdigest()
        metadata["annotations"] = {**metadata.get("annotations", {}), _DIGEST: digest}
        names.append(metadata["name"])
        if metadata["name"] not in existing:
            api.create(_PATH, crd)
        elif existing[metadata["name"]].get(_DIGEST) != digest:
            api.apply(f"{_PATH}/{metadata['name']}", crd)
    _await_established(api, names)


def _await_established(api: Api, names: list[str]) -> None:
    for name in names:
        conditions = api.read(f"{_PATH}/{name}").get("status", {}).get("conditions") or []
        if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            raise ConnectionError(f"{name} isn't established yet")
