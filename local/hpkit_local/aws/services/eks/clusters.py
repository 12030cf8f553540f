"""EKS clusters: the control plane of HyperPod clusters.

moto's own model isn't used: it's ACTIVE immediately and forgets the access configuration.
"""

import base64
from typing import Any

from hpkit_local.aws.api import describes, existing, given, operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.controllers import ControllerError
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.service import MACHINES, action
from hpkit_local.aws.services.ec2.rules import require_security_group, require_subnet
from hpkit_local.aws.services.eks.entries import ensure_creator_entry, principal_arn
from hpkit_local.aws.services.eks.reachability import check_ranges
from hpkit_local.aws.services.eks.updates import finish_update, start_update
from hpkit_local.aws.services.eks.versions import check_policy_change, check_version, default_version, next_version
from hpkit_local.aws.services.iam import require_role
from hpkit_local.aws.services.kms import may_use, require_usable_key

__all__ = ["cluster_document", "require_cluster"]

INVALID = "InvalidParameterException"
# Source: Amazon EKS API reference, UpgradePolicyRequest.
DEFAULT_SUPPORT = "EXTENDED"
_UPDATE_TYPES = {
    "resourcesVpcConfig": "EndpointAccessUpdate",
    "logging": "LoggingUpdate",
    "accessConfig": "AccessConfigUpdate",
    "upgradePolicy": "UpgradePolicyUpdate",
    "deletionProtection": "DeletionProtectionUpdate",
}
_KEY_ACTIONS = ("kms:Encrypt", "kms:Decrypt", "kms:ListGrants", "kms:DescribeKey")


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
def require_cluster(ctx: Context, name: str, *, active: bool = False) -> Record:
    """Return the cluster by name, or EKS's own rejection."""
    cluster = existing(ctx.table("eks"), name, f"No cluster found for name: {name}.")
    if active and cluster["status"] not in ("ACTIVE", "UPDATING"):
        raise ServiceError("InvalidRequestException", f"Cluster '{name}' is not in ACTIVE status")
    return cluster


def cluster_document(cluster: Record) -> Record:
    """Return DescribeCluster's response."""
    hidden = {"bootstrap", "creator"}
    return {name: value for name, value in cluster.items() if name not in hidden and value is not None}


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html
@operation("eks", "CreateCluster")
def create_cluster(ctx: Context, params: Record) -> Record:
    """Check role, subnets, version and support, and begin to create."""
    name = params["name"]
    if name in ctx.table("eks"):
        raise ServiceError("ResourceInUseException", f"Cluster already exists with name: {name}")
    require_role(ctx, params["roleArn"], trusts="eks.amazonaws.com", purpose="the cluster role", code=INVALID)
    for each in params.get("encryptionConfig", ()):
        require_usable_key(ctx, each["provider"]["keyArn"], role_arn=params["roleArn"], code=INVALID)
    version = params.get("version") or default_version(ctx)
    check_version(ctx, version, params.get("upgradePolicy", {}).get("supportType", DEFAULT_SUPPORT))
    _ask_controllers(ctx, name)
    cluster = _new_record(ctx, params, version)
    ctx.table("eks")[name] = cluster
    cluster["status"] = ctx.begin("eks.create", "eks.created", name=name)
    return {"cluster": cluster_document(cluster)}


# Inferred from: https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html
def _ask_controllers(ctx: Context, name: str) -> None:
    try:
        ctx.controllers.eks_cluster_requested(name, ctx.backend.names("eks"))
    except ControllerError as error:
        raise ServiceError("ResourceLimitExceededException", str(error)) from None


def _creator(ctx: Context) -> str:
    _, caller, _ = ctx.backend.moto.backend("sts", ctx.region).get_caller_identity(ctx.access_key, ctx.region)
    return principal_arn(ctx, caller)


def _new_record(ctx: Context, params: Record, version: str) -> Record:
    name = params["name"]
    token = ctx.token(32, "0123456789ABCDEF")
    access = {"authenticationMode": "CONFIG_MAP", **params.get("accessConfig", {})}
    bootstrap = access.pop("bootstrapClusterCreatorAdminPermissions", True)
    return {
        "name": name,
        "arn": ctx.arn("eks", f"cluster/{name}"),
        "createdAt": ctx.now,
        "version": version,
        "endpoint": f"https://{token}.gr7.{ctx.region}.eks.amazonaws.com",
        "roleArn": params["roleArn"],
        "resourcesVpcConfig": _vpc_config(ctx, params["resourcesVpcConfig"], name),
        "kubernetesNetworkConfig": {
            "serviceIpv4Cidr": "172.20.0.0/16",
            "ipFamily": "ipv4",
            **params.get("kubernetesNetworkConfig", {}),
        },
        "logging": params.get("logging", _no_logging()),
        "identity": {"oidc": {"issuer": f"https://oidc.eks.{ctx.region}.amazonaws.com/id/{token}"}},
        "certificateAuthority": {"data": base64.b64encode(token.encode()).decode()},
        "platformVersion": "eks.1",
        "tags": params.get("tags", {}),
        "encryptionConfig": params.get("encryptionConfig"),
        "accessConfig": access,
        "upgradePolicy": {"supportType": DEFAULT_SUPPORT, **params.get("upgradePolicy", {})},
        "deletionProtection": params.get("deletionProtection", False),
        "health": {"issues": []},
        "bootstrap": bootstrap,
        "creator": _creator(ctx),
    }


