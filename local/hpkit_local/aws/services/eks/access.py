"""EKS access entries with their access policies, and pod identity associations: roles for service accounts."""

from hpkit_local.aws.api import describes, existing, given, operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.eks.clusters import require_cluster
from hpkit_local.aws.services.eks.entries import POLICY_ARN, changed, create_entry, entry_key
from hpkit_local.aws.services.iam import require_role

__all__ = ["associate", "dissociate"]

INVALID = "InvalidParameterException"
TYPES = ("STANDARD", "EC2_LINUX", "EC2_WINDOWS", "EC2", "FARGATE_LINUX", "HYBRID_LINUX", "HYPERPOD_LINUX")
# EKS user guide, "Access policy permissions".
POLICIES = (
    "AmazonEKSAdminPolicy",
    "AmazonEKSAdminViewPolicy",
    "AmazonEKSClusterAdminPolicy",
    "AmazonEKSEditPolicy",
    "AmazonEKSViewPolicy",
    "AmazonSagemakerHyperpodClusterPolicy",
    "AmazonSagemakerHyperpodControllerPolicy",
    "AmazonSagemakerHyperpodInferenceMonitoringPolicy",
    "AmazonSagemakerHyperpodInferencePolicy",
    "AmazonSagemakerHyperpodSpacePolicy",
    "AmazonSagemakerHyperpodSpaceTemplatePolicy",
    "AmazonSagemakerHyperpodSystemNamespacePolicy",
    "AmazonSagemakerHyperpodTrainingPolicy",
    "AmazonSagemakerHyperpodUserClusterPolicy",
)
TRUST = "pods.eks.amazonaws.com"


# Source: https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html
def _cluster(ctx: Context, name: str) -> Record:
    cluster = require_cluster(ctx, name)
    if cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        raise ServiceError(
            "InvalidRequestException",
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] "
            "to perform this operation.",
        )
    return cluster


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAccessEntry.html
def _entry(ctx: Context, params: Record) -> Record:
    _cluster(ctx, params["clusterName"])
    message = f"The specified principalArn could not be found: {params['principalArn']}"
    return existing(ctx.table("access"), entry_key(params["clusterName"], params["principalArn"]), message)


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAccessEntry.html
@operation("eks", "CreateAccessEntry")
def create_access_entry(ctx: Context, params: Record) -> Record:
    """Give an IAM principal access to the cluster."""
    _cluster(ctx, params["clusterName"])
    entry_type = params.get("type", "STANDARD")
    if entry_type not in TYPES:
        raise ServiceError(INVALID, f"The type {entry_type} is not valid; valid types: {', '.join(TYPES)}")
    principal = params["principalArn"]
    if not principal.startswith("arn:aws:iam::") or principal.count(":") < 5 or "/" not in principal:
        raise ServiceError(INVALID, f"The specified principalArn is invalid: invalid principal: {principal}")
    if ":role/aws-service-role/" in principal:
        raise ServiceError(INVALID, f"The specified principalArn is invalid: {principal} is a service-linked role")
    if entry_type != "STANDARD" and ("kubernetesGroups" in params or "username" in params):
        raise ServiceError(INVALID, f"kubernetesGroups and username can only be set for STANDARD, not for {entry_type}")
    _check_groups(params)
    if entry_key(params["clusterName"], principal) in ctx.table("access"):
        raise ServiceError(
            "ResourceInUseException", "The specified access entry resource is already in use on this cluster."
        )
    return {"accessEntry": create_entry(ctx, params)}


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAccessEntry.html
def _check_groups(params: Record) -> None:
    for group in params.get("kubernetesGroups", []):
        if group.startswith(("system:", "eks:", "aws:", "amazon:", "iam:")):
            raise ServiceError(INVALID, f"The kubernetes group name {group} is invalid: reserved prefix")


describes("eks", "DescribeAccessEntry", lambda ctx, params: _entry(ctx, params)["entry"], member="accessEntry")


# Inferred from: https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateAccessEntry.html
@operation("eks", "UpdateAccessEntry")
def update_access_entry(ctx: Context, params: Record) -> Record:
    """Change groups or user name of a STANDARD entry."""
    entry = _entry(ctx, params)["entry"]
    if entry["type"] != "STANDARD":
        raise ServiceError("InvalidRequestException", f"An access entry of type {entry['type']} cannot be updated")
    _check_groups(params)
    entry.update(given(params, "kubernetesGroups", "username"), modifiedAt=ctx.now)
    changed(ctx, entry["clusterName"], entry["principalArn"])
    return {"accessEntry": entry}


@operation("eks", "DeleteAccessEntry")
def delete_access_entry(ctx: Context, params: Record) -> Record:
    """Shut an IAM principal out."""
    _entry(ctx, params)
    del ctx.table("access")[entry_key(params["clusterName"], params["principalArn"])]
    ctx.controllers.noticed()
    return {}


