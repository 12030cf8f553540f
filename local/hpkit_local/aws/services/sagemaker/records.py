"""Records of HyperPod clusters: how they are found and what DescribeCluster shows of them."""

from datetime import UTC, datetime
from typing import Any

from hpkit_local.aws.api import given, operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError

__all__ = ["busy", "current_count", "describe", "is_in_period", "moment", "nodes_of", "record_event", "require"]

GONE = "ShuttingDown"


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeCluster.html
def require(ctx: Context, name_or_arn: str) -> Record:
    """Return the cluster by name or ARN, or the service's rejection."""
    for cluster in ctx.table("clusters").values():
        if name_or_arn in (cluster["name"], cluster["arn"]):
            return cluster
    raise ServiceError("ResourceNotFound", f"Cluster with name '{name_or_arn}' not found")


def busy(cluster: Record) -> ServiceError:
    """Return the rejection of a change while another one runs."""
    return ServiceError(
        "ConflictException",
        f"Cluster '{cluster['name']}' cannot be changed while its status is {cluster['status']}",
    )


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CommonErrors.html
def moment(value: Any) -> float:
    """Return a timestamp of a request: a number of seconds or ISO 8601."""
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return datetime.fromisoformat(str(value)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ServiceError("SerializationException", f"{value!r} is not a timestamp") from None


def nodes_of(cluster: Record, group: str) -> list[Record]:
    """Nodes of a group that are not on their way out."""
    return [node for node in cluster["nodes"].values() if node["group"] == group and node["status"] != GONE]


def current_count(cluster: Record, group: str) -> int:
    """Return the instances of a group that have started."""
    return sum(1 for node in nodes_of(cluster, group) if node["status"] != "Pending")


def describe(cluster: Record) -> Record:
    """Return DescribeCluster's response."""
    document: Record = {
        "ClusterArn": cluster["arn"],
        "ClusterName": cluster["name"],
        "ClusterStatus": cluster["status"],
        "CreationTime": cluster["created"],
        "InstanceGroups": [_group(cluster, group) for group in cluster["groups"].values() if not group["restricted"]],
    }
    restricted = [_restricted(cluster, group) for group in cluster["groups"].values() if group["restricted"]]
    if restricted:
        document["RestrictedInstanceGroups"] = restricted
    if cluster["failure"]:
        document["FailureMessage"] = cluster["failure"]
    if cluster["autoscaling"]:
        document["AutoScaling"] = dict(cluster["autoscaling"])
    document.update(cluster["settings"])
    if "RestrictedInstanceGroupsConfig" in document:
        document["RestrictedInstanceGroupsConfig"] = _shared(document["RestrictedInstanceGroupsConfig"])
    return document


def _shared(config: Record) -> Record:
    """Return the environment that restricted groups share: each member's current and desired value."""
    given = config["SharedEnvironmentConfig"]
    details = {f"{when}{member}": value for member, value in given.items() for when in ("Current", "Desired")}
    return {"SharedEnvironmentConfig": details}


_AS_GIVEN = (
    "LifeCycleConfig",
    "ThreadsPerCore",
    "InstanceStorageConfigs",
    "OnStartDeepHealthChecks",
    "TrainingPlanArn",
    "OverrideVpcConfig",
    "ScheduledUpdateConfig",
    "CapacityRequirements",
    "NetworkInterface",
    "InstanceType",
)
_RESTRICTED = (
    "CurrentCount",
    "TargetCount",
    "InstanceGroupName",
    "InstanceType",
    "ExecutionRole",
    "ThreadsPerCore",
    "InstanceStorageConfigs",
    "OnStartDeepHealthChecks",
    "Status",
    "TrainingPlanArn",
    "OverrideVpcConfig",
    "ScheduledUpdateConfig",
)


def _group(cluster: Record, group: Record) -> Record:
    spec = group["spec"]
    name = spec["InstanceGroupName"]
    count = current_count(cluster, name)
    document: Record = {
        "InstanceGroupName": name,
        "CurrentCount": count,
        "TargetCount": spec["InstanceCount"],
        "ExecutionRole": spec["ExecutionRole"],
        "Status": group["status"],
        **given(spec, *_AS_GIVEN),
        **_image(group, spec),
    }
    if "MinInstanceCount" in spec:
        document["MinCount"] = spec["MinInstanceCount"]
    if "InstanceRequirements" in spec:
        document.update(_flexible(cluster, spec))
    if "KubernetesConfig" in spec:
        document["KubernetesConfig"] = kubernetes_details(spec["KubernetesConfig"])
    if "AutoPatchConfig" in spec:
        document["AutoPatchConfig"] = _patching(spec["AutoPatchConfig"])
    if group.get("software"):
        document["SoftwareUpdateStatus"] = group["software"]
    if group.get("scaling"):
        document["ActiveOperations"] = {"Scaling": 1}
    return document


def _restricted(cluster: Record, group: Record) -> Record:
    """Return a restricted group: an ordinary one's data as far as its shape allows, and its environment."""
    environment = group["spec"].get("EnvironmentConfig")
    document = given(_group(cluster, group), *_RESTRICTED)
    return {**document, **({"EnvironmentConfig": environment} if environment else {})}


def _image(group: Record, spec: Record) -> Record:
    release = spec.get("ImageReleaseVersion", group["release"])
    document = {
        "CurrentImageReleaseVersion": group["release"],
        "DesiredImageReleaseVersion": release,
        "ImageVersionStatus": "UpToDate" if group["release"] == release else "UpdateAvailable",
    }
    if "ImageId" in spec:
        document["CurrentImageId"] = document["DesiredImageId"] = spec["ImageId"]
    return document


def _flexible(cluster: Record, spec: Record) -> Record:
    types = spec["InstanceRequirements"]["InstanceTypes"]
    live = [node for node in nodes_of(cluster, spec["InstanceGroupName"]) if node["status"] != "Pending"]
    details = [
        {"InstanceType": kind, "CurrentCount": sum(1 for node in live if node["type"] == kind)} for kind in types
    ]
    return {
        "InstanceRequirements": {"CurrentInstanceTypes": types, "DesiredInstanceTypes": types},
        "InstanceTypeDetails": details,
    }


def kubernetes_details(config: Record) -> Record:
    """Return labels and taints, desired and current; here, the service applies them immediately."""
    document: Record = {}
    if "Labels" in config:
        document.update(CurrentLabels=config["Labels"], DesiredLabels=config["Labels"])
    if "Taints" in config:
        document.update(CurrentTaints=config["Taints"], DesiredTaints=config["Taints"])
    return document


def _patching(config: Record) -> Record:
    document = {name: value for name, value in config.items() if name != "PatchSchedule"}
    if "PatchSchedule" in config:
        document["CurrentPatchSchedule"] = document["DesiredPatchSchedule"] = config["PatchSchedule"]
    return document


KEPT = 1000


def record_event(
    ctx: Context,
    cluster: Record,
    description: str,
    *,
    group: str = "",
    node: str = "",
    level: str = "Info",
) -> None:
    """Write down something that happened to a cluster, a group or a node."""
    resource_type = "Instance" if node else "InstanceGroup" if group else "Cluster"
    event: Record = {
        "EventId": ctx.uuid(),
        "ClusterArn": cluster["arn"],
        "ClusterName": cluster["name"],
        "ResourceType": resource_type,
        "EventTime": ctx.now,
        "Description": description,
        "EventLevel": level,
    }
    if group:
        event["InstanceGroupName"] = group
    if node:
        event["InstanceId"] = node
    cluster["events"].append(event)
    del cluster["events"][:-KEPT]


@operation("sagemaker", "ListClusterEvents")
def list_cluster_events(ctx: Context, params: Record) -> Record:
    """Return events of a cluster, by default newest first."""
    cluster = require(ctx, params["ClusterName"])
    found = [event for event in cluster["events"] if _wanted(event, params)]
    found.sort(key=lambda event: event["EventTime"], reverse=params.get("SortOrder") != "Ascending")
    return page("Events", found, params, default=10)


def _wanted(event: Record, params: Record) -> bool:
    members = {"InstanceGroupName": "InstanceGroupName", "NodeId": "InstanceId", "ResourceType": "ResourceType"}
    if any(params[wanted] != event.get(members[wanted]) for wanted in given(params, *members)):
        return False
    return is_in_period(event["EventTime"], params, "EventTime")


def is_in_period(time: float, params: Record, member: str) -> bool:
    """Return whether a time is between a request's `<member>After` and `<member>Before`, as far as it has them."""
    after, before = params.get(f"{member}After"), params.get(f"{member}Before")
    return (after is None or time > moment(after)) and (before is None or time < moment(before))
