"""Live EKS add-ons in the form of the organization file: version, configuration, and the role of their pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpkit.adopt.live_platform import LiveAddon, LivePlatform
from hpkit.plan.existing import POD_ACCOUNTS, ROLE_BY_USER

if TYPE_CHECKING:
    from hpkit.adopt.remarks import Remarks

__all__ = ["addons_of", "association_of"]


def addons_of(live: LivePlatform, remarks: Remarks) -> dict[str, Any]:
    """Return the add-ons for the file by name; omitted ones are added to the remarks, with the reason."""
    addons: dict[str, Any] = {}
    for name, addon in sorted(live.addons.items()):
        if addon.configuration is None:
            remarks.unmanaged.append(f"the add-on {name} {addon.version}: its configuration is neither JSON nor YAML")
            continue
        spec: dict[str, Any] = {"version": addon.version}
        if addon.configuration:
            spec["configurationValues"] = dict(addon.configuration)
        spec |= _role(name, addon, live)
        addons[name] = addon.version if spec.keys() == {"version"} else spec
    return addons


def _role(name: str, addon: LiveAddon, live: LivePlatform) -> dict[str, Any]:
    """Return the setting of the file that gives the add-on's pods the role that they have now."""
    if addon.described.get("serviceAccountRoleArn"):
        return {"serviceAccountRoleArn": addon.described["serviceAccountRoleArn"]}
    if addon.described.get("podIdentityAssociations"):
        return {"podIdentity": False}  # EKS creates and deletes them with the add-on
    account = POD_ACCOUNTS.get(name)
    found = association_of(live, account.namespace, account.name) if account else None
    if found is not None and not found.get("ownerArn"):
        return {"role": found["roleArn"]}
    # As it is: that need neither hpkit's role nor one from the user.
    return {"podIdentity": False} if account is not None and (account.managed or name in ROLE_BY_USER) else {}


def association_of(live: LivePlatform, namespace: str, service_account: str) -> Mapping[str, Any] | None:
    """Return the pod identity association of a service account."""
    for each in live.identities:
        if (each["namespace"], each["serviceAccount"]) == (namespace, service_account):
            return each
    return None
