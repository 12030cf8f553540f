"""What controllers read from EKS: resources, the principal of a caller, and whether callers reach the API server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpkit_local.aws.api import BackendView, part
from hpkit_local.aws.backend import Context
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.aws.services.eks.addons import addon_document
from hpkit_local.aws.services.eks.clusters import cluster_document
from hpkit_local.aws.services.eks.entries import effective_policies, entry_key, is_admitted, principal_arn
from hpkit_local.aws.services.eks.reachability import admitted_address, why_unreachable
from hpkit_local.aws.services.sts import identity

__all__ = ["Caller", "caller_of", "why_cut_off"]


@dataclass(frozen=True)
class Caller:
    """Whom STS GetCallerIdentity names for an access key, and the effective access entry of that principal."""

    user_id: str
    arn: str
    account: str
    principal: str
    entry: Mapping[str, Any] | None


def caller_of(view: BackendView, access_key: str, *, cluster: str) -> Caller:
    """Return the principal of an access key, and an EKS cluster's data about it."""
    with view.held():
        contexts = list(view.contexts())
        ctx = next((ctx for ctx in contexts if cluster in ctx.table("eks")), contexts[0])
        user_id, arn, account = identity(ctx, access_key)
        principal = principal_arn(ctx, arn)
        found = ctx.table("access").get(entry_key(cluster, principal))
        admitted = found is not None and is_admitted(ctx, found)
        return Caller(user_id, arn, account, principal, dict(found["entry"]) if found and admitted else None)


def why_cut_off(view: BackendView) -> str:
    """Return why the endpoint's callers can't reach the EKS cluster's API server, or ""."""
    with view.held():
        for ctx in view.contexts():
            for name, cluster in ctx.table("eks").items():
                address = ctx.backend.settings.caller_address or admitted_address(ctx, cluster)
                why = why_unreachable(ctx, cluster, address)
                return f"EKS cluster {name}: {why}" if why else ""
    return "there is no EKS cluster"


@part
def _add(snapshot: Snapshot, ctx: Context) -> None:
    clusters = {key: each for key, each in ctx.table("eks").items() if each["status"] not in ("CREATING", "FAILED")}
    snapshot.eks.update({name: cluster_document(eks) for name, eks in clusters.items()})
    unmade = ("CREATING", "CREATE_FAILED")
    addons = {key: each for key, each in ctx.table("addons").items() if each["status"] not in unmade}
    snapshot.addons.update({key: addon_document(addon) for key, addon in addons.items()})
    items = ctx.table("access").values()
    snapshot.entries.extend({**item["entry"], "policies": effective_policies(ctx, item)} for item in items)
