"""Reads CRDs and other manifests from folders, and applies Kueue's CRDs to the local API server.

The API server reads and writes a CRD about ten times before it serves it. Most of a large one is descriptions of
fields, which only `kubectl explain` shows, so CRDs are created without them.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from hpkit_local.kubernetes.api import Api

__all__ = ["apply_crds", "crds_in", "documents", "without_descriptions"]

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DIGEST = "hpkit.local/digest"
_SCHEMA = "openAPIV3Schema"
# The parts of a schema that are schemas, lists of schemas, or schemas by name (kind JSONSchemaProps of the API).
_INNER = ("items", "additionalItems", "additionalProperties", "not", "allOf", "anyOf", "oneOf")
_FIELDS = ("properties", "patternProperties", "definitions", "dependencies")
_SERVED_SECONDS, _PAUSE_SECONDS = 5.0, 0.1
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


def without_descriptions(part: Any) -> Any:
    """Return a CRD, or a part of one, with schemas without descriptions."""
    if isinstance(part, list):
        return [without_descriptions(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {key: _bare(value) if key == _SCHEMA else without_descriptions(value) for key, value in part.items()}


def _bare(schema: Any) -> Any:
    """Return a schema without descriptions; its values, such as defaults, can have fields of that name."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {}
    for key, value in schema.items():
        if key in _FIELDS and isinstance(value, dict):
            bare[key] = {name: _bare(each) for name, each in value.items()}
        elif key != "description":
            bare[key] = _bare(value) if key in _INNER else value
    return bare


def apply_crds(api: Api, folder: Path, *, convert_url: str, bundle: str) -> None:
    """Apply Kueue's CRDs from a folder; CRDs with version conversion get their webhook's address.

    CRDs that are already up to date aren't applied: the API server takes seconds for them.
    """
    existing = {
        definition["metadata"]["name"]: definition["metadata"].get("annotations", {})
        for definition in api.items(_PATH, metadata_only=True)
    }
    crds = [without_descriptions(each) for each in crds_in(folder)]
    for crd in crds:
        metadata = crd["metadata"]
        if crd["spec"]["names"]["plural"] in _CONVERTED:
            client = {"url": convert_url, "caBundle": bundle}
            webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
            crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        digest = hashlib.sha256(json.dumps(crd, sort_keys=True).encode()).hexdigest()
        metadata["annotations"] = {**metadata.get("annotations", {}), _DIGEST: digest}
        if metadata["name"] not in existing:
            api.create(_PATH, crd)
        elif existing[metadata["name"]].get(_DIGEST) != digest:
            api.apply(f"{_PATH}/{metadata['name']}", crd)
    _await_served(api, crds)


def _await_served(api: Api, crds: Sequence[Mapping[str, Any]]) -> None:
    """Wait for the kinds. Raises ConnectionError if they aren't served in time; the caller tries again."""
    deadline = time.monotonic() + _SERVED_SECONDS
    for crd in crds:
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        for version in (each["name"] for each in crd["spec"]["versions"] if each["served"]):
            while plural not in api.plurals(f"{group}/{version}"):
                if time.monotonic() > deadline:
                    raise ConnectionError(f"{plural}.{group} isn't served yet")
                time.sleep(_PAUSE_SECONDS)
