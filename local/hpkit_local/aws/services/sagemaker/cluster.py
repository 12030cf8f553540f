"""CreateCluster, DescribeCluster, DeleteCluster and ListClusters."""

from hpkit.catalog import kubernetes_versions
from hpkit_local.aws.api import describes, existing, given, operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.controllers import RequeueAfter
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.service import MACHINES, action
from hpkit_local.aws.services.eks.entries import ensure_node_entry, remove_node_entry
from hpkit_local.aws.services.iam import may
from hpkit_local.aws.services.s3 import object_exists, object_key_arn
from hpkit_local.aws.services.sagemaker.records import busy, describe, is_in_period, record_event, require
from hpkit_local.aws.services.sagemaker.rules import (
    check_autoscaling,
    check_groups,
    check_instance_quotas,
    check_references,
    check_vpc,
    conflict,
    reject,
)
from hpkit_local.aws.services.sagemaker.scaling import launch_all, new_group, scale, set_autoscaling
from hpkit_local.aws.services.sagemaker.training_plans import check_training_plans

__all__: list[str] = []

SETTINGS = (
    "VpcConfig",
    "Orchestrator",
    "NodeRecovery",
    "NodeProvisioningMode",
    "ClusterRole",
    "TieredStorageConfig",
    "RestrictedInstanceGroupsConfig",
)
ROLE_RETRY_SECONDS = 5.0


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateCluster.html
@operation("sagemaker", "CreateCluster")
def create_cluster(ctx: Context, params: Record) -> Record:
    """Check everything the request names, and begin to create."""
    name = params["ClusterName"]
    if name in ctx.table("clusters"):
        raise ServiceError("ResourceInUse", f"Cluster with name '{name}' already exists")
    restricted = params.get("RestrictedInstanceGroups", [])
    groups = [*params.get("InstanceGroups", []), *restricted]
    if not groups:
        raise reject("A cluster needs at least one instance group")
    continuous = params.get("NodeProvisioningMode") == "Continuous"
    check_groups(groups, continuous=continuous, restricted={group["InstanceGroupName"] for group in restricted})
    eks = _eks_cluster(ctx, params)
    if ctx.faults.spend("role-race", "CreateCluster"):
        raise reject(f"Unable to assume the execution role {groups[0]['ExecutionRole']}: try again in a few seconds")
    check_vpc(ctx, params["VpcConfig"], eks["resourcesVpcConfig"]["vpcId"])
    check_references(ctx, groups, eks["resourcesVpcConfig"]["vpcId"])
    check_training_plans(ctx, {}, groups)
    check_instance_quotas(ctx, [], groups)
    settings = {"NodeRecovery": "Automatic", **given(params, *SETTINGS)}
    mode = params.get("AutoScaling", {}).get("Mode")
    check_autoscaling(ctx, settings, mode)
    cluster = _new_record(ctx, params, settings)
    ctx.table("clusters")[name] = cluster
    for role in dict.fromkeys(group["ExecutionRole"] for group in groups):
        if ensure_node_entry(ctx, eks["name"], role):
            cluster["entries"].append(role)
    record_event(ctx, cluster, f"Creation of cluster {name} started")
    cluster["status"] = ctx.begin("cluster.create", "hyperpod.created", name=name)
    return {"ClusterArn": cluster["arn"]}


# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html
def _eks_cluster(ctx: Context, params: Record) -> Record:
    """Return the EKS cluster, if it fits; one HyperPod cluster each."""
    arn = params.get("Orchestrator", {}).get("Eks", {}).get("ClusterArn")
    if arn is None:
        raise reject("The local AWS endpoint serves clusters orchestrated by EKS: give Orchestrator.Eks.ClusterArn")
    eks = next((cluster for cluster in ctx.table("eks").values() if cluster["arn"] == arn), None)
    if eks is None:
        raise reject(f"The EKS cluster {arn} does not exist")
    if eks["status"] != "ACTIVE":
        raise reject(f"The EKS cluster {arn} is {eks['status']}; it must be ACTIVE")
    if eks["version"] not in kubernetes_versions():
        raise reject(
            f"The EKS cluster {arn} runs Kubernetes {eks['version']}; supported: {', '.join(kubernetes_versions())}"
        )
    if eks["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        raise reject(f"The EKS cluster {arn} has authentication mode CONFIG_MAP; use API or API_AND_CONFIG_MAP")
    if "VpcConfig" not in params:
        raise reject("VpcConfig is required for a cluster orchestrated by EKS")
    for other in ctx.table("clusters").values():
        if other["settings"]["Orchestrator"]["Eks"]["ClusterArn"] == arn:
            raise reject(f"The EKS cluster {arn} already orchestrates HyperPod cluster '{other['name']}'")
    return eks


def _new_record(ctx: Context, params: Record, settings: Record) -> Record:
    return {
        "name": params["ClusterName"],
        "arn": ctx.arn("sagemaker", f"cluster/{ctx.token(12)}"),
        "created": ctx.now,
        "status": "",
        "failure": "",
        "served": False,
        "settings": settings,
        "groups": {
            group["InstanceGroupName"]: new_group(group, restricted=member == "RestrictedInstanceGroups")
            for member in ("InstanceGroups", "RestrictedInstanceGroups")
            for group in params.get(member, [])
        },
        "autoscaling": None,
        "wanted_autoscaling": params.get("AutoScaling"),
        "nodes": {},
        "events": [],
        "entries": [],
        "tags": {tag["Key"]: tag["Value"] for tag in params.get("Tags", [])},
    }


@action("hyperpod.created")
def created(ctx: Context, *, name: str, failure: str = "") -> None:
    """Apply: the cluster arrives in InService, or in Failed."""
    cluster = ctx.table("clusters")[name]
    failure = failure or _missing_script(ctx, cluster)
    if not failure:
        ctx.controllers.submit(f"dependencies/{name}", describe(cluster))
    if not failure and cluster["settings"].get("NodeProvisioningMode") != "Continuous":
        failure = launch_all(ctx, cluster)
    if failure:
        cluster["status"] = MACHINES["cluster.create"].failed
        cluster["failure"] = failure
        for group in cluster["groups"].values():
            group["status"] = MACHINES["group.create"].failed
        record_event(ctx, cluster, f"Creation failed: {failure}", level="Error")
        return
    cluster.update(status=MACHINES["cluster.create"].done, served=True)
    for group in list(cluster["groups"].values()):
        group["status"] = MACHINES["group.create"].done
        scale(ctx, cluster, group, since=0)
    if cluster["wanted_autoscaling"]:
        set_autoscaling(ctx, cluster, cluster["wanted_autoscaling"])
    record_event(ctx, cluster, f"Cluster {name} is InService")
    ctx.controllers.noticed()


def _missing_script(ctx: Context, cluster: Record) -> str:
    """Return why nodes can't start: they fetch their script with their execution role, and fail without it."""
    for group in cluster["groups"].values():
        config = group["spec"].get("LifeCycleConfig", {})
        script = config.get("OnCreate")
        if not script or not group["spec"]["InstanceCount"]:
            continue
        where = f"Instance group '{group['spec']['InstanceGroupName']}': lifecycle script {script}"
        if not object_exists(ctx, config["SourceS3Uri"], script):
            return f"{where} not found under {config['SourceS3Uri']}"
        key, role = object_key_arn(ctx, config["SourceS3Uri"], script), group["spec"]["ExecutionRole"]
        # S3's response to GetObject: reading an encrypted object requires permission to decrypt with its key.
        if key and not may(ctx, role, "kms:Decrypt", key):
            return (
                f"{where} cannot be read: AccessDenied: {role} is not authorized to perform: kms:Decrypt on "
                f"resource: {key} because no identity-based policy allows the kms:Decrypt action"
            )
    return ""


describes("sagemaker", "DescribeCluster", lambda ctx, params: describe(require(ctx, params["ClusterName"])))


@operation("sagemaker", "ListClusters")
def list_clusters(ctx: Context, params: Record) -> Record:
    """Summaries, filtered, sorted and in pages."""
    summaries = [
        _summary(cluster)
        for cluster in ctx.table("clusters").values()
        if params.get("NameContains", "") in cluster["name"]
        and is_in_period(cluster["created"], params, "CreationTime")
    ]
    if "TrainingPlanArn" in params:
        summaries = [entry for entry in summaries if params["TrainingPlanArn"] in entry.get("TrainingPlanArns", [])]
    key = "ClusterName" if params.get("SortBy") == "NAME" else "CreationTime"
    summaries.sort(key=lambda entry: entry[key], reverse=params.get("SortOrder") == "Descending")
    return page("ClusterSummaries", summaries, params, default=10)


def _summary(cluster: Record) -> Record:
    plans = [
        group["spec"]["TrainingPlanArn"] for group in cluster["groups"].values() if "TrainingPlanArn" in group["spec"]
    ]
    return {
        "ClusterArn": cluster["arn"],
        "ClusterName": cluster["name"],
        "CreationTime": cluster["created"],
        "ClusterStatus": cluster["status"],
        **({"TrainingPlanArns": plans} if plans else {}),
    }


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DeleteCluster.html
@operation("sagemaker", "DeleteCluster")
def delete_cluster(ctx: Context, params: Record) -> Record:
    """Begin to delete; quotas and the cluster policy must be gone first."""
    cluster = require(ctx, params["ClusterName"])
    if cluster["status"] not in ("InService", "Failed"):
        raise busy(cluster)
    attached = [
        f"{noun} {entry['name']} ({entry['id']})"
        for table, noun in (("quotas", "compute quota"), ("policies", "cluster scheduler config"))
        for entry in ctx.table(table).values()
        if entry["cluster"] == cluster["arn"]
    ]
    if attached:
        raise conflict(f"Cluster '{cluster['name']}' cannot be deleted while these are attached: {', '.join(attached)}")
    record_event(ctx, cluster, f"Deletion of cluster {cluster['name']} started")
    cluster["status"] = ctx.begin("cluster.delete", "hyperpod.deleted", name=cluster["name"])
    return {"ClusterArn": cluster["arn"]}


@action("hyperpod.deleted")
def deleted(ctx: Context, *, name: str, failure: str = "") -> None:
    """Remove the cluster; without its execution roles it hangs in Deleting, as on AWS."""
    cluster = ctx.table("clusters")[name]
    if failure:
        cluster["status"], cluster["failure"] = MACHINES["cluster.delete"].failed, failure
        return
    known = {role.arn for role in ctx.backend.moto.backend("iam", ctx.region).roles.values()}
    missing = {group["spec"]["ExecutionRole"] for group in cluster["groups"].values()} - known
    if missing and cluster["nodes"]:
        text = f"Network interfaces cannot be deleted: role {', '.join(sorted(missing))} does not exist"
        if cluster["failure"] != text:
            cluster["failure"] = text
            record_event(ctx, cluster, text, level="Error")
        raise RequeueAfter(ROLE_RETRY_SECONDS * ctx.backend.settings.latency_factor)
    ctx.controllers.submit(f"cluster/{name}", None)
    eks = cluster["settings"]["Orchestrator"]["Eks"]["ClusterArn"].rpartition("/")[2]
    for role in cluster["entries"]:
        remove_node_entry(ctx, eks, role)
    del ctx.table("clusters")[name]


MOST = 50


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_AddTags.html
def _tags(ctx: Context, arn: str) -> dict[str, str]:
    tables = map(ctx.table, ("clusters", "quotas", "policies"))
    entries = {entry["arn"]: entry for table in tables for entry in table.values()}
    tags: dict[str, str] = existing(
        entries, arn, f"Could not find resource with ARN: {arn}", code="ValidationException"
    )["tags"]
    return tags


def _listed(tags: dict[str, str]) -> list[Record]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_AddTags.html
@operation("sagemaker", "AddTags")
def add_tags(ctx: Context, params: Record) -> Record:
    """Set tags; a key that exists gets the new value."""
    tags = _tags(ctx, params["ResourceArn"])
    new_tags = {tag["Key"]: tag["Value"] for tag in params["Tags"]}
    if len({**tags, **new_tags}) > MOST:
        raise ServiceError("ResourceLimitExceeded", f"A resource can have up to {MOST} tags")
    tags.update(new_tags)
    return {"Tags": _listed(tags)}


@operation("sagemaker", "DeleteTags")
def delete_tags(ctx: Context, params: Record) -> Record:
    """Remove tags by key; a key that is not there is no error."""
    tags = _tags(ctx, params["ResourceArn"])
    for key in params["TagKeys"]:
        tags.pop(key, None)
    return {}


@operation("sagemaker", "ListTags")
def list_tags(ctx: Context, params: Record) -> Record:
    """Tags in pages."""
    return page("Tags", _listed(_tags(ctx, params["ResourceArn"])), params)
