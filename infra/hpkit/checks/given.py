"""CLU, ADD, GOV: what is there already and is named, so that the kit makes none of its own."""

from collections.abc import Iterator

from hpkit.checks.registry import Context, Issue, Rule, listing
from hpkit.plan.given import POD_ACCOUNTS

__all__ = ["RULES"]

_CONTRACT = "Config contract"
_API = "SageMaker API: CreateCluster"
_QUOTA = "SageMaker API: CreateComputeQuota"
_EKS = "Amazon EKS user guide, IAM roles for add-ons"


def _override(context: Context) -> Iterator[Issue]:
    for index, group in enumerate(context.spec.cluster.instance_groups):
        path = (*context.path, "cluster", "instanceGroups", index, "overrideVpcConfig")
        override = group.override_vpc_config
        if override is None:
            continue
        if context.spec.network.existing is None:
            yield Issue(
                path,
                f"{group.name} names the subnets {listing(list(override.subnets))}, and the network is one that the "
                "kit makes",
                "Write availabilityZone instead, or name the network that these subnets are in (network.existing).",
            )
        elsewhere = [
            f"{zone.subnet_id} in {zone.availability_zone}"
            for zone in context.plan.network.zones
            if zone.subnet_id in override.subnets and group.availability_zone not in (None, zone.availability_zone)
        ]
        if elsewhere:
            yield Issue(
                path,
                f"{group.name} stands in {group.availability_zone} by its availabilityZone, and its overrideVpcConfig "
                f"names {listing(elsewhere)}",
                "Remove availabilityZone: beside overrideVpcConfig it only says where subnets are that the network "
                "does not list.",
            )


def _one_way(context: Context) -> Iterator[Issue]:
    for name, addon in context.spec.addons.items():
        given = [
            key
            for key, stated in (
                ("role", addon.role is not None),
                ("serviceAccountRoleArn", addon.service_account_role_arn is not None),
                ("podIdentity: false", not addon.pod_identity),
            )
            if stated
        ]
        if len(given) > 1:
            yield Issue(
                (*context.path, "addons", name),
                f"{name} has {listing(given)} together, and its pods take their role in one way",
                "Keep one: role for EKS Pod Identity, serviceAccountRoleArn for the OIDC provider (IRSA), "
                "podIdentity: false for neither.",
            )


def _known_account(context: Context) -> Iterator[Issue]:
    for name, addon in context.spec.addons.items():
        if addon.role is not None and name not in POD_ACCOUNTS:
            yield Issue(
                (*context.path, "addons", name, "role"),
                f"the kit does not know which pods of {name} take the role {addon.role}",
                f"Remove role, and associate it outside the kit; known are {listing(sorted(POD_ACCOUNTS), 20)}.",
            )


def _quota_names(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    names = governance.quota_names if governance else {}
    path = (*context.path, "governance", "quotaNames")
    teams = {team.name: team.quota_name for team in context.plan.teams}
    for team, name in names.items():
        if team not in teams:
            yield Issue(
                (*path, team),
                f"the quota name {name} is for `{team}`, which has no quota here ({listing(sorted(teams)) or 'nobody'} "
                "has)",
                f"Remove it, or give {team} an allocation.",
            )
            continue
        same = sorted(other for other, called in teams.items() if called == name and other != team)
        if same:
            yield Issue(
                (*path, team),
                f"the quotas of {team} and {listing(same)} have the same name {name}",
                "Write what the service calls each (aws sagemaker list-compute-quotas).",
            )


RULES = (
    Rule("CLU013", "error", "overrideVpcConfig stands with network.existing, in the zone that the group names.", _API,
         _override),
    Rule("ADD004", "error", "An add-on's pods take their role in one way.", _EKS, _one_way),
    Rule("ADD005", "error", "A role is for an add-on whose service account is known.", _CONTRACT, _known_account),
    Rule("GOV013", "error", "quotaNames are of teams that have a quota, each another.", _QUOTA, _quota_names),
)  # fmt: skip
