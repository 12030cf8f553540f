"""EKS add-ons: create, update, delete, and what versions there are.

The role that an add-on gets from its configuration values and assumes through the cluster's OIDC provider. Sources:
Helm chart of the inference operator in aws/sagemaker-hyperpod-cli, _validateRequiredValues.tpl (the values that
rendering requires); SageMaker HyperPod developer guide, "IAM trust relationship issue" (the trust that the start
requires).
"""

import json
from collections.abc import Sequence
from typing import Any

from packaging.version import Version

from hpkit_local.aws.api import describes, existing, given, operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.lateness import is_effective
from hpkit_local.aws.service import MACHINES, action
from hpkit_local.aws.services.eks.access import associate, dissociate
from hpkit_local.aws.services.eks.addon_catalog import ADDONS, AddonInfo, check_configuration, find_addon
from hpkit_local.aws.services.eks.clusters import require_cluster
from hpkit_local.aws.services.eks.updates import finish_update, start_update
from hpkit_local.aws.services.iam import require_role, web_identities

__all__ = ["addon_document", "is_joined", "nodes_arrived"]

_REQUIRED = ("executionRoleArn", "tlsCertificateS3Bucket")
_PREFIX = "SageMakerHyperPodInference"


def unrendered(addon: Record) -> str:
    """Return why the chart of the add-on cannot be rendered with its values, or nothing."""
    values = _values(addon)
    for name in _REQUIRED:
        if not values.get(name):
            return f"execution error: {name} must be set"
    if not str(values["executionRoleArn"]).rpartition("/")[2].startswith(_PREFIX):
        return f"execution error: executionRoleArn must have a role name with prefix '{_PREFIX}'"
    return ""


def takes_configured_role(ctx: Context, addon: Record, info: AddonInfo) -> bool:
    """Return whether pods of the add-on can assume the role, through an existing provider that the role trusts."""
    issuer = ctx.table("eks")[addon["clusterName"]]["identity"]["oidc"]["issuer"].removeprefix("https://")
    subjects = {f"system:serviceaccount:{info.namespace}:{name}" for name, _ in info.accounts}
    return bool(subjects & web_identities(ctx, str(_values(addon)["executionRoleArn"]), issuer))


def _values(addon: Record) -> dict[str, Any]:
    found = json.loads(addon.get("configurationValues") or "{}")
    return found if isinstance(found, dict) else {}


_CERT_MANAGER = "cert-manager"
INVALID = "InvalidParameterException"
WAIT_FOR_NODES_SECONDS = 1200
POLL_SECONDS = 15


def addon_document(addon: Record) -> Record:
    """Return DescribeAddon's response."""
    return {name: value for name, value in addon.items() if value not in (None, "")}


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddon.html
def _find(ctx: Context, params: Record) -> Record:
    require_cluster(ctx, params["clusterName"])
    cluster, name = params["clusterName"], params["addonName"]
    return existing(ctx.table("addons"), f"{cluster}|{name}", f"No addon: {name} found in cluster: {cluster}")


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAddon.html
@operation("eks", "CreateAddon")
def create_addon(ctx: Context, params: Record) -> Record:
    """Check version and configuration, and begin to install."""
    cluster = require_cluster(ctx, params["clusterName"], active=True)
    info = find_addon(params["addonName"])
    key = f"{cluster['name']}|{info.name}"
    if key in ctx.table("addons"):
        raise ServiceError("ResourceInUseException", "Addon already exists.")
    version = params.get("addonVersion", info.default)
    check_configuration(info, version, cluster, params)
    _check_needs(ctx, cluster["name"], info)
    if "serviceAccountRoleArn" in params:
        require_role(ctx, params["serviceAccountRoleArn"], trusts="", purpose="the service account role", code=INVALID)
    addon = _new_record(ctx, cluster["name"], info, version, params)
    addon["podIdentityAssociations"] = _associate(ctx, addon, info, params.get("podIdentityAssociations", []))
    ctx.table("addons")[key] = addon
    addon["status"] = ctx.begin("addon.create", "addon.arrived", key=key, since=ctx.now)
    return {"addon": addon_document(addon)}


# Inferred from: https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html
def _check_needs(ctx: Context, cluster: str, info: AddonInfo) -> None:
    missing = [name for name in info.needs if f"{cluster}|{name}" not in ctx.table("addons")]
    # Any matching object in the cluster counts, regardless of who created it.
    if _CERT_MANAGER in missing and ctx.controllers.brings_cert_manager():
        missing.remove(_CERT_MANAGER)
    if missing:
        raise ServiceError("InvalidRequestException", f"Addon {info.name} needs the add-ons {', '.join(missing)}")


