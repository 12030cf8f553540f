"""The kinds of Kueue and Karpenter, from the projects' own manifests; Kueue's applied to the local API server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from local.kubernetes.api import Api

__all__ = ["apply_crds", "documents", "files"]

_MANIFESTS = Path(__file__).parent / "manifests"
_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# As in Kueue 0.19.2, config/components/crd/kustomization.yaml.
_CONVERTED = {"clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads"}


def documents(*parts: str) -> Iterator[dict[str, Any]]:
    """Yield every document of one manifest file below local/kubernetes/manifests."""
    # The C loader reads the 1.5 MB of kinds eight times as fast; it is the same safe one.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = _MANIFESTS.joinpath(*parts).read_text(encoding="utf-8")
    yield from (each for each in yaml.load_all(text, Loader=loader) if each)


def files(*projects: str) -> Iterator[tuple[str, str]]:
    """Yield folder and name of each file that holds a kind of the projects."""
    for project in projects:
        yield from ((project, file.name) for file in sorted((_MANIFESTS / project).glob("*_*.yaml")))


def apply_crds(api: Api, *, convert_url: str, bundle: str) -> None:
    """Apply Kueue's kinds; those that it converts between versions name its webhook by address."""
    names = []
    for file in files("kueue"):
        for crd in documents(*file):
            if crd["spec"]["names"]["plural"] in _CONVERTED:
                client = {"url": convert_url, "caBundle": bundle}
                webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
                crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
            api.apply(f"{_PATH}/{crd['metadata']['name']}", crd)
            names.append(crd["metadata"]["name"])
    _await_established(api, names)


def _await_established(api: Api, names: list[str]) -> None:
    for name in names:
        conditions = api.read(f"{_PATH}/{name}").get("status", {}).get("conditions") or []
        if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            raise ConnectionError(f"{name} is not established yet")
