"""What an editor shows for each key in addition to its type: an example, the unit, and values from the catalog.

Values are suggestions: if the validator accepts others, so does the schema.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hpkit.catalog import (
    ACCELERATOR_RESOURCES,
    EFA,
    addons,
    instance_types,
    kubernetes_versions,
    regions,
    vpc_endpoints,
)

__all__ = ["HINTS", "VALUES", "Hint", "decorated", "definitions", "nullable", "optional", "title_of", "with_markdown"]


@dataclass(frozen=True, slots=True)
class Hint:
    """What an editor shows for one key.

    - example: a valid value; for a list, one of its entries.
    - unit: the number's unit.
    - values: which of VALUES complete it.
    - only: no other value is valid.
    - keys: which of VALUES complete the keys of a map.
    """

    example: Any
    unit: str = ""
    values: str = ""
    only: bool = False
    keys: str = ""


# Names for completion; each is in the schema once.
VALUES: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "addonNames": lambda: (each.name for each in addons()),
    "addonsAndKeda": lambda: (*(each.name for each in addons()), "keda"),
    "instanceTypeNames": lambda: (each.name for each in instance_types()),
    "kubernetesVersions": kubernetes_versions,
    "limitResources": lambda: (*ACCELERATOR_RESOURCES.values(), "cpu", "memory", "nodes"),
    "migProfiles": lambda: sorted({profile.name for each in instance_types() for profile in each.mig_profiles or ()}),
    "operators": lambda: ("In", "Exists"),
    "podResources": lambda: (*ACCELERATOR_RESOURCES.values(), "cpu", "memory", EFA),
    "regionNames": lambda: (each.name for each in regions()),
    "requirementKeys": lambda: (
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "kubernetes.io/arch",
    ),
    "vpcEndpointServices": vpc_endpoints,
}
_ROLE: Final = "arn:aws:iam::123456789012:role/john-scientists"
_TYPE: Final = Hint("ml.g5.12xlarge", values="instanceTypeNames")
# The validator accepts no other type for nodes (CLU003), but a quota can be for a type that comes later.
_NODE_TYPE: Final = Hint("ml.g5.12xlarge", values="instanceTypeNames", only=True)
_ZONE: Final = Hint("us-west-2a")
_THROUGHPUT: Final = Hint(250, "MB/s for each TiB")
_SECONDS: Final = Hint(30, "seconds")

# Model → key → what an editor shows. A test requires each key with a text or a number.
HINTS: Final[Mapping[str, Mapping[str, Hint]]] = {
    "Organization": {
        "organization": Hint("acme"),
        "include": Hint("teams/*.yaml"),
        "defaults": Hint("shared.yaml"),
        "environmentDefaults": Hint({"region": "us-west-2"}),
        "tags": Hint({"cost-center": "ml"}),
    },
    "ClusterPolicy": {"description": Hint("Training before experiments")},
    "PriorityClass": {"name": Hint("training"), "weight": Hint(80, "none, a rank")},
    "Team": {
        "name": Hint("john"),
        "fairShareWeight": Hint(50, "none, a ratio to other teams' weights"),
        "members": Hint(_ROLE),
        "serviceAccounts": Hint("trainer"),
        "description": Hint("Vision models"),
        "priorityClasses": Hint("training"),
        "spacePriorityClass": Hint("interactive"),
        "registry": Hint("train"),
    },
    "TeamOverride": {
        "fairShareWeight": Hint(50, "none, a ratio to other teams' weights"),
        "members": Hint([_ROLE]),
    },
    "MemberRole": {
        "permissionSets": Hint("DataScientist"),
        "principals": Hint("arn:aws:iam::123456789012:role/ci"),
        "samlProvider": Hint("Okta"),
    },
    "OidcTrust": {
        "provider": Hint("token.actions.githubusercontent.com"),
        "audience": Hint("sts.amazonaws.com"),
        "subjects": Hint("repo:acme/training:ref:refs/heads/main"),
    },
    "Sharing": {"borrowLimit": Hint(50, "percent of the team's own quota")},
    "AbsoluteBorrowLimit": {"instanceType": _TYPE, "count": Hint(2, "instances")},
    "Environment": {
        "region": Hint("us-west-2", values="regionNames"),
        "account": Hint("123456789012"),
        "deployers": Hint("arn:aws:iam::123456789012:role/deployer"),
        "permissionsBoundary": Hint("arn:aws:iam::123456789012:policy/boundary"),
        "addons": Hint({"coredns": "v1.13.1-eksbuild.1"}, keys="addonNames"),
    },
    "Network": {"vpcCidr": Hint("10.192.0.0/16"), "endpoints": Hint("s3", values="vpcEndpointServices")},
    "Zone": {"availabilityZone": _ZONE, "nodeCidr": Hint("10.192.64.0/18")},
    "ExistingNetwork": {
        "vpcId": Hint("vpc-0a1b2c3d4e5f60718"),
        "subnets": Hint({"us-west-2a": "subnet-0a1b2c3d4e5f60718"}),
        "controlPlaneSubnets": Hint("subnet-0a1b2c3d4e5f60718"),
        "securityGroupIds": Hint("sg-0a1b2c3d4e5f60718"),
    },
    "Eks": {
        "version": Hint("1.35", values="kubernetesVersions"),
        "administrators": Hint("arn:aws:iam::123456789012:role/Admin"),
        "viewers": Hint("arn:aws:iam::123456789012:role/preview"),
        "logRetentionDays": Hint(90, "days"),
    },
    "Endpoint": {"publicCidrs": Hint("198.51.100.7/32"), "privateFrom": Hint("10.20.0.0/16")},
    "ExistingEks": {"name": Hint("platform")},
    "Cluster": {"name": Hint("train"), "nodesReadyMinutes": Hint(120, "minutes")},
    "InstanceGroup": {
        "name": Hint("gpu"),
        "instanceType": _NODE_TYPE,
        "instanceTypes": _NODE_TYPE,
        "instanceCount": Hint(4, "instances"),
        "minInstanceCount": Hint(2, "instances"),
        "availabilityZone": _ZONE,
        "threadsPerCore": Hint(2, "threads"),
        "trainingPlanArn": Hint("arn:aws:sagemaker:us-west-2:123456789012:training-plan/p5-december"),
        "labels": Hint({"team": "vision"}),
        "lifecycleScript": Hint("s3://sagemaker-acme/on_create.sh"),
        "lifecycleScriptSha256": Hint("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        "executionRole": Hint("arn:aws:iam::123456789012:role/nodes"),
        "imageId": Hint("ami-0a1b2c3d4e5f60718"),
        "imageReleaseVersion": Hint("1.2.3"),
    },
    "ClusterEbsVolumeConfig": {
        "volumeSizeInGB": Hint(500, "GiB"),
        "volumeKmsKeyId": Hint("arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"),
    },
    "LocalDisk": {"instanceTypes": _NODE_TYPE, "path": Hint("/opt/dlami/nvme")},
    "ClusterFsxLustreConfig": {
        "dnsName": Hint("fs-0a1b2c3d4e5f60718.fsx.us-west-2.amazonaws.com"),
        "mountName": Hint("fsx"),
        "mountPath": Hint("/fsx"),
    },
    "ClusterFsxOpenZfsConfig": {
        "dnsName": Hint("fs-0a1b2c3d4e5f60718.fsx.us-west-2.amazonaws.com"),
        "mountPath": Hint("/home"),
    },
    "RestrictedInstanceGroup": {
        "name": Hint("nova"),
        "instanceType": _NODE_TYPE,
        "instanceCount": Hint(4, "instances"),
        "availabilityZone": _ZONE,
        "threadsPerCore": Hint(2, "threads"),
        "trainingPlanArn": Hint("arn:aws:sagemaker:us-west-2:123456789012:training-plan/p5-december"),
        "executionRole": Hint("arn:aws:iam::123456789012:role/nova"),
    },
    "OverrideVpcConfig": {
        "subnets": Hint("subnet-0a1b2c3d4e5f60718"),
        "securityGroupIds": Hint("sg-0a1b2c3d4e5f60718"),
    },
    "Taint": {"key": Hint("dedicated"), "value": Hint("training")},
    "TieredStorage": {"instanceMemoryAllocationPercentage": Hint(20, "percent of the node's memory")},
    "Dependencies": {
        "chart": Hint("charts/hyperpod"),
        "version": Hint("0.1.0"),
        "sha256": Hint("0" * 64),
        "imageRegistry": Hint("123456789012.dkr.ecr.us-west-2.amazonaws.com/hyperpod"),
        "values": Hint({"mlflow": {"enabled": False}}),
    },
    "FSxLustreConfig": {"sizeInGiB": Hint(1200, "GiB"), "perUnitStorageThroughput": _THROUGHPUT},
    "ScheduledUpdate": {"scheduleExpression": Hint("cron(0 2 ? * SUN *)", "UTC")},
    "AutoPatch": {"idleWaitWindowInSeconds": Hint(86400, "seconds")},
    "DrainPolicy": {"drainTimeoutInSeconds": Hint(3600, "seconds")},
    "DeploymentConfig": {"waitIntervalInSeconds": _SECONDS, "autoRollbackAlarms": Hint("gpu-errors")},
    "BatchSize": {"value": Hint(1, "instances, or percent of the group, depending on `type`")},
    "Storage": {
        "kmsKeyArn": Hint("arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"),
    },
    "ExistingStorage": {"bucket": Hint("sagemaker-acme-lifecycle")},
    "Lustre": {
        "availabilityZone": _ZONE,
        "storageCapacityGiB": Hint(1200, "GiB"),
        "perUnitStorageThroughput": _THROUGHPUT,
        "image": Hint("123456789012.dkr.ecr.us-west-2.amazonaws.com/busybox:1.37.0"),
        "existing": Hint("fs-0123456789abcdef0"),
    },
    "RootSquash": {"noSquashNids": Hint("10.0.[2-10].[1-255]@tcp")},
    "UserIds": {"first": Hint(20000, "user and group ids"), "count": Hint(1000, "ids")},
    "Registry": {
        "pullFrom": Hint("shared/*"),
        "keepImages": Hint(200, "images"),
        "untaggedDays": Hint(14, "days"),
    },
    "Autoscaling": {"clusterRole": Hint("arn:aws:iam::123456789012:role/karpenter")},
    "NodeClass": {"name": Hint("burst"), "instanceGroups": Hint("burst-a")},
    "NodePool": {
        "name": Hint("inference"),
        "nodeClass": Hint("burst"),
        "limits": Hint({"nvidia.com/gpu": 16}, "of the whole pool", keys="limitResources"),
        "expireAfter": Hint("720h"),
        "weight": Hint(10, "none, a rank"),
        "labels": Hint({"pool": "inference"}),
    },
    "Requirement": {
        "key": Hint("node.kubernetes.io/instance-type", values="requirementKeys"),
        "operator": Hint("In", values="operators"),
        "values": Hint("ml.g5.8xlarge", values="instanceTypeNames"),
    },
    "Disruption": {"consolidateAfter": Hint("5m")},
    "Budget": {"nodes": Hint("10%"), "schedule": Hint("0 9 * * mon-fri", "UTC"), "duration": Hint("8h30m")},
    "WarmPool": {
        "replicas": Hint(2, "pods"),
        "requests": Hint({"nvidia.com/gpu": 1}, "of each pod", keys="podResources"),
        "image": Hint("public.ecr.aws/eks-distro/kubernetes/pause:3.10"),
    },
    "Keda": {
        "role": Hint("arn:aws:iam::123456789012:role/keda"),
        "sqs": Hint("arn:aws:sqs:us-west-2:123456789012:requests"),
    },
    "Governance": {"policyName": Hint("acme-dev"), "quotaNames": Hint({"john": "john-quota"})},
    "GangScheduling": {"timeout": Hint("30m"), "recoveryTimeout": Hint("5m")},
    "RequeuingStrategy": {
        "backoffLimitCount": Hint(5, "retries"),
        "backoffBaseSeconds": _SECONDS,
        "backoffMaxSeconds": Hint(3600, "seconds"),
    },
    "ComputeQuotaResource": {
        "instanceType": _TYPE,
        "count": Hint(3, "instances"),
        "accelerators": Hint(4, "GPUs or Trainium chips"),
        "vCpu": Hint(24.0, "vCPUs"),
        "memoryInGiB": Hint(96.0, "GiB"),
        "share": Hint("40%"),
    },
    "AcceleratorPartition": {"type": Hint("mig-1g.5gb", values="migProfiles"), "count": Hint(7, "partitions")},
    "TeamLimits": {
        "terminationGracePeriodSeconds": Hint(120, "seconds"),
        "tolerations": Hint("team/reserved"),
        "volumes": Hint("nfs"),
    },
    "DefaultRequests": {"cpu": Hint("500m", "CPUs"), "memory": Hint("1Gi", "bytes")},
    "SharedPool": {"name": Hint("shared"), "fairShareWeight": Hint(0, "none, a ratio to other teams' weights")},
    "Metrics": {"scrapeInterval": _SECONDS},
    "BasicMetrics": {"scrapeInterval": _SECONDS},
    "AdvancedMetrics": {"scrapeInterval": _SECONDS},
    "Alerts": {
        "emails": Hint("ml-platform@example.com"),
        "snsTopicArn": Hint("arn:aws:sns:us-west-2:123456789012:ml-platform"),
    },
    "ClusterEvents": {"statuses": Hint("Failed"), "levels": Hint("Error")},
    "GrafanaDashboards": {"teams": Hint(["john"])},
    "GrafanaAlerts": {
        "snsTopicArn": Hint("arn:aws:sns:us-west-2:123456789012:ml-platform"),
        "waitingMinutes": Hint(30, "minutes"),
        "preemptionsPerHour": Hint(10, "preemptions an hour"),
        "gpuTemperature": Hint(85, "degrees Celsius"),
        "idleGpuPercent": Hint(5, "percent of a GPU's time"),
        "idleGpuHours": Hint(2, "hours"),
        "unhealthyNodeMinutes": Hint(15, "minutes"),
    },
    "GrafanaUsers": {
        "userIds": Hint("94482488-3041-7026-18ce-1a1e3c0a2f43"),
        "groupIds": Hint("94482488-3041-7026-18ce-1a1e3c0a2f43"),
    },
    "Inference": {
        "tlsCertificateBucket": Hint("acme-certificates"),
        "modelBuckets": Hint("acme-models"),
        "oidcProviderArn": Hint(
            "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/0A1B2C3D4E5F"
        ),
    },
    "WebUi": {
        "domain": Hint("spaces.acme.com"),
        "certificateArn": Hint("arn:aws:acm:us-west-2:123456789012:certificate/12345678-1234-1234-1234-123456789012"),
        "kmsKeyArn": Hint("arn:aws:kms:us-west-2:123456789012:key/12345678-1234-1234-1234-123456789012"),
    },
    "Addon": {
        "version": Hint("v1.13.1-eksbuild.1"),
        "configurationValues": Hint({"replicaCount": 2}),
        "role": Hint("arn:aws:iam::123456789012:role/addon"),
        "serviceAccountRoleArn": Hint("arn:aws:iam::123456789012:role/addon"),
    },
    "AllowDelete": {
        "instanceGroups": Hint("gpu"),
        "teams": Hint("john"),
        "nodePools": Hint("inference"),
        "addons": Hint("keda", values="addonsAndKeda"),
        "natGateways": Hint("nat"),
        "repositories": Hint("john/train"),
    },
    "Waiver": {
        "rule": Hint("CAP005"),
        "path": Hint("environments.dev.governance"),
        "reason": Hint("The second half of the nodes is for a team that joins in January"),
        "until": Hint("2027-01-31"),
    },
}
# JSON Schema's constraints on a text.
_FORM: Final = ("type", "pattern", "minLength", "maxLength")
# Names that are written as one word.
_ONE_WORD: Final = {"NodePool": "NodePool", "NodeClass": "NodeClass", "Eks": "EKS", "Keda": "KEDA"}


def title_of(model: str) -> str:
    """Return a section's name for people: `Instance group` for `InstanceGroup`."""
    if model in _ONE_WORD:
        return _ONE_WORD[model]
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in model).strip()
    return words[:1].upper() + words[1:]