def _new_record(ctx: Context, cluster: str, info: AddonInfo, version: str, params: Record) -> Record:
    return {
        "addonName": info.name,
        "clusterName": cluster,
        "status": "",
        "addonVersion": version,
        "health": {"issues": []},
        "addonArn": ctx.arn("eks", f"addon/{cluster}/{info.name}/{ctx.uuid()}"),
        "createdAt": ctx.now,
        "modifiedAt": ctx.now,
        "serviceAccountRoleArn": params.get("serviceAccountRoleArn"),
        "tags": params.get("tags", {}),
        "publisher": "eks",
        "owner": "aws",
        "configurationValues": params.get("configurationValues"),
        "namespaceConfig": {"namespace": params.get("namespaceConfig", {}).get("namespace", info.namespace)},
    }


def _associate(ctx: Context, addon: Record, info: AddonInfo, entries: Sequence[Record]) -> list[str]:
    """Pod Identity associations in the request belong to the add-on."""
    arns = []
    for entry in entries:
        params = {**entry, "clusterName": addon["clusterName"], "namespace": info.namespace}
        arns.append(associate(ctx, params, owner=addon["addonArn"])["associationArn"])
    return arns


@action("addon.arrived")
def arrived(
    ctx: Context, *, key: str, since: float, update_id: str = "", change: str = "create", failure: str = "", **new: Any
) -> None:
    """Apply: the add-on runs, waits for nodes, or has failed."""
    addon = ctx.table("addons").get(key)
    if addon is None:
        return
    info = ADDONS[addon["addonName"]]
    machine = MACHINES[f"addon.{change}"]
    if failure:
        _fail(addon, machine.failed, "InternalFailure", failure)
    elif change == "create" and info.without_nodes != "ACTIVE" and not _has_nodes(ctx, addon["clusterName"]):
        if ctx.now - since < WAIT_FOR_NODES_SECONDS * ctx.backend.settings.latency_factor:
            seconds = POLL_SECONDS * ctx.backend.settings.latency_factor
            ctx.backend.later(ctx, seconds, "addon.arrived", {"key": key, "since": since})
            return
        _fail(
            addon,
            info.without_nodes,
            "InsufficientNumberOfReplicas",
            "The add-on is unhealthy because all deployments have all pods unscheduled: no nodes available",
        )
    elif info.role_in_values and (why := unrendered({**addon, **new})):
        _fail(addon, machine.failed, "ConfigurationConflict", why)
    elif (info.calls_at_start and not _has_role(ctx, {**addon, **new}, info, at=since)) or (
        info.role_in_values and not takes_configured_role(ctx, {**addon, **new}, info)
    ):
        _fail(
            addon,
            "DEGRADED",
            "InsufficientNumberOfReplicas",
            "The add-on is unhealthy because it doesn't have the desired number of replicas.",
        )
    else:
        settled = {**addon, **new, "health": {"issues": []}, "status": machine.done}
        ctx.controllers.submit(f"addon/{key}", addon_document(settled))
        addon.update(settled, modifiedAt=ctx.now)
    if update_id:
        finish_update(ctx, addon["clusterName"], update_id, failure=failure)


def _fail(addon: Record, status: str, code: str, message: str) -> None:
    addon["status"] = status
    addon["health"] = {"issues": [{"code": code, "message": message, "resourceIds": []}]}


def is_joined(node: Record) -> bool:
    """Return whether a HyperPod node has joined Kubernetes; records have `joined` until then."""
    return node["status"] == "Running" and "joined" not in node


def _has_nodes(ctx: Context, eks: str) -> bool:
    return any(
        is_joined(node)
        for cluster in ctx.table("clusters").values()
        if cluster["settings"]["Orchestrator"]["Eks"]["ClusterArn"].rpartition("/")[2] == eks
        for node in cluster["nodes"].values()
    )


def _has_role(ctx: Context, addon: Record, info: AddonInfo, *, at: float) -> bool:
    """Return whether pods of the add-on that were created at a time get credentials: by OIDC, or by Pod Identity."""
    if addon.get("serviceAccountRoleArn"):
        return True
    accounts = {name for name, _ in info.accounts}
    return any(
        association["clusterName"] == addon["clusterName"]
        and association["namespace"] == info.namespace
        and association["serviceAccount"] in accounts
        # EKS itself orders what it creates with the add-on.
        and ("ownerArn" in association or is_effective(ctx, "pod-identity", association["createdAt"], at=at))
        for association in ctx.table("podidentity").values()
    )


