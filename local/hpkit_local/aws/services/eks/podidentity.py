"""EKS pod identity associations: a role for a service account."""

from __future__ import annotations

from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.eks.clusters import require_cluster
from hpkit_local.aws.services.iam import require_role

__all__ = ["associate", "dissociate"]

INVALID = "InvalidParameterException"
TRUST = "pods.eks.amazonaws.com"


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_CreatePodIdentityAssociation.html
def associate(ctx: Context, params: Record, *, owner: str = "") -> Record:
    """Create an association; `owner` is the add-on that it belongs to."""
    cluster, account = params["clusterName"], (params["namespace"], params["serviceAccount"])
    require_role(ctx, params["roleArn"], trusts=TRUST, purpose="the pod identity role", code=INVALID)
    for existing in ctx.table("podidentity").values():
        if existing["clusterName"] == cluster and (existing["namespace"], existing["serviceAccount"]) == account:
            raise ServiceError(
                "ResourceInUseException",
                f"Association already exists: {existing['associationId']}",
                status=409,
            )
    identifier = "a-" + ctx.token(17)
    association: Record = {
        "clusterName": cluster,
        "namespace": params["namespace"],
        "serviceAccount": params["serviceAccount"],
        "roleArn": params["roleArn"],
        "associationArn": ctx.arn("eks", f"podidentityassociation/{cluster}/{identifier}"),
        "associationId": identifier,
        "tags": params.get("tags", {}),
        "createdAt": ctx.now,
        "modifiedAt": ctx.now,
        "disableSessionTags": params.get("disableSessionTags", False),
        **{name: params[name] for name in ("targetRoleArn", "policy") if name in params},
        **({"ownerArn": owner} if owner else {}),
    }
    ctx.table("podidentity")[f"{cluster}|{identifier}"] = association
    return association


def dissociate(ctx: Context, cluster: str, *, owner: str) -> None:
    """Remove the associations that belong to an add-on."""
    table = ctx.table("podidentity")
    for key, entry in list(table.items()):
        if entry["clusterName"] == cluster and entry.get("ownerArn") == owner:
            del table[key]


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribePodIdentityAssociation.html
def _find(ctx: Context, params: Record) -> Record:
    require_cluster(ctx, params["clusterName"])
    association = ctx.table("podidentity").get(f"{params['clusterName']}|{params['associationId']}")
    if association is None:
        raise ServiceError("ResourceNotFoundException", f"Association not found: {params['associationId']}", status=404)
    return association


@operation("eks", "CreatePodIdentityAssociation")
def create_pod_identity_association(ctx: Context, params: Record) -> Record:
    """Bind a role to a service account; one association each."""
    require_cluster(ctx, params["clusterName"], active=True)
    return {"association": associate(ctx, params)}


@operation("eks", "DescribePodIdentityAssociation")
def describe_pod_identity_association(ctx: Context, params: Record) -> Record:
    """One association."""
    return {"association": _find(ctx, params)}


@operation("eks", "UpdatePodIdentityAssociation")
def update_pod_identity_association(ctx: Context, params: Record) -> Record:
    """Change the role; one that belongs to an add-on is changed through the add-on."""
    association = _find(ctx, params)
    _check_owner(association)
    if "roleArn" in params:
        require_role(ctx, params["roleArn"], trusts=TRUST, purpose="the pod identity role", code=INVALID)
    changes = ("roleArn", "disableSessionTags", "targetRoleArn", "policy")
    association.update({name: params[name] for name in changes if name in params}, modifiedAt=ctx.now)
    return {"association": association}


@operation("eks", "DeletePodIdentityAssociation")
def delete_pod_identity_association(ctx: Context, params: Record) -> Record:
    """Remove an association."""
    association = _find(ctx, params)
    _check_owner(association)
    del ctx.table("podidentity")[f"{association['clusterName']}|{association['associationId']}"]
    return {"association": association}


# Source: https://docs.aws.amazon.com/eks/latest/userguide/update-addon-role.html
def _check_owner(association: Record) -> None:
    if "ownerArn" in association:
        raise ServiceError(
            "InvalidRequestException",
            f"Association {association['associationId']} is managed by {association['ownerArn']}",
        )


@operation("eks", "ListPodIdentityAssociations")
def list_pod_identity_associations(ctx: Context, params: Record) -> Record:
    """Return summaries in pages, all or those of a namespace or service account."""
    cluster = require_cluster(ctx, params["clusterName"])
    shown = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId", "ownerArn")
    summaries = [
        {name: entry[name] for name in shown if name in entry}
        for entry in ctx.table("podidentity").values()
        if entry["clusterName"] == cluster["name"]
        and params.get("namespace", entry["namespace"]) == entry["namespace"]
        and params.get("serviceAccount", entry["serviceAccount"]) == entry["serviceAccount"]
    ]
    return page("associations", summaries, params, code=INVALID)
