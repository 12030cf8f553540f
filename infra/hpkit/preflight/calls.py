"""The AWS API calls that a stack's checks need: first independent ones, then those that need a response.

All of them are read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hpkit.catalog import addons
from hpkit.clients.calls import ApiCall, FailedCall, Responses
from hpkit.plan.existing import (
    execution_roles,
    given_roles,
    makes_bucket,
    makes_certificate_bucket,
    overridden_places,
    team_buckets,
)
from hpkit.plan.model import Plan
from hpkit.plan.names import bucket_name, certificate_bucket_name
from hpkit.preflight.needs import count_registered, interface_endpoints, made_role_names, zones_of_gateways

if TYPE_CHECKING:
    from hpkit.program.recording import Recording

__all__ = [
    "ADDRESSES",
    "ADMISSION",
    "ALL_SUBNETS",
    "CALLER",
    "CLUSTERS",
    "COUNTED",
    "EKS_CLUSTERS",
    "ENDPOINT",
    "GATEWAYS",
    "IDENTITY_CENTER",
    "INTERFACES",
    "KUBERNETES",
    "KUBERNETES_VERSIONS",
    "NAT_GATEWAYS",
    "PUBLIC_ADDRESS",
    "SERVICE_ROLE",
    "VPCS",
    "ZONES",
    "CountedType",
    "access_entry",
    "addon_versions",
    "alerts_topic",
    "applied_quotas",
    "bucket_encryption",
    "bucket_location",
    "bucket_tags",
    "buckets_of_teams",
    "cluster",
    "default_quotas",
    "eks_addon",
    "eks_cluster",
    "endpoint_services",
    "entry_principals",
    "existing_bucket",
    "first_calls",
    "further_calls",
    "is_linked",
    "is_reached",
    "key_of_web_ui",
    "key_policy",
    "made_buckets",
    "needed_addons",
    "offerings",
    "oidc_provider",
    "oidc_provider_arn",
    "principals",
    "role",
    "role_arns",
    "security_groups",
    "simulations",
    "subnets",
    "tags",
    "team_bucket",
    "topic",
    "training_plan",
    "zone_name",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class CountedType:
    """A resource type with a quota for its number: the quota, and the call that lists the account's resources."""

    type_token: str
    service: str
    quota: str
    listing: ApiCall
    member: str


CALLER: Final = ApiCall("sts", "GetCallerIdentity")
ZONES: Final = ApiCall("ec2", "DescribeAvailabilityZones", {"AllAvailabilityZones": True})
VPCS: Final = ApiCall("ec2", "DescribeVpcs")
GATEWAYS: Final = ApiCall("ec2", "DescribeInternetGateways")
ADDRESSES: Final = ApiCall("ec2", "DescribeAddresses")
INTERFACES: Final = ApiCall("ec2", "DescribeNetworkInterfaces")
# NAT gateways that count: VPC user guide, "Amazon VPC quotas", gateways.
NAT_GATEWAYS: Final = ApiCall(
    "ec2", "DescribeNatGateways", {"Filters": [{"Name": "state", "Values": ["pending", "available", "deleting"]}]}
)
# A NAT gateway names its subnet, and that its zone.
ALL_SUBNETS: Final = ApiCall("ec2", "DescribeSubnets")
EKS_CLUSTERS: Final = ApiCall("eks", "ListClusters")
# The resources of which a quota limits the number.
COUNTED: Final = (
    CountedType("aws:ec2/vpc:Vpc", "vpc", "VPCs per Region", VPCS, "Vpcs"),
    CountedType(
        "aws:ec2/internetGateway:InternetGateway", "vpc", "Internet gateways per Region", GATEWAYS, "InternetGateways"
    ),
    CountedType("aws:ec2/eip:Eip", "ec2", "EC2-VPC Elastic IPs", ADDRESSES, "Addresses"),
)
KUBERNETES_VERSIONS: Final = ApiCall("eks", "DescribeClusterVersions")
CLUSTERS: Final = ApiCall("sagemaker", "ListClusters")
# Identity Center is in one region of an account or organization, which can differ from the stack's.
IDENTITY_CENTER: Final = ApiCall("sso-admin", "ListInstances", {"RegionScope": "ALL_REGIONS"})
# Not a call of AWS: whether the Kubernetes API of an existing EKS cluster shows a Kueue.
KUBERNETES: Final = ApiCall("kubernetes", "Inside")
ADMISSION: Final = ApiCall("kubernetes", "Admission")
# Not calls of AWS's APIs either: by which address the internet sees this machine, and whether EKS's endpoint answers.
PUBLIC_ADDRESS: Final = ApiCall("checkip", "PublicAddress")
ENDPOINT: Final = ApiCall("kubernetes", "Endpoint")
SERVICE_ROLE: Final = "AWSServiceRoleForSageMakerHyperPod"
# EKS actions without a resource that an execution role needs (developer guide, "IAM role for SageMaker HyperPod").
_NODE_ACTIONS: Final = (
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "ecr:GetAuthorizationToken",
)
# The largest page of Service Quotas: SageMaker has thousands of quotas, and the calls are throttled.
_PAGE: Final = 100