def decorated(schema: Mapping[str, Any], hint: Hint) -> dict[str, Any]:
    """Return the JSON Schema of a key with its example, its unit, and the values and keys that may be completed."""
    result = dict(schema)
    is_list = result.get("type") == "array"
    if hint.keys:
        # Other keys remain valid: with additionalProperties, properties only name some.
        result["properties"] = dict.fromkeys(VALUES[hint.keys](), result["additionalProperties"])
    if hint.values:
        result = {**result, "items": _offering(result["items"], hint)} if is_list else _offering(result, hint)
    if hint.values or _reads_as_number(hint.example):
        # With names to complete, the example comes last, below all of them. A text of digits would be completed
        # without its quotes.
        shown = f"`{hint.example}`"
        result["description"] += "" if str(hint.example) in result["description"] else f" Example: {shown}."
    else:
        result["examples"] = [[hint.example] if is_list else hint.example]
    if hint.unit:
        result["description"] += f" Unit: {hint.unit}."
    return result


def with_markdown(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a key whose code spans an editor shows as such, and not as the marks around them."""
    text = schema.get("description") or ""
    return {**schema, "markdownDescription": text} if "`" in text else dict(schema)


def optional(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a key that may be empty, without an offer to write `null`, and without a second branch."""
    result = {key: value for key, value in schema.items() if key != "default" or value is not None}
    branches = result.get("anyOf", [])
    if len(branches) != 2 or branches[1] != {"type": "null"} or not isinstance(branches[0].get("type"), str):
        return result
    del result["anyOf"]
    form = {**branches[0], "type": [branches[0]["type"], "null"]}
    if "enum" in form:
        form["enum"] = [*form["enum"], None]
    return {**result, **form}


def nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a key whose default, and each entry of whose default, `null` turns off."""
    result = dict(schema)
    if isinstance(result.get("additionalProperties"), dict):
        result["additionalProperties"] = nullable(result["additionalProperties"])
        if "properties" in result:
            result["properties"] = dict.fromkeys(result["properties"], result["additionalProperties"])
    if "$ref" in result:
        result["anyOf"] = [{"$ref": result.pop("$ref")}]
    if "anyOf" in result:
        is_offered = any("null" in each.get("type", ()) for each in result["anyOf"])
        return result if is_offered else {**result, "anyOf": [*result["anyOf"], {"type": "null"}]}
    if isinstance(result.get("type"), str):
        result["type"] = [result["type"], "null"]
        result |= {"enum": [*result["enum"], None]} if "enum" in result else {}
    return result


def _reads_as_number(example: Any) -> bool:
    return isinstance(example, str) and example.replace(".", "", 1).isdigit()


def _offering(schema: Mapping[str, Any], hint: Hint) -> dict[str, Any]:
    """Return the schema of a text with names to complete, which still takes any other text."""
    form = {key: schema[key] for key in _FORM if key in schema}
    if hint.only:
        form = {"type": "null"} if isinstance(form["type"], list) else {}
    branches = [form] if form else []
    kept = {key: value for key, value in schema.items() if key not in _FORM}
    return {**kept, "anyOf": [{"$ref": f"#/$defs/{hint.values}"}, *branches]}


def definitions() -> dict[str, Any]:
    """Return the lists of names that the schema refers to."""
    return {name: {"type": "string", "enum": list(values())} for name, values in sorted(VALUES.items())}