def _no_logging() -> Record:
    kinds = ["api", "audit", "authenticator", "controllerManager", "scheduler"]
    return {"clusterLogging": [{"types": kinds, "enabled": False}]}


# Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
def _vpc_config(ctx: Context, config: Record, name: str) -> Record:
    subnets = [require_subnet(ctx, subnet, code=INVALID) for subnet in config.get("subnetIds", [])]
    if len({subnet.zone for subnet in subnets}) < 2:
        raise ServiceError(INVALID, "Subnets specified must be in at least two different AZs")
    vpcs = {subnet.vpc_id for subnet in subnets}
    if len(vpcs) > 1:
        raise ServiceError(INVALID, f"Subnets are in several VPCs: {', '.join(sorted(vpcs))}")
    (vpc_id,) = vpcs
    for group in config.get("securityGroupIds", []):
        require_security_group(ctx, group, vpc_id=vpc_id, code=INVALID)
    check_ranges(config, code=INVALID)
    ec2 = ctx.backend.moto.backend("ec2", ctx.region)
    created = ec2.create_security_group(
        f"eks-cluster-sg-{name}-{ctx.token(8, '0123456789')}",
        "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes",
        vpc_id=vpc_id,
        tags={f"kubernetes.io/cluster/{name}": "owned"},
    )
    ctx.backend.touched("ec2")
    return {
        "securityGroupIds": [],
        "endpointPublicAccess": True,
        "endpointPrivateAccess": False,
        "publicAccessCidrs": ["0.0.0.0/0"],
        **{key: value for key, value in config.items() if value is not None},
        "clusterSecurityGroupId": created.id,
        "vpcId": vpc_id,
    }


@action("eks.created")
def created(ctx: Context, *, name: str, failure: str = "") -> None:
    """Apply: the control plane answers, or has failed."""
    cluster = ctx.table("eks")[name]
    if failure:
        cluster["status"] = MACHINES["eks.create"].failed
        cluster["health"] = {"issues": [{"code": "InternalFailure", "message": failure}]}
        return
    connection = ctx.controllers.eks_cluster_created(cluster_document(cluster))
    if connection is not None:
        cluster["endpoint"] = connection.endpoint
        cluster["certificateAuthority"] = {"data": connection.certificate_authority}
    cluster["status"] = MACHINES["eks.create"].done
    ensure_creator_entry(ctx, cluster)


describes(
    "eks",
    "DescribeCluster",
    lambda ctx, params: cluster_document(require_cluster(ctx, params["name"])),
    member="cluster",
)


@operation("eks", "ListClusters")
def list_clusters(ctx: Context, params: Record) -> Record:
    """Names of the clusters."""
    return page("clusters", sorted(ctx.table("eks")), params, code=INVALID)


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateClusterConfig.html
@operation("eks", "UpdateClusterConfig")
def update_cluster_config(ctx: Context, params: Record) -> Record:
    """Change endpoint access, logging, authentication mode or deletion protection: one kind per call."""
    cluster = require_cluster(ctx, params["name"])
    _require_idle(cluster)
    changes = given(params, *_UPDATE_TYPES)
    if len(changes) != 1:
        raise ServiceError(
            INVALID, f"Only one type of update can be allowed per request; found {len(changes)}: {sorted(changes)}"
        )
    ((key, value),) = changes.items()
    _check_mode(cluster, key, value)
    if key == "upgradePolicy" and value.get("supportType") != cluster["upgradePolicy"]["supportType"]:
        check_policy_change(ctx, cluster["version"])
    if key == "resourcesVpcConfig":
        _check_access(cluster, value)
    return _begin_update(ctx, cluster, key, value, update_type=_UPDATE_TYPES[key])


def _begin_update(ctx: Context, cluster: Record, key: str, value: Any, **receipt: Any) -> Record:
    update = start_update(ctx, cluster["name"], **receipt)
    cluster["status"] = ctx.begin(
        "eks.update", "eks.updated", name=cluster["name"], key=key, value=value, update_id=update["id"]
    )
    return {"update": update}


# Source: https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html
def _check_access(cluster: Record, value: Any) -> None:
    """Reject ranges that aren't public, and an API server that can't be reached."""
    check_ranges(value, code=INVALID)
    both = {**cluster["resourcesVpcConfig"], **value}
    if not both["endpointPublicAccess"] and not both["endpointPrivateAccess"]:
        raise ServiceError(INVALID, "Private and public endpoint access cannot be false")


