"""Live EKS add-ons as the organization file names them: version, configuration, and whose role their pods take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpkit.adopt.live import Live, LiveAddon

if TYPE_CHECKING:
    from hpkit.adopt.organization import Remarks

__all__ = ["addons_of", "association_of"]


def addons_of(live: Live, remarks: Remarks, pod_roles: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Return add-on → what the file says of it; remarks hear of those that are left out, and why.

    pod_roles: add-on that the kit would give a role → namespace and service account of the pods that take it.
    """
    found: dict[str, Any] = {}
    for name, addon in sorted(live.addons.items()):
        why = _why_not(addon)
        if why:
            remarks.stays.append(f"the add-on {name} {addon.version}: {why}")
            continue
        spec: dict[str, Any] = {"version": addon.version}
        if addon.configuration:
            spec["configurationValues"] = dict(addon.configuration)
        spec |= _role(addon, live, pod_roles.get(name))
        found[name] = addon.version if spec.keys() == {"version"} else spec
    return found


def _why_not(addon: LiveAddon) -> str:
    if addon.configuration is None:
        return "its configuration is neither JSON nor YAML"
    if addon.described.get("podIdentityAssociations"):
        return "it has pod identity associations of its own, which the file cannot say"
    return ""


def _role(addon: LiveAddon, live: Live, wanted: tuple[str, str] | None) -> dict[str, Any]:
    """Return how the file says where the add-on's pods have their rights from, as it is now."""
    if addon.described.get("serviceAccountRoleArn"):
        return {"serviceAccountRoleArn": addon.described["serviceAccountRoleArn"]}
    if wanted is None:
        return {}
    found = association_of(live, *wanted)
    # One that an add-on owns goes and comes with that add-on.
    return {"role": found["roleArn"]} if found and not found.get("ownerArn") else {"podIdentity": False}


def association_of(live: Live, namespace: str, service_account: str) -> Mapping[str, Any] | None:
    """Return the pod identity association of a service account."""
    for each in live.identities:
        if (each["namespace"], each["serviceAccount"]) == (namespace, service_account):
            return each
    return None
