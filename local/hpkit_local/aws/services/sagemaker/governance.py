"""The common part of compute quotas and cluster policies: versions, statuses, lists."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from hpkit_local.aws.api import existing, given, operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.protocol import service_model
from hpkit_local.aws.service import MACHINES, action
from hpkit_local.aws.services.sagemaker.records import is_in_period
from hpkit_local.aws.services.sagemaker.rules import conflict, reject

__all__ = [
    "POLICY",
    "VersionedResource",
    "begin_update",
    "cluster_by_arn",
    "created",
    "document",
    "find",
    "register",
    "version_of",
]

ADDON = "amazon-sagemaker-hyperpod-taskgovernance"
RETRYABLE = ("Created", "Updated", "UpdateFailed")
MOVING = ("Creating", "Updating", "Deleting")


@dataclass(frozen=True)
class VersionedResource:
    """The differences between the two kinds of objects that have versions: compute quotas and cluster policies.

    `details` adds to Describe's response.
    """

    table: str
    kind: str
    title: str
    path: str
    details: Callable[[Record], Record] = lambda _: {}


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-setup.html
def cluster_by_arn(ctx: Context, arn: str) -> Record:
    """Return the cluster to govern: it must be there, running, and have the task governance add-on."""
    clusters = {entry["arn"]: entry for entry in ctx.table("clusters").values()}
    cluster = existing(clusters, arn, f"Cluster {arn} does not exist", code="ValidationException")
    if cluster["status"] not in ("InService", "Updating", "SystemUpdating"):
        raise conflict(f"Cluster '{cluster['name']}' is {cluster['status']}")
    eks = cluster["settings"]["Orchestrator"]["Eks"]["ClusterArn"].rpartition("/")[2]
    addon = ctx.table("addons").get(f"{eks}|{ADDON}")
    if addon is None or addon["status"] not in ("ACTIVE", "DEGRADED", "UPDATING"):
        state = "not installed" if addon is None else addon["status"]
        raise reject(f"EKS cluster '{eks}' has no active add-on {ADDON} ({state}); install it first")
    return cluster


def principal(ctx: Context) -> Record:
    """Return the caller: the endpoint has one account and verifies no signatures."""
    return {
        "IamIdentity": {
            "Arn": f"arn:aws:iam::{ctx.account}:user/{ctx.access_key or 'local'}",
            "PrincipalId": ctx.access_key or "local",
        }
    }


def new_entry(ctx: Context, resource: VersionedResource, params: Record, body: Record) -> Record:
    """Return a new object in its first version."""
    entry_id = ctx.token(12)
    entry: Record = {
        "id": entry_id,
        "arn": ctx.arn("sagemaker", f"{resource.path}/{entry_id}"),
        "name": params["Name"],
        "cluster": params["ClusterArn"],
        "status": "",
        "failure": "",
        "created": ctx.now,
        "modified": ctx.now,
        "by": principal(ctx),
        "modified_by": principal(ctx),
        "version": 1,
        "versions": {"1": body},
        "tags": {tag["Key"]: tag["Value"] for tag in params.get("Tags", [])},
    }
    ctx.table(resource.table)[entry_id] = entry
    return entry


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeComputeQuota.html
def find(ctx: Context, resource: VersionedResource, entry_id: str) -> Record:
    """Return the object by id, or the service's rejection."""
    message = f"{resource.title} with id '{entry_id}' not found"
    return existing(ctx.table(resource.table), entry_id, message, code="ResourceNotFound")


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeComputeQuota.html
def version_of(entry: Record, resource: VersionedResource, wanted: int | None) -> tuple[int, Record]:
    """Return the body of a version, by default the newest."""
    number = entry["version"] if wanted is None else wanted
    message = f"{resource.title} '{entry['id']}' has no version {number}"
    return number, existing(entry["versions"], str(number), message, code="ResourceNotFound")


