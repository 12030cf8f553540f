"""IAM Identity Center, which Managed Grafana requires: every account here has one, in the region of the endpoint.

It has no users and groups.
"""

from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.service import Service, declare

__all__: list[str] = []

declare(Service("sso-admin", rejects_with="ValidationException", signs_as="sso", scope="ListInstances$"))


@operation("sso-admin", "ListInstances")
def list_instances(ctx: Context, params: Record) -> Record:
    """Return the instance if it's in this region, or if RegionScope requests those of all regions."""
    instance = {
        "CreatedDate": 1735689600,  # 1 January 2025
        "IdentityStoreId": "d-0000000001",
        "InstanceArn": "arn:aws:sso:::instance/ssoins-0000000000000001",
        "OwnerAccountId": ctx.account,
        "Status": "ACTIVE",
    }
    everywhere = params.get("RegionScope") == "ALL_REGIONS"
    return {"Instances": [instance] if everywhere or ctx.region == ctx.backend.settings.region else []}