def _of(service: str, operation: str, parameter: str) -> Callable[[str], ApiCall]:
    return lambda value: ApiCall(service, operation, {parameter: value})


# Calls for a resource by its name, ID or ARN.
cluster: Final = _of("sagemaker", "DescribeCluster", "ClusterName")
tags: Final = _of("sagemaker", "ListTags", "ResourceArn")
# The API takes the ARN as a name.
training_plan: Final = _of("sagemaker", "DescribeTrainingPlan", "TrainingPlanName")
topic: Final = _of("sns", "GetTopicAttributes", "TopicArn")
key_policy: Final = _of("kms", "GetKeyPolicy", "KeyId")
# IAM takes a role's name without the path.
role: Final = _of("iam", "GetRole", "RoleName")
oidc_provider: Final = _of("iam", "GetOpenIDConnectProvider", "OpenIDConnectProviderArn")
# It also shows whether the bucket exists.
bucket_tags: Final = _of("s3", "GetBucketTagging", "Bucket")


def applied_quotas(service: str) -> ApiCall:
    """Return the call for the quotas that apply to the account."""
    return ApiCall("service-quotas", "ListServiceQuotas", {"ServiceCode": service, "MaxResults": _PAGE})


def default_quotas(service: str) -> ApiCall:
    """Return the call for AWS's defaults, which apply where the account's own list has no value."""
    return ApiCall("service-quotas", "ListAWSDefaultServiceQuotas", {"ServiceCode": service, "MaxResults": _PAGE})


def zone_name(responses: Responses, zone: str) -> str:
    """Return a zone's name in the account, from its name or ID; unchanged if it's unknown."""
    response = responses.of(ZONES)
    zones = [] if isinstance(response, FailedCall) else response["AvailabilityZones"]
    return next((each["ZoneName"] for each in zones if each.get("ZoneId") == zone), zone)


def offerings(plan: Plan) -> ApiCall:
    """Return the call for the zones in which EC2 offers the plan's instance types."""
    names = sorted({name.removeprefix("ml.") for group in plan.own_groups for name in group.spec.types})
    by_zone = {"LocationType": "availability-zone", "Filters": [{"Name": "instance-type", "Values": names}]}
    return ApiCall("ec2", "DescribeInstanceTypeOfferings", by_zone)


def subnets(plan: Plan) -> ApiCall:
    """Return the call for an existing network's subnets.

    With a filter, EC2 returns the subnets that exist; with ids it rejects the call if one does not.
    """
    ids = sorted({*(zone.subnet_id for zone in plan.network.zones if zone.subnet_id), *overridden_places(plan)[0]})
    return ApiCall("ec2", "DescribeSubnets", {"Filters": [{"Name": "subnet-id", "Values": ids}]})


