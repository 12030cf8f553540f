"""Reads what runs and what EKS offers. Changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from boto3 import Session

from hpkit.catalog import OfferedAddon
from hpkit.clients.aws import call_all
from hpkit.clients.calls import ApiCall, FailedCall, Responses
from hpkit.cluster.live.model import Observed
from hpkit.cluster.upgrade.model import Running

__all__ = ["offered_addons", "running_of"]


def running_of(observed: Observed, offered: Mapping[tuple[str, str], OfferedAddon]) -> Running:
    """Return the versions that a platform runs; its AWS data must have been read."""
    platform = observed.platform
    if platform is None:
        return Running("")
    nodes = Counter((node.group, node.release, node.release_status) for node in platform.nodes)
    addons = {addon.name: addon.version for addon in platform.addons}
    return Running(platform.kubernetes, addons, dict(nodes), offered, known=True)


def offered_addons(
    session: Session, names: Sequence[str], versions: Sequence[str]
) -> tuple[dict[tuple[str, str], OfferedAddon], list[str]]:
    """Return (add-on, Kubernetes version) → EKS's versions, and sentences about failed calls."""
    calls = {
        (name, version): ApiCall("eks", "DescribeAddonVersions", {"addonName": name, "kubernetesVersion": version})
        for name in names
        for version in versions
    }
    responses = Responses(call_all(session, calls.values(), on_progress=lambda *_: None))
    offered: dict[tuple[str, str], OfferedAddon] = {}
    failed: dict[str, None] = {}
    for key, call in calls.items():
        answer = responses.of(call)
        if isinstance(answer, FailedCall):
            failed[f"{answer.action}: {answer.code}: {answer.message}. {answer.fix}"] = None
        elif answer["addons"]:
            offered[key] = _offered(answer["addons"][0], key[1])
    return offered, list(failed)


def _offered(addon: Mapping[str, Any], kubernetes: str) -> OfferedAddon:
    listed = {
        version["addonVersion"]: any(
            compatibility.get("defaultVersion")
            for compatibility in version.get("compatibilities") or ()
            if compatibility["clusterVersion"] == kubernetes
        )
        for version in addon.get("addonVersions") or ()
    }
    return OfferedAddon(tuple(listed), next((version for version, is_default in listed.items() if is_default), None))