def document(entry: Record, resource: VersionedResource, *, version: int | None = None) -> Record:
    """Return Describe's response for an object: its owner, its status, and the body of a version."""
    number, body = version_of(entry, resource, version)
    answer = {
        f"{resource.title}Arn": entry["arn"],
        f"{resource.title}Id": entry["id"],
        "Name": entry["name"],
        f"{resource.title}Version": number,
        "Status": entry["status"],
        "ClusterArn": entry["cluster"],
        "CreationTime": entry["created"],
        "CreatedBy": entry["by"],
        "LastModifiedTime": entry["modified"],
        "LastModifiedBy": entry["modified_by"],
        **({"FailureReason": entry["failure"]} if entry["failure"] else {}),
        **body,
    }
    return {**answer, **resource.details(answer)}


def created(ctx: Context, resource: VersionedResource, params: Record, body: Record) -> Record:
    """Begin to create an object, and return the answer."""
    entry = new_entry(ctx, resource, params, {**body, **given(params, "Description")})
    kind = resource.kind
    entry["status"] = ctx.begin(f"{kind}.create", f"{kind}.arrived", entry_id=entry["id"], change="create")
    return {f"{resource.title}Arn": entry["arn"], f"{resource.title}Id": entry["id"]}


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateComputeQuota.html
def begin_update(ctx: Context, resource: VersionedResource, entry: Record, *, target: int, body: Record) -> Record:
    """Optimistic lock on the version, then a new version that becomes Updated in time; return the answer."""
    name = f"{resource.title} '{entry['id']}'"
    if entry["status"] in MOVING:
        raise conflict(f"{name} cannot be updated while it is {entry['status']}")
    if entry["status"] not in RETRYABLE:
        raise conflict(f"{name} is {entry['status']}: delete and create it again")
    if target != entry["version"]:
        raise conflict(f"TargetVersion {target} is not the current version {entry['version']} of {name}")
    entry["version"] += 1
    entry["versions"][str(entry["version"])] = body
    entry.update(modified=ctx.now, modified_by=principal(ctx), failure="")
    entry["status"] = ctx.begin(
        f"{resource.kind}.update", f"{resource.kind}.arrived", entry_id=entry["id"], change="update"
    )
    return {f"{resource.title}Arn": entry["arn"], f"{resource.title}Version": entry["version"]}


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DeleteComputeQuota.html
def _begin_delete(ctx: Context, resource: VersionedResource, entry: Record) -> None:
    """Begin to delete, unless another change still runs; asking twice is no error."""
    if entry["status"] == "Deleting":
        return
    if entry["status"] in MOVING:
        raise conflict(f"{resource.title} '{entry['id']}' cannot be deleted while it is {entry['status']}")
    entry["status"] = ctx.begin(f"{resource.kind}.delete", f"{resource.kind}.vanished", entry_id=entry["id"])


def _listing(ctx: Context, resource: VersionedResource, params: Record) -> list[Record]:
    """Return the entries of a List call in its order."""
    matching = [
        entry
        for entry in ctx.table(resource.table).values()
        if params.get("NameContains", "") in entry["name"]
        and params.get("ClusterArn", entry["cluster"]) == entry["cluster"]
        and params.get("Status", entry["status"]) == entry["status"]
        and is_in_period(entry["created"], params, "Created")
    ]
    keys = {"Name": "name", "Status": "status", "ClusterArn": "cluster"}
    key = keys.get(params.get("SortBy", ""), "created")
    matching.sort(key=lambda entry: entry[key], reverse=params.get("SortOrder") == "Descending")
    return matching


# Source of the order: SageMaker developer guide, "Delete policies", which deletes quotas first. The message isn't
# documented.
def _require_no_quotas(ctx: Context, cluster: str) -> None:
    quotas = [each["id"] for each in ctx.table("quotas").values() if each["cluster"] == cluster]
    if quotas:
        raise conflict(f"Compute quotas must be deleted before the cluster policy: {', '.join(sorted(quotas))}")


