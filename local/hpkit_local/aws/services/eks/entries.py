"""Records of access entries: created by calls, by HyperPod for its nodes, and by EKS for a cluster's creator."""

import hashlib

from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.lateness import is_effective, when_effective
from hpkit_local.aws.service import action

__all__ = [
    "POLICY_ARN",
    "changed",
    "create_entry",
    "effective_policies",
    "ensure_creator_entry",
    "ensure_node_entry",
    "entry_key",
    "is_admitted",
    "principal_arn",
    "remove_node_entry",
]

POLICY_ARN = "arn:aws:eks::aws:cluster-access-policy/"


def entry_key(cluster: str, principal: str) -> str:
    """Return where the record of an entry is."""
    return f"{cluster}|{principal}"


def principal_arn(ctx: Context, caller: str) -> str:
    """Return the IAM principal behind what STS GetCallerIdentity answers: for a session its role, path included."""
    _, _, _, _, account, resource = caller.split(":", 5)
    kind, _, rest = resource.partition("/")
    if kind != "assumed-role":
        return caller.replace(":sts:", ":iam:", 1)
    name = rest.partition("/")[0]
    roles = ctx.backend.moto.backend("iam", ctx.region).roles.values()
    return next((str(role.arn) for role in roles if role.name == name), f"arn:aws:iam::{account}:role/{name}")


def ensure_creator_entry(ctx: Context, cluster: Record) -> None:
    """bootstrapClusterCreatorAdminPermissions: the cluster's creator is its administrator."""
    bare = not cluster["bootstrap"] or cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP"
    if bare or entry_key(cluster["name"], cluster["creator"]) in ctx.table("access"):
        return
    policy = f"{POLICY_ARN}AmazonEKSClusterAdminPolicy"
    scope = {"type": "cluster", "namespaces": []}
    association = {"policyArn": policy, "accessScope": scope, "associatedAt": ctx.now, "modifiedAt": ctx.now}
    params = {"clusterName": cluster["name"], "principalArn": cluster["creator"]}
    create_entry(ctx, params, policies={policy: association})


def ensure_node_entry(ctx: Context, cluster: str, principal: str) -> bool:
    """Create the entry of HyperPod's node role; return False if one already existed."""
    if entry_key(cluster, principal) in ctx.table("access"):
        return False
    params = {"clusterName": cluster, "principalArn": principal, "type": "HYPERPOD_LINUX"}
    create_entry(ctx, params)
    return True


def remove_node_entry(ctx: Context, cluster: str, principal: str) -> None:
    """Delete the entry that HyperPod created."""
    if ctx.table("access").pop(entry_key(cluster, principal), None) is not None:
        ctx.controllers.noticed()


def create_entry(ctx: Context, params: Record, *, policies: Record | None = None) -> Record:
    """Create an entry from a checked request; `policies` are associations by ARN."""
    cluster, principal = params["clusterName"], params["principalArn"]
    entry_type = params.get("type", "STANDARD")
    _, _, _, _, account, resource = principal.split(":", 5)
    digest = hashlib.sha256(f"{cluster}{principal}".encode()).hexdigest()
    identifier = f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
    entity, name = resource.partition("/")[0], resource.rpartition("/")[2]
    default = f"arn:aws:sts::{account}:assumed-role/{name}/{{{{SessionName}}}}" if entity == "role" else principal
    groups = {"STANDARD": params.get("kubernetesGroups", [])}.get(entry_type, ["system:nodes"])
    if entry_type != "STANDARD":
        default = (
            "system:node:{{SessionName}}" if entry_type == "HYPERPOD_LINUX" else "system:node:{{EC2PrivateDNSName}}"
        )
    entry: Record = {
        "clusterName": cluster,
        "principalArn": principal,
        "kubernetesGroups": groups,
        "accessEntryArn": ctx.arn("eks", f"access-entry/{cluster}/{entity}/{account}/{name}/{identifier}"),
        "createdAt": ctx.now,
        "modifiedAt": ctx.now,
        "tags": params.get("tags", {}),
        "username": params.get("username", default),
        "type": entry_type,
    }
    ctx.table("access")[entry_key(cluster, principal)] = {
        "entry": entry,
        "policies": policies or {},
        "roleId": _role_id(ctx, principal),
    }
    changed(ctx, cluster, principal)
    return entry


def changed(ctx: Context, cluster: str, principal: str) -> None:
    """Let the controllers apply an entry now, and again when its additions take effect."""
    effective(ctx, cluster=cluster, principal=principal)
    when_effective(ctx, "access-entry", "eks.access-effective", cluster=cluster, principal=principal)


@action("eks.access-effective")
def effective(ctx: Context, *, cluster: str, principal: str) -> None:
    """Let the controllers apply an entry as far as it's effective."""
    if entry_key(cluster, principal) in ctx.table("access"):
        ctx.controllers.noticed()


def _role_id(ctx: Context, principal: str) -> str | None:
    """Return the unique ID of an entry's role; None if IAM has no such role."""
    roles = ctx.backend.moto.backend("iam", ctx.region).roles.values()
    return next((str(role.id) for role in roles if role.arn == principal), None)


def is_admitted(ctx: Context, found: Record) -> bool:
    """Return whether an entry is effective, so that tokens of its principal are accepted.

    EKS ties an entry to the role's unique ID, which a deleted role that is created again doesn't keep. It rejects an
    entry of a role that doesn't exist; here, such an entry admits nobody until the role is created.
    """
    principal = found["entry"]["principalArn"]
    if ":role/" in principal:
        role_id = _role_id(ctx, principal)
        if role_id is None or found["roleId"] not in (None, role_id):
            return False
    return is_effective(ctx, "access-entry", found["entry"]["createdAt"])


def effective_policies(ctx: Context, found: Record) -> list[Record]:
    """Return the associations of an entry that are effective."""
    return [each for each in found["policies"].values() if is_effective(ctx, "access-entry", each["associatedAt"])]
