"""IAM Identity Center: whether an account has it.

IAM Identity Center: whether an account has it, which Managed Grafana requires. Every account here has an instance from
the start, in the region that the endpoint was started with; `DeleteInstance` removes it. It has no users and groups.
"""

from __future__ import annotations

from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.service import Service, declare

__all__ = ["has_identity_center"]

declare(
    Service("sso-admin", rejects_with="ValidationException", signs_as="sso", scope=r"(?:Create|Delete|List)Instances?$")
)


_TABLE = "identity-center"
_FIRST = "arn:aws:sso:::instance/ssoins-0000000000000001"
_MEMBERS = ("CreatedDate", "IdentityStoreId", "InstanceArn", "Name", "OwnerAccountId", "Status")


def _instances(ctx: Context) -> dict[str, Record]:
    """Return the instances of the account, of its one region with Identity Center, deleted ones too."""
    table = ctx.backend.table(ctx.backend.settings.region, _TABLE)
    table.setdefault(_FIRST, _new(ctx, _FIRST))
    return table


def _new(ctx: Context, arn: str, name: str | None = None) -> Record:
    return {
        "CreatedDate": ctx.now,
        "IdentityStoreId": f"d-{arn[-10:]}",
        "InstanceArn": arn,
        "OwnerAccountId": ctx.account,
        "Status": "ACTIVE",
        "deleted": False,
        **({"Name": name} if name else {}),
    }


def has_identity_center(ctx: Context) -> bool:
    """Return whether the account has an instance, in any region."""
    return any(not each["deleted"] for each in _instances(ctx).values())


@operation("sso-admin", "ListInstances")
def list_instances(ctx: Context, params: Record) -> Record:
    """Return instances of this region, or of all if RegionScope requests that."""
    everywhere = params.get("RegionScope") == "ALL_REGIONS" or ctx.region == ctx.backend.settings.region
    found = [each for each in _instances(ctx).values() if everywhere and not each["deleted"]]
    return {"Instances": [{name: each[name] for name in _MEMBERS if name in each} for each in found]}


# Source: https://docs.aws.amazon.com/singlesignon/latest/APIReference/API_CreateInstance.html
@operation("sso-admin", "CreateInstance")
def create_instance(ctx: Context, params: Record) -> Record:
    """Enable Identity Center; an account has one instance."""
    if has_identity_center(ctx):
        raise ServiceError("ConflictException", "An instance already exists in this account.")
    arn = f"arn:aws:sso:::instance/ssoins-{ctx.token(16, '0123456789abcdef')}"
    _instances(ctx)[arn] = _new(ctx, arn, params.get("Name"))
    return {"InstanceArn": arn}


# Source: https://docs.aws.amazon.com/singlesignon/latest/APIReference/API_DeleteInstance.html
@operation("sso-admin", "DeleteInstance")
def delete_instance(ctx: Context, params: Record) -> Record:
    """Disable Identity Center."""
    instance = _instances(ctx).get(params["InstanceArn"])
    if instance is None or instance["deleted"]:
        raise ServiceError("ResourceNotFoundException", f"Instance {params['InstanceArn']} does not exist")
    instance["deleted"] = True
    return {}
