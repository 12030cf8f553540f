"""EKS updates: the receipts of UpdateAddon, UpdateClusterConfig and UpdateClusterVersion."""

from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError

__all__ = ["finish_update", "start_update"]


def start_update(
    ctx: Context, cluster: str, *, update_type: str, addon: str = "", params: dict[str, str] | None = None
) -> Record:
    """Return a new update in progress, as the service shows it."""
    update: Record = {
        "id": ctx.uuid(),
        "status": "InProgress",
        "type": update_type,
        "params": [{"type": name, "value": value} for name, value in (params or {}).items()],
        "createdAt": ctx.now,
        "errors": [],
    }
    ctx.table("updates")[f"{cluster}|{update['id']}"] = {"update": update, "addon": addon}
    return dict(update)


def finish_update(ctx: Context, cluster: str, update_id: str, *, failure: str = "") -> None:
    """Mark an update as done or failed."""
    update = ctx.table("updates")[f"{cluster}|{update_id}"]["update"]
    update["status"] = "Failed" if failure else "Successful"
    if failure:
        update["errors"] = [{"errorCode": "Unknown", "errorMessage": failure}]


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeUpdate.html
@operation("eks", "DescribeUpdate")
def describe_update(ctx: Context, params: Record) -> Record:
    """One update."""
    entry = ctx.table("updates").get(f"{params['name']}|{params['updateId']}")
    if entry is None or entry["addon"] != params.get("addonName", ""):
        raise ServiceError("ResourceNotFoundException", f"No update found for ID: {params['updateId']}")
    return {"update": entry["update"]}