def nodes_arrived(ctx: Context, eks: str) -> None:
    """Nodes now run: add-ons that were DEGRADED without them start."""
    for key, addon in ctx.table("addons").items():
        if addon["clusterName"] == eks and addon["status"] == "DEGRADED":
            ctx.backend.later(ctx, 0.0, "addon.arrived", {"key": key, "since": ctx.now})


describes("eks", "DescribeAddon", lambda ctx, params: addon_document(_find(ctx, params)), member="addon")


@operation("eks", "ListAddons")
def list_addons(ctx: Context, params: Record) -> Record:
    """Names of the add-ons of a cluster."""
    cluster = require_cluster(ctx, params["clusterName"])
    installed = sorted(
        addon["addonName"] for addon in ctx.table("addons").values() if addon["clusterName"] == cluster["name"]
    )
    return page("addons", installed, params, code=INVALID)


@operation("eks", "UpdateAddon")
def update_addon(ctx: Context, params: Record) -> Record:
    """Change version, configuration or roles; the add-on shows the new ones when it is ACTIVE again."""
    addon = _find(ctx, params)
    _require_idle(addon)
    info = ADDONS[addon["addonName"]]
    cluster = require_cluster(ctx, params["clusterName"])
    version = str(params.get("addonVersion", addon["addonVersion"]))
    check_configuration(info, version, cluster, params)
    changes = given(params, "addonVersion", "serviceAccountRoleArn", "configurationValues")
    if "podIdentityAssociations" in params:
        dissociate(ctx, addon["clusterName"], owner=addon["addonArn"])
        changes["podIdentityAssociations"] = _associate(ctx, addon, info, params["podIdentityAssociations"])
    update = start_update(
        ctx, addon["clusterName"], update_type="AddonUpdate", addon=info.name, params=_receipt(params)
    )
    failure = _unmigrated(addon["addonVersion"], version, info)
    extra = {"failure": failure} if failure else {}
    addon["status"] = ctx.begin(
        "addon.update",
        "addon.arrived",
        key=f"{addon['clusterName']}|{info.name}",
        since=ctx.now,
        update_id=update["id"],
        change="update",
        **changes,
        **extra,
    )
    return {"update": update}


def _receipt(params: Record) -> dict[str, str]:
    members = ("addonVersion", "serviceAccountRoleArn", "resolveConflicts", "configurationValues")
    return {name[0].upper() + name[1:]: value for name, value in given(params, *members).items()}


def _unmigrated(old: str, new: str, info: AddonInfo) -> str:
    """Task governance 1.3 → 1.5 and later requires a migration of its CRDs (developer guide, "Upgrade")."""
    if info.name != "amazon-sagemaker-hyperpod-taskgovernance":
        return ""
    before, after = (Version(text.partition("-")[0]) for text in (old, new))
    if before < Version("1.4") and after >= Version("1.5"):
        return (
            'CustomResourceDefinition "cohorts.kueue.x-k8s.io" is invalid: '
            "status.storedVersions[0]: Invalid value: "
            '"v1alpha1": must appear in spec.versions'
        )
    return ""


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateAddon.html
def _require_idle(addon: Record) -> None:
    if addon["status"] in ("CREATING", "UPDATING", "DELETING"):
        raise ServiceError(
            "ResourceInUseException",
            f"Addon {addon['addonName']} cannot be updated as it is currently in {addon['status']} state",
        )


# Inferred from: https://docs.aws.amazon.com/eks/latest/APIReference/API_DeleteAddon.html
@operation("eks", "DeleteAddon")
def delete_addon(ctx: Context, params: Record) -> Record:
    """Begin to remove; with `preserve` the software stays on the cluster."""
    addon = _find(ctx, params)
    if addon["status"] in ("CREATING", "UPDATING"):
        raise ServiceError("InvalidRequestException", f"Addon {addon['addonName']} is {addon['status']}")
    if addon["status"] != "DELETING":
        key = f"{addon['clusterName']}|{addon['addonName']}"
        preserve = bool(params.get("preserve"))
        addon["status"] = ctx.begin("addon.delete", "addon.vanished", key=key, preserve=preserve)
    return {"addon": addon_document(addon)}


@action("addon.vanished")
def vanished(ctx: Context, *, key: str, preserve: bool, failure: str = "") -> None:
    """Apply: the add-on is gone, or could not be removed."""
    addon = ctx.table("addons").get(key)
    if addon is None:
        return
    if failure:
        _fail(addon, MACHINES["addon.delete"].failed, "InternalFailure", failure)
        return
    if not preserve:
        ctx.controllers.submit(f"addon/{key}", None)
    dissociate(ctx, addon["clusterName"], owner=addon["addonArn"])
    del ctx.table("addons")[key]
