"""Live EKS add-ons as the organization file names them: version, configuration, and whose role their pods take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpkit.adopt.live import Live, LiveAddon
from hpkit.plan.existing import POD_ACCOUNTS

if TYPE_CHECKING:
    from hpkit.adopt.organization import Remarks

__all__ = ["addons_of", "association_of"]


def addons_of(live: Live, remarks: Remarks) -> dict[str, Any]:
    """Return add-on → what the file says of it; remarks hear of those that are left out, and why."""
    found: dict[str, Any] = {}
    for name, addon in sorted(live.addons.items()):
        if addon.configuration is None:
            remarks.stays.append(f"the add-on {name} {addon.version}: its configuration is neither JSON nor YAML")
            continue
        spec: dict[str, Any] = {"version": addon.version}
        if addon.configuration:
            spec["configurationValues"] = dict(addon.configuration)
        spec |= _role(name, addon, live)
        found[name] = addon.version if spec.keys() == {"version"} else spec
    return found


def _role(name: str, addon: LiveAddon, live: Live) -> dict[str, Any]:
    """Return how the file says where the add-on's pods have their rights from, as it is now."""
    if addon.described.get("serviceAccountRoleArn"):
        return {"serviceAccountRoleArn": addon.described["serviceAccountRoleArn"]}
    if addon.described.get("podIdentityAssociations"):
        return {"podIdentity": False}  # they are the add-on's own: they go and come with it
    account = POD_ACCOUNTS.get(name)
    found = association_of(live, account.namespace, account.name) if account else None
    if found is not None and not found.get("ownerArn"):
        return {"role": found["roleArn"]}
    return {"podIdentity": False} if account is not None and account.managed else {}


def association_of(live: Live, namespace: str, service_account: str) -> Mapping[str, Any] | None:
    """Return the pod identity association of a service account."""
    for each in live.identities:
        if (each["namespace"], each["serviceAccount"]) == (namespace, service_account):
            return each
    return None