def endpoint_services(recording: Recording) -> ApiCall:
    """Return the call for the services of the interface endpoints that the program creates.

    With a filter, EC2 returns the services that exist; with names it rejects the call if one does not.
    """
    names = sorted({service for service, _ in interface_endpoints(recording)})
    filters = [{"Name": "service-type", "Values": ["Interface"]}, {"Name": "service-name", "Values": names}]
    return ApiCall("ec2", "DescribeVpcEndpointServices", {"Filters": filters})


def security_groups(plan: Plan) -> ApiCall:
    """Return the call for an existing network's security groups."""
    existing = plan.spec.network.existing
    ids = sorted({*existing.security_group_ids, *overridden_places(plan)[1]}) if existing else []
    return ApiCall("ec2", "DescribeSecurityGroups", {"Filters": [{"Name": "group-id", "Values": ids}]})


def addon_versions(plan: Plan) -> ApiCall:
    """Return the call for the add-ons that EKS offers for the plan's Kubernetes version."""
    return ApiCall("eks", "DescribeAddonVersions", {"kubernetesVersion": plan.spec.eks.version})


def eks_cluster(plan: Plan) -> ApiCall:
    """Return the call for the EKS cluster of that name."""
    return ApiCall("eks", "DescribeCluster", {"name": plan.eks_name})


def eks_addon(plan: Plan, addon: str) -> ApiCall:
    """Return the call for an add-on of the existing EKS cluster."""
    return ApiCall("eks", "DescribeAddon", {"clusterName": plan.eks_name, "addonName": addon})


def access_entry(plan: Plan, principal: str) -> ApiCall:
    """Return the call for a principal's access entry in the EKS cluster."""
    return ApiCall("eks", "DescribeAccessEntry", {"clusterName": plan.eks_name, "principalArn": principal})


def principals(plan: Plan) -> tuple[str, ...]:
    """Return the roles that get an access entry."""
    members = {member for team in plan.teams for member in team.spec.members}
    return tuple(sorted({*plan.spec.eks.administrators, *plan.spec.eks.viewers, *members}))


def entry_principals(plan: Plan, responses: Responses) -> tuple[str, ...]:
    """Return the roles that may have an access entry already; none if the EKS cluster doesn't exist."""
    return () if isinstance(responses.of(eks_cluster(plan)), FailedCall) else principals(plan)


def oidc_provider_arn(plan: Plan, responses: Responses) -> str | None:
    """Return the ARN of the IAM OIDC provider of an existing EKS cluster's issuer, None if it isn't needed.

    IAM names a provider after its address, so an account has at most one per issuer.
    """
    response = responses.of(eks_cluster(plan))
    if plan.spec.inference is None or plan.spec.eks.existing is None or isinstance(response, FailedCall):
        return None
    issuer: str = response["cluster"].get("identity", {}).get("oidc", {}).get("issuer", "")
    partition, account = (response["cluster"].get("arn", "").split(":") + [""] * 5)[1:5:3]
    return f"arn:{partition}:iam::{account}:oidc-provider/{issuer.removeprefix('https://')}" if issuer else None


def key_of_web_ui(plan: Plan) -> ApiCall | None:
    """Return the call for the key that the web UI of spaces names, None without one."""
    web = plan.spec.spaces.web_ui if plan.spec.spaces else None
    return None if web is None else ApiCall("kms", "DescribeKey", {"KeyId": web.kms_key_arn})


def existing_bucket(plan: Plan) -> str | None:
    """Return the name of the bucket that the file names for lifecycle scripts."""
    there = plan.spec.storage.existing if plan.spec.storage else None
    return there.bucket if there else None


def bucket_location(plan: Plan) -> ApiCall:
    """Return the call for the region of that bucket."""
    return ApiCall("s3", "GetBucketLocation", {"Bucket": existing_bucket(plan)})


def team_bucket(bucket: str, account: str) -> ApiCall:
    """Return the call for the region of a team's bucket, which S3 rejects if another account owns the bucket."""
    return ApiCall("s3", "GetBucketLocation", {"Bucket": bucket, "ExpectedBucketOwner": account})


