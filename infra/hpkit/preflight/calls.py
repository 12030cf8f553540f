"""Which calls a plan asks for: first those that stand by themselves, then those that need an answer to be asked.

All of them only read.
"""

from typing import Any, Final

from hpkit.catalog import addons
from hpkit.plan.existing import given_roles
from hpkit.plan.model import Plan
from hpkit.preflight.model import Answers, Call, Failure

__all__ = [
    "ADDRESSES", "CALLER", "CLUSTERS", "GATEWAYS", "INTERFACES", "KUBERNETES", "KUBERNETES_VERSIONS", "SERVICE_ROLE",
    "VPCS", "ZONES", "addon_versions", "applied_quotas", "cluster", "default_quotas", "eks_addon", "eks_cluster",
    "eks_name", "first_calls", "further_calls", "needed_addons", "offerings", "role", "role_arns",
    "security_groups", "subnets", "tags",
]  # fmt: skip

CALLER: Final = Call("sts", "GetCallerIdentity")
ZONES: Final = Call("ec2", "DescribeAvailabilityZones", {"AllAvailabilityZones": True})
VPCS: Final = Call("ec2", "DescribeVpcs")
GATEWAYS: Final = Call("ec2", "DescribeInternetGateways")
ADDRESSES: Final = Call("ec2", "DescribeAddresses")
INTERFACES: Final = Call("ec2", "DescribeNetworkInterfaces")
KUBERNETES_VERSIONS: Final = Call("eks", "DescribeClusterVersions")
CLUSTERS: Final = Call("sagemaker", "ListClusters")
# Not of AWS: what the Kubernetes API of an existing EKS cluster says of Kueue.
KUBERNETES: Final = Call("kubernetes", "Kueue")
SERVICE_ROLE: Final = "AWSServiceRoleForSageMakerHyperPod"
# The largest page of Service Quotas: SageMaker has thousands of quotas, and the calls are throttled.
_PAGE: Final = 100


def applied_quotas(service: str) -> Call:
    """Return the call for the quotas that hold for the account."""
    return Call("service-quotas", "ListServiceQuotas", {"ServiceCode": service, "MaxResults": _PAGE})


def default_quotas(service: str) -> Call:
    """Return the call for AWS's defaults, which hold where the account's own list names no value."""
    return Call("service-quotas", "ListAWSDefaultServiceQuotas", {"ServiceCode": service, "MaxResults": _PAGE})


def offerings(plan: Plan) -> Call:
    """Return the call for the zones in which EC2 offers the plan's instance types."""
    names = sorted({name.removeprefix("ml.") for group in plan.groups for name in group.spec.types})
    kinds = {"LocationType": "availability-zone", "Filters": [{"Name": "instance-type", "Values": names}]}
    return Call("ec2", "DescribeInstanceTypeOfferings", kinds)


def subnets(plan: Plan) -> Call:
    """Return the call for an existing network's subnets; a filter answers for those that exist, ids all or nothing."""
    ids = sorted({zone.subnet_id for zone in plan.network.zones if zone.subnet_id})
    return Call("ec2", "DescribeSubnets", {"Filters": [{"Name": "subnet-id", "Values": ids}]})


def security_groups(plan: Plan) -> Call:
    """Return the call for an existing network's security groups."""
    existing = plan.spec.network.existing
    ids = sorted(set(existing.security_group_ids)) if existing else []
    return Call("ec2", "DescribeSecurityGroups", {"Filters": [{"Name": "group-id", "Values": ids}]})


def addon_versions(plan: Plan) -> Call:
    """Return the call for the add-ons that EKS offers for the plan's Kubernetes version."""
    return Call("eks", "DescribeAddonVersions", {"kubernetesVersion": plan.spec.eks.version})


def eks_name(plan: Plan) -> str:
    """Return the name of the EKS cluster: the existing one's, or the stack's, which the kit gives."""
    existing = plan.spec.eks.existing
    return existing.name if existing else plan.stack


def eks_cluster(plan: Plan) -> Call:
    """Return the call for the EKS cluster of that name."""
    return Call("eks", "DescribeCluster", {"name": eks_name(plan)})


def eks_addon(plan: Plan, addon: str) -> Call:
    """Return the call for an add-on of the existing EKS cluster."""
    return Call("eks", "DescribeAddon", {"clusterName": eks_name(plan), "addonName": addon})


def cluster(arn: str) -> Call:
    """Return the call for a HyperPod cluster."""
    return Call("sagemaker", "DescribeCluster", {"ClusterName": arn})


def tags(arn: str) -> Call:
    """Return the call for the tags of a HyperPod cluster."""
    return Call("sagemaker", "ListTags", {"ResourceArn": arn})


def role(name: str) -> Call:
    """Return the call for a role; IAM takes its name without the path."""
    return Call("iam", "GetRole", {"RoleName": name})


def role_arns(plan: Plan) -> tuple[str, ...]:
    """Return every role that the file names: administrators, members, and those that are there for services."""
    named = {*plan.spec.eks.administrators, *(member for team in plan.teams for member in team.members)}
    return tuple(sorted({*named, *given_roles(plan)}))


def first_calls(plan: Plan) -> tuple[Call, ...]:
    """Return the calls that need no answer of others."""
    calls = [CALLER, ZONES, offerings(plan), INTERFACES, KUBERNETES_VERSIONS, addon_versions(plan), CLUSTERS]
    services = ["sagemaker", "vpc"]
    if plan.network.vpc_id is None:
        calls += [VPCS, GATEWAYS]
        if plan.network.nat_gateways:
            services.append("ec2")
            calls.append(ADDRESSES)
    else:
        calls += [subnets(plan), security_groups(plan)]
    calls += [each(service) for service in services for each in (applied_quotas, default_quotas)]
    calls += [eks_cluster(plan), role(SERVICE_ROLE)]
    calls += [role(arn.rpartition("/")[2]) for arn in role_arns(plan)]
    return _once(calls)


def further_calls(plan: Plan, answers: Answers) -> tuple[Call, ...]:
    """Return the calls that follow from the first answers: each live cluster, and the existing EKS cluster's inside."""
    calls = []
    listed = answers.of(CLUSTERS)
    for summary in [] if isinstance(listed, Failure) else listed["ClusterSummaries"]:
        calls.append(cluster(summary["ClusterArn"]))
        if summary["ClusterName"] == plan.spec.cluster.name:
            calls.append(tags(summary["ClusterArn"]))
    found: Any = answers.of(eks_cluster(plan))
    if plan.spec.eks.existing is not None and not isinstance(found, Failure):
        calls += [eks_addon(plan, addon.name) for addon in plan.addons]
        calls += [eks_addon(plan, needed) for _, needed in needed_addons(plan)]
    return _once(calls)


def needed_addons(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return add-on and the add-on it needs, where that is not the plan's own: an existing cluster must have it."""
    own = {addon.name for addon in plan.addons}
    requires = {addon.name: addon.requires for addon in addons()}
    return tuple((name, each) for name in sorted(own) for each in requires.get(name, ()) if each not in own)


def _once(calls: list[Call]) -> tuple[Call, ...]:
    return tuple({call.key: call for call in calls}.values())