@operation("eks", "ListAccessEntries")
def list_access_entries(ctx: Context, params: Record) -> Record:
    """Principals in pages, all or those with a policy."""
    cluster = _cluster(ctx, params["clusterName"])
    policy_arn = params.get("associatedPolicyArn")
    principals = sorted(
        item["entry"]["principalArn"]
        for item in ctx.table("access").values()
        if item["entry"]["clusterName"] == cluster["name"] and (policy_arn is None or policy_arn in item["policies"])
    )
    return page("accessEntries", principals, params, code=INVALID)


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_AssociateAccessPolicy.html
@operation("eks", "AssociateAccessPolicy")
def associate_access_policy(ctx: Context, params: Record) -> Record:
    """Give an entry a policy's permissions in the cluster or in namespaces; a second call changes the scope."""
    entry = _entry(ctx, params)
    policy, scope = params["policyArn"], params["accessScope"]
    if policy.removeprefix(POLICY_ARN) not in POLICIES or not policy.startswith(POLICY_ARN):
        raise ServiceError(INVALID, f"The policyArn parameter format is not valid: {policy}")
    if entry["entry"]["type"] != "STANDARD":
        raise ServiceError(
            "InvalidRequestException", f"An access entry of type {entry['entry']['type']} takes no access policy"
        )
    namespaces = scope.get("namespaces", [])
    if (scope.get("type") == "namespace") != bool(namespaces):
        raise ServiceError(INVALID, "accessScope: namespaces go with type namespace, and only with it")
    old = entry["policies"].get(policy, {})
    association = {
        "policyArn": policy,
        "accessScope": {"type": scope.get("type"), "namespaces": namespaces},
        "associatedAt": old.get("associatedAt", ctx.now),
        "modifiedAt": ctx.now,
    }
    entry["policies"][policy] = association
    changed(ctx, params["clusterName"], params["principalArn"])
    return {**given(params, "clusterName", "principalArn"), "associatedAccessPolicy": association}


# Inferred from: https://docs.aws.amazon.com/eks/latest/APIReference/API_DisassociateAccessPolicy.html
@operation("eks", "DisassociateAccessPolicy")
def disassociate_access_policy(ctx: Context, params: Record) -> Record:
    """Remove a policy from an entry."""
    policies, arn = _entry(ctx, params)["policies"], params["policyArn"]
    existing(policies, arn, f"The specified policyArn could not be found: {arn}")
    del policies[arn]
    changed(ctx, params["clusterName"], params["principalArn"])
    return {}


@operation("eks", "ListAssociatedAccessPolicies")
def list_associated_access_policies(ctx: Context, params: Record) -> Record:
    """Policies of an entry in pages."""
    found = list(_entry(ctx, params)["policies"].values())
    return {
        **given(params, "clusterName", "principalArn"),
        **page("associatedAccessPolicies", found, params, code=INVALID),
    }


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_CreatePodIdentityAssociation.html
def associate(ctx: Context, params: Record, *, owner: str = "") -> Record:
    """Create an association; `owner` is the add-on that it belongs to."""
    cluster, account = params["clusterName"], (params["namespace"], params["serviceAccount"])
    require_role(ctx, params["roleArn"], trusts=TRUST, purpose="the pod identity role", code=INVALID)
    for other in ctx.table("podidentity").values():
        if other["clusterName"] == cluster and (other["namespace"], other["serviceAccount"]) == account:
            raise ServiceError("ResourceInUseException", f"Association already exists: {other['associationId']}")
    identifier = "a-" + ctx.token(17)
    association: Record = {
        **given(params, "clusterName", "namespace", "serviceAccount", "roleArn", "targetRoleArn", "policy"),
        "associationArn": ctx.arn("eks", f"podidentityassociation/{cluster}/{identifier}"),
        "associationId": identifier,
        "tags": params.get("tags", {}),
        "createdAt": ctx.now,
        "modifiedAt": ctx.now,
        "disableSessionTags": params.get("disableSessionTags", False),
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
    key = f"{params['clusterName']}|{params['associationId']}"
    return existing(ctx.table("podidentity"), key, f"Association not found: {params['associationId']}")


@operation("eks", "CreatePodIdentityAssociation")
def create_pod_identity_association(ctx: Context, params: Record) -> Record:
    """Bind a role to a service account; one association each."""
    require_cluster(ctx, params["clusterName"], active=True)
    return {"association": associate(ctx, params)}


describes("eks", "DescribePodIdentityAssociation", _find, member="association")


@operation("eks", "UpdatePodIdentityAssociation")
def update_pod_identity_association(ctx: Context, params: Record) -> Record:
    """Change the role; one that belongs to an add-on is changed through the add-on."""
    association = _find(ctx, params)
    _check_owner(association)
    if "roleArn" in params:
        require_role(ctx, params["roleArn"], trusts=TRUST, purpose="the pod identity role", code=INVALID)
    changes = given(params, "roleArn", "disableSessionTags", "targetRoleArn", "policy")
    association.update(changes, modifiedAt=ctx.now)
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
        given(entry, *shown)
        for entry in ctx.table("podidentity").values()
        if entry["clusterName"] == cluster["name"]
        and params.get("namespace", entry["namespace"]) == entry["namespace"]
        and params.get("serviceAccount", entry["serviceAccount"]) == entry["serviceAccount"]
    ]
    return page("associations", summaries, params, code=INVALID)