def bucket_encryption(plan: Plan) -> ApiCall:
    """Return the call for how objects in that bucket are encrypted."""
    return ApiCall("s3", "GetBucketEncryption", {"Bucket": existing_bucket(plan)})


def simulations(plan: Plan, arn: str) -> tuple[ApiCall, ...]:
    """Return the calls that simulate nodes' actions with an existing execution role: on all resources, and on scripts.

    `*` is only correct for actions without a resource; the others are granted on ARNs that aren't known here.
    """
    groups = [group.spec for group in plan.groups if group.spec.execution_role == arn]
    scripts = {group.lifecycle_script for group in groups} - {None}
    bucket = existing_bucket(plan)
    if bucket is not None and any(group.runs_kits_script or group.verified_script for group in groups):
        scripts.add(f"s3://{bucket}/lifecycle/-/on_create.sh")
    partition = arn.split(":")[1]
    objects = sorted(f"arn:{partition}:s3:::{uri.partition('://')[2]}" for uri in scripts if uri)
    buckets = sorted({each.partition("/")[0] for each in objects})
    simulated: list[tuple[Sequence[str], list[str]]] = [(_NODE_ACTIONS, ["*"])]
    simulated += [(("s3:GetObject",), objects), (("s3:ListBucket",), buckets)]
    return tuple(
        ApiCall(
            "iam",
            "SimulatePrincipalPolicy",
            {"PolicySourceArn": arn, "ActionNames": list(actions), "ResourceArns": resources},
        )
        for actions, resources in simulated
        if resources
    )


def role_arns(plan: Plan) -> tuple[str, ...]:
    """Return every role that the file names: of administrators, viewers, team members and services."""
    made = {team.made_role for team in plan.teams}
    return tuple(sorted({*principals(plan), *given_roles(plan)} - made))


def first_calls(recording: Recording) -> tuple[ApiCall, ...]:
    """Return the calls that don't depend on a response."""
    plan = recording.plan
    counted = [each for each in COUNTED if count_registered(recording, each.type_token)]
    calls = [CALLER, ZONES, offerings(plan), INTERFACES, KUBERNETES_VERSIONS, addon_versions(plan), CLUSTERS]
    calls += [each.listing for each in counted]
    if plan.network.vpc_id is not None:
        calls += [subnets(plan), security_groups(plan)]
    services = dict.fromkeys(["sagemaker", "vpc", *(each.service for each in counted)])
    if zones_of_gateways(recording):
        calls += [NAT_GATEWAYS, ALL_SUBNETS]
    if interface_endpoints(recording):
        calls.append(endpoint_services(recording))
    if count_registered(recording, "aws:eks/cluster:Cluster"):
        calls.append(EKS_CLUSTERS)
        services["eks"] = None
    calls += [each(service) for service in services for each in (applied_quotas, default_quotas)]
    calls += [eks_cluster(plan), role(SERVICE_ROLE), *_observability(plan)]
    calls += [role(arn.rpartition("/")[2]) for arn in role_arns(plan)]
    calls += [role(name) for name in made_role_names(recording)]
    if existing_bucket(plan) is not None:
        calls += [bucket_location(plan), bucket_encryption(plan)]
    key = key_of_web_ui(plan)
    calls += [] if key is None else [key]
    calls += [training_plan(arn) for group in plan.own_groups if (arn := group.spec.training_plan_arn)]
    return _unique(calls)


def is_reached(recording: Recording, responses: Responses) -> bool:
    """Return whether AWS responded to any of the first calls, even with an error that something doesn't exist."""
    found = [responses.of(each) for each in first_calls(recording)]
    return any(not isinstance(each, FailedCall) or each.is_absence for each in found)