def register(resource: VersionedResource) -> None:
    """Register the common part: Describe, List, Delete, and the ends of changes."""
    title, prefix = resource.title, resource.kind

    @operation("sagemaker", f"Describe{title}")
    def describe_one(ctx: Context, params: Record) -> Record:
        """Return an object, in its newest version or the requested one."""
        return document(find(ctx, resource, params[f"{title}Id"]), resource, version=params.get(f"{title}Version"))

    @operation("sagemaker", f"List{title}s")
    def list_all(ctx: Context, params: Record) -> Record:
        """Summaries, filtered, sorted and in pages."""
        shown = service_model("sagemaker").shape_for(f"{title}Summary").members
        documents = [document(entry, resource) for entry in _listing(ctx, resource, params)]
        return page(f"{title}Summaries", [given(each, *shown) for each in documents], params, default=10)

    @operation("sagemaker", f"Delete{title}")
    def delete(ctx: Context, params: Record) -> Record:
        """Begin to delete."""
        entry = find(ctx, resource, params[f"{title}Id"])
        if resource.kind == "policy":
            _require_no_quotas(ctx, entry["cluster"])
        _begin_delete(ctx, resource, entry)
        return {}

    @action(f"{prefix}.arrived")
    def arrived(ctx: Context, *, entry_id: str, change: str, failure: str = "") -> None:
        """Apply: an object is Created or Updated, or has failed."""
        entry = find(ctx, resource, entry_id)
        if not failure:
            ctx.controllers.submit(f"{prefix}/{entry_id}", document(entry, resource))
        machine = MACHINES[f"{prefix}.{change}"]
        status = machine.failed if failure else machine.done
        entry.update(status=status, failure=failure[:1024], modified=ctx.now)

    @action(f"{prefix}.vanished")
    def vanished(ctx: Context, *, entry_id: str, failure: str = "") -> None:
        """Apply: an object is gone, or could not be deleted."""
        entry = find(ctx, resource, entry_id)
        if failure:
            entry.update(status=MACHINES[f"{prefix}.delete"].failed, failure=failure[:1024])
            return
        ctx.controllers.submit(f"{prefix}/{entry_id}", None)
        del ctx.table(resource.table)[entry_id]


PARTS = ("PriorityClasses", "FairShare", "IdleResourceSharing")


def _details(described: Record) -> Record:
    return {"StatusDetails": {part: described["Status"] for part in PARTS if part in described["SchedulerConfig"]}}


POLICY = VersionedResource(
    "policies",
    kind="policy",
    title="ClusterSchedulerConfig",
    path="cluster-scheduler-config",
    details=_details,
)
register(POLICY)


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_SchedulerConfig.html
def _config(config: Record) -> Record:
    """Return the configuration with the service's defaults written out, and without an empty list of classes."""
    for name, times in Counter(entry["Name"] for entry in config.get("PriorityClasses", [])).items():
        if times > 1:
            raise reject(f"Priority class names must be unique: '{name}' is given {times} times")
    stated = {key: value for key, value in config.items() if value != []}
    return {"FairShare": "Enabled", "IdleResourceSharing": "Disabled", **stated}


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateClusterSchedulerConfig.html
@operation("sagemaker", "CreateClusterSchedulerConfig")
def create_cluster_scheduler_config(ctx: Context, params: Record) -> Record:
    """Return the policy of a cluster, which can have one."""
    cluster = cluster_by_arn(ctx, params["ClusterArn"])
    for policy in ctx.table("policies").values():
        if policy["cluster"] == params["ClusterArn"]:
            raise conflict(f"Cluster '{cluster['name']}' already has ClusterSchedulerConfig '{policy['id']}'")
    body: Record = {"SchedulerConfig": _config(params["SchedulerConfig"])}
    return created(ctx, POLICY, params, body)


@operation("sagemaker", "UpdateClusterSchedulerConfig")
def update_cluster_scheduler_config(ctx: Context, params: Record) -> Record:
    """Return a new version; a given configuration replaces the old one."""
    entry = find(ctx, POLICY, params["ClusterSchedulerConfigId"])
    body = dict(version_of(entry, POLICY, None)[1])
    if "SchedulerConfig" in params:
        body["SchedulerConfig"] = _config(params["SchedulerConfig"])
    body.update(given(params, "Description"))
    return begin_update(ctx, POLICY, entry, target=params["TargetVersion"], body=body)