# Source: https://docs.aws.amazon.com/eks/latest/userguide/setting-up-access-entries.html
def _check_mode(cluster: Record, key: str, value: Any) -> None:
    """Allow only these changes of the authentication mode: CONFIG_MAP → API_AND_CONFIG_MAP → API."""
    order = ["CONFIG_MAP", "API_AND_CONFIG_MAP", "API"]
    if key != "accessConfig":
        return
    old, new = cluster["accessConfig"]["authenticationMode"], value.get("authenticationMode")
    if new and order.index(new) < order.index(old):
        raise ServiceError(INVALID, f"Unsupported authentication mode update from {old} to {new}")


# Source: https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
@operation("eks", "UpdateClusterVersion")
def update_cluster_version(ctx: Context, params: Record) -> Record:
    """Upgrade the control plane by one minor version."""
    cluster = require_cluster(ctx, params["name"])
    _require_idle(cluster)
    old, new = cluster["version"], params.get("version", "")
    if new != next_version(ctx, old):
        raise ServiceError(INVALID, f"Unsupported Kubernetes minor version update from {old} to {new}")
    _require_key(ctx, cluster)
    return _begin_update(ctx, cluster, "version", new, update_type="VersionUpdate", params={"Version": new})


# Source: https://docs.aws.amazon.com/eks/latest/best-practices/cluster-upgrades.html
def _require_key(ctx: Context, cluster: Record) -> None:
    """Reject an upgrade of a cluster whose role can't use the key of its Secrets.

    Source: Amazon EKS best practices guide, "Verify basic EKS requirements before upgrading". The message is EKS's own
    (aws/containers-roadmap issue 1533). The required actions aren't documented; these are what
    terraform-aws-modules/eks attaches (its issue 1913). CreateCluster requires none of them.
    """
    for config in cluster.get("encryptionConfig") or []:
        for action_name in _KEY_ACTIONS:
            if not may_use(ctx, cluster["roleArn"], action_name, config["provider"]["keyArn"]):
                raise ServiceError(
                    "InvalidRequestException",
                    f"Role with arn: {cluster['roleArn']}, could not be assumed because it does not exist or the "
                    "trusted entity is not correct",
                )


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateClusterConfig.html
def _require_idle(cluster: Record) -> None:
    if cluster["status"] != "ACTIVE":
        raise ServiceError(
            "ResourceInUseException",
            f"Cannot change cluster '{cluster['name']}' because its status is {cluster['status']}",
        )


@action("eks.updated")
def updated(ctx: Context, *, name: str, key: str, value: Any, update_id: str, failure: str = "") -> None:
    """Apply the new configuration, unless the update failed."""
    cluster = ctx.table("eks")[name]
    cluster["status"] = MACHINES["eks.update"].done
    if not failure:
        cluster[key] = {**cluster[key], **value} if isinstance(cluster.get(key), dict) else value
    finish_update(ctx, name, update_id, failure=failure)


# Source: https://docs.aws.amazon.com/eks/latest/userguide/deletion-protection.html
@operation("eks", "DeleteCluster")
def delete_cluster(ctx: Context, params: Record) -> Record:
    """Begin to delete; fails with a HyperPod cluster or deletion protection."""
    cluster = require_cluster(ctx, params["name"])
    if cluster["status"] != "FAILED":
        _require_idle(cluster)
    if cluster["deletionProtection"]:
        raise ServiceError(
            "InvalidRequestException",
            f"Cannot delete cluster '{cluster['name']}' because deletion protection is enabled",
        )
    cluster["status"] = ctx.begin("eks.delete", "eks.deleted", name=cluster["name"])
    return {"cluster": cluster_document(cluster)}


@action("eks.deleted")
def deleted(ctx: Context, *, name: str, failure: str = "") -> None:
    """Remove the cluster and all that hangs on it."""
    cluster = ctx.table("eks")[name]
    if failure:
        cluster["status"] = MACHINES["eks.delete"].failed
        return
    ctx.controllers.submit(f"eks/{name}", None)
    ec2 = ctx.backend.moto.backend("ec2", ctx.region)
    ec2.delete_security_group(group_id=cluster["resourcesVpcConfig"]["clusterSecurityGroupId"])
    ctx.backend.touched("ec2")
    del ctx.table("eks")[name]
    for kind in ("addons", "access", "podidentity", "updates"):
        for key in [key for key in ctx.table(kind) if key.split("|", 1)[0] == name]:
            del ctx.table(kind)[key]
    late = ctx.faults.value("late-logs", name)
    if late is not None and any(each["enabled"] for each in cluster["logging"]["clusterLogging"]):
        ctx.backend.later(ctx, late, "eks.logged", {"name": name})


@action("eks.logged")
def logged(ctx: Context, *, name: str) -> None:
    """Write the last logs of a cluster that is gone: its log group is there again, bare, if it was deleted meanwhile.

    Source: terraform-aws-modules/terraform-aws-eks issues 2446 and 2763, where CloudTrail names the service-linked role
    AWSServiceRoleForAmazonEKS; a Deny on the cluster's role is without effect.
    """
    log_group = f"/aws/eks/{name}/cluster"
    logs = ctx.backend.moto.backend("logs", ctx.region)
    if log_group not in logs.groups:
        logs.create_log_group(log_group, tags={})
        ctx.backend.touched("logs")