def further_calls(plan: Plan, responses: Responses) -> tuple[ApiCall, ...]:
    """Return the calls that depend on the first responses: live clusters, the contents of an existing EKS cluster."""
    calls = []
    listed = responses.of(CLUSTERS)
    for summary in [] if isinstance(listed, FailedCall) else listed["ClusterSummaries"]:
        calls.append(cluster(summary["ClusterArn"]))
        if summary["ClusterName"] == plan.spec.cluster.name:
            calls.append(tags(summary["ClusterArn"]))
    found: Any = responses.of(eks_cluster(plan))
    if plan.spec.eks.existing is not None and not isinstance(found, FailedCall):
        calls += [eks_addon(plan, addon.name) for addon in plan.addons]
        calls += [eks_addon(plan, needed) for _, needed in needed_addons(plan)]
    calls += [access_entry(plan, principal) for principal in entry_principals(plan, responses)]
    calls += [call for arn in execution_roles(plan) for call in simulations(plan, arn)]
    provider = oidc_provider_arn(plan, responses)
    calls += [] if provider is None else [oidc_provider(provider)]
    calls += [bucket_tags(name) for name in made_buckets(plan, responses)]
    calls += [key_policy(key) for key in _topic_keys(plan, responses)]
    caller = responses.of(CALLER)
    if not isinstance(caller, FailedCall):
        calls += [team_bucket(name, caller["Account"]) for name in buckets_of_teams(plan)]
    return _unique(calls)


def _topic_keys(plan: Plan, responses: Responses) -> Iterator[str]:
    """Yield the customer managed key of an existing topic of alerts; KMS has no policy by alias."""
    arn = alerts_topic(plan)
    found = responses.of(topic(arn)) if arn is not None else None
    key = found["Attributes"].get("KmsMasterKeyId") if isinstance(found, dict) else None
    if key and not key.startswith("alias/"):
        yield key


def alerts_topic(plan: Plan) -> str | None:
    """Return the existing topic that Managed Prometheus or EventBridge notifies, None without one."""
    spec = plan.spec.observability
    alerts = spec.alerts if spec is not None else None
    if spec is None or alerts is None or not (spec.prometheus or alerts.events):
        return None
    return alerts.sns_topic_arn


def made_buckets(plan: Plan, responses: Responses) -> tuple[str, ...]:
    """Return the names of the buckets that the program creates; none if the account, which they contain, is unknown."""
    caller = responses.of(CALLER)
    if isinstance(caller, FailedCall):
        return ()
    made = ((makes_bucket, bucket_name), (makes_certificate_bucket, certificate_bucket_name))
    return tuple(name(plan, caller["Account"]) for makes, name in made if makes(plan))


def buckets_of_teams(plan: Plan) -> tuple[str, ...]:
    """Return the names of the buckets that teams' pods use, or FSx for them."""
    given = {each.bucket for buckets in team_buckets(plan).values() for each in buckets}
    return tuple(sorted(_linked(plan) | given))


def is_linked(plan: Plan, bucket: str) -> bool:
    """Return whether FSx links a bucket with the file system."""
    return bucket in _linked(plan)


def _linked(plan: Plan) -> set[str]:
    lustre = plan.spec.storage.lustre if plan.spec.storage else None
    return {each.bucket for each in lustre.data_repositories} if lustre else set()


def needed_addons(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return (add-on, required add-on) for each required one that an existing EKS cluster must have.

    The plan does not install it.
    """
    own = {addon.name for addon in plan.addons}
    requires = {addon.name: addon.requires for addon in addons()}
    return tuple((name, each) for name in sorted(own) for each in requires.get(name, ()) if each not in own)


def _observability(plan: Plan) -> list[ApiCall]:
    spec = plan.spec.observability
    calls = [IDENTITY_CENTER] if spec is not None and spec.grafana else []
    named = alerts_topic(plan)
    if named is not None:
        calls.append(topic(named))
    grafana = spec.grafana_alerts if spec is not None and spec.grafana else None
    if grafana is not None and grafana.sns_topic_arn is not None:
        calls.append(topic(grafana.sns_topic_arn))
    return calls


def _unique(calls: list[ApiCall]) -> tuple[ApiCall, ...]:
    return tuple({call.key: call for call in calls}.values())
