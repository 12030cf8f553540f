"""From what the SageMaker, EKS and EC2 APIs describe to an organization file's data.

Does not: call anything. What the contract cannot say is named in the result, never dropped in silence. NodeClasses and
NodePools live in Kubernetes and are not read here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Adopted", "Live", "adopt"]

_KIT_TAGS = ("SageMaker", "hpkit:organization", "hpkit:environment")


@dataclass(frozen=True, slots=True)
class Live:
    """Answers of the APIs, as boto3 gives them.

    cluster: DescribeCluster; eks: the `cluster` of EKS's DescribeCluster; zones: subnet id → zone; quotas, policies:
    DescribeComputeQuota and DescribeClusterSchedulerConfig of all that belong to the cluster; addons: name → version.
    """

    cluster: Mapping[str, Any]
    eks: Mapping[str, Any]
    zones: Mapping[str, str]
    quotas: Sequence[Mapping[str, Any]]
    policies: Sequence[Mapping[str, Any]]
    addons: Mapping[str, str]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Adopted:
    """data is an organization file's; imports are (type token, name, ARN); left_out says what data does not hold."""

    data: dict[str, Any]
    imports: tuple[tuple[str, str, str], ...]
    left_out: tuple[str, ...]


def adopt(live: Live, *, organization: str, environment: str) -> Adopted:
    """Return the organization file of a live cluster with its quotas and policy, and what to import."""
    left_out: list[str] = []
    cluster = live.cluster
    stack = f"{organization}-{environment}"
    spec: dict[str, Any] = {
        "region": cluster["ClusterArn"].split(":")[3],
        "network": {"existing": _network(live, left_out)},
        "eks": {"version": live.eks["version"], "existing": {"name": live.eks["name"]}},
        "cluster": _cluster(live, left_out),
    }
    if cluster.get("AutoScaling", {}).get("Mode") == "Enable":
        left_out.append("autoscaling is enabled: add its nodeClasses and nodePools, and set their groups to count 0")
    if live.quotas or live.policies:
        spec["governance"] = {"allocations": {_team(quota): _rows(quota) for quota in _by_team(live.quotas)}}
    pinned = {name: version for name, version in sorted(live.addons.items()) if name.startswith("amazon-sagemaker-")}
    if pinned:
        spec["addons"] = pinned
    data: dict[str, Any] = {"organization": organization}
    tags = {key: value for key, value in sorted(live.tags.items()) if key not in _KIT_TAGS}
    if tags:
        data["tags"] = tags
    if live.policies:
        data["clusterPolicy"] = _policy(live.policies[0])
    if live.quotas:
        data["teams"] = [_sharing(quota, left_out) for quota in _by_team(live.quotas)]
    data["environments"] = {environment: spec}
    imports = [("hyperpod:index:Cluster", cluster["ClusterName"], cluster["ClusterArn"])]
    imports += [
        ("hyperpod:index:ClusterSchedulerConfig", stack, policy["ClusterSchedulerConfigArn"])
        for policy in live.policies
    ]
    imports += [
        ("hyperpod:index:ComputeQuota", _team(quota), quota["ComputeQuotaArn"]) for quota in _by_team(live.quotas)
    ]
    return Adopted(data, tuple(imports), tuple(left_out))


def _network(live: Live, left_out: list[str]) -> dict[str, Any]:
    subnets: dict[str, str] = {}
    for subnet in live.cluster["VpcConfig"]["Subnets"]:
        zone = live.zones.get(subnet, "unknown")
        if zone in subnets:
            left_out.append(f"the subnet {subnet}: {zone} has {subnets[zone]} already, and the file takes one a zone")
            continue
        subnets[zone] = subnet
    return {
        "vpcId": live.eks["resourcesVpcConfig"]["vpcId"],
        "subnets": dict(sorted(subnets.items())),
        "securityGroupIds": list(live.cluster["VpcConfig"]["SecurityGroupIds"]),
    }


def _cluster(live: Live, left_out: list[str]) -> dict[str, Any]:
    cluster = live.cluster
    if cluster.get("NodeProvisioningMode") != "Continuous":
        left_out.append("the cluster does not provision continuously, and the kit's clusters always do")
    if cluster.get("RestrictedInstanceGroups"):
        left_out.append(f"{len(cluster['RestrictedInstanceGroups'])} restricted instance groups")
    spec: dict[str, Any] = {"name": cluster["ClusterName"], "nodeRecovery": cluster.get("NodeRecovery", "None")}
    tiered = cluster.get("TieredStorageConfig")
    if tiered:
        spec["tieredStorage"] = _renamed(
            tiered, {"Mode": "mode", "InstanceMemoryAllocationPercentage": "instanceMemoryAllocationPercentage"}
        )
    groups = sorted(cluster["InstanceGroups"], key=lambda group: str(group["InstanceGroupName"]))
    spec["instanceGroups"] = [_group(group, live, left_out) for group in groups]
    return spec


def _group(group: Mapping[str, Any], live: Live, left_out: list[str]) -> dict[str, Any]:
    name = group["InstanceGroupName"]
    spec: dict[str, Any] = {"name": name}
    types = group.get("InstanceRequirements", {}).get("DesiredInstanceTypes")
    if group.get("InstanceType"):
        spec["instanceType"] = group["InstanceType"]
    else:
        spec["instanceTypes"] = list(types or ())
    spec["instanceCount"] = group.get("TargetCount", group.get("CurrentCount", 0))
    subnets = group.get("OverrideVpcConfig", {}).get("Subnets") or live.cluster["VpcConfig"]["Subnets"]
    zones = sorted({live.zones[subnet] for subnet in subnets if subnet in live.zones})
    if len(zones) == 1:
        spec["availabilityZone"] = zones[0]
    elif group.get("OverrideVpcConfig"):
        left_out.append(f"the subnets of {name}: they span {', '.join(zones)}, and the file pins a group to one zone")
    spec |= _renamed(
        group,
        {
            "MinCount": "minInstanceCount",
            "ThreadsPerCore": "threadsPerCore",
            "TrainingPlanArn": "trainingPlanArn",
        },
    )
    if "Spot" in group.get("CapacityRequirements", {}):
        spec["capacityType"] = "Spot"
    if group.get("OnStartDeepHealthChecks"):
        spec["deepHealthChecks"] = list(group["OnStartDeepHealthChecks"])
    kubernetes = group.get("KubernetesConfig", {})
    labels = kubernetes.get("DesiredLabels")
    if labels:
        spec["labels"] = dict(sorted(labels.items()))
    taints = kubernetes.get("DesiredTaints")
    if taints:
        spec["taints"] = [_renamed(taint, {"Key": "key", "Value": "value", "Effect": "effect"}) for taint in taints]
    _storage(group, spec, left_out)
    _updates(group, spec)
    script = group.get("LifeCycleConfig", {})
    if script.get("OnCreate"):
        spec["lifecycleScript"] = f"{script['SourceS3Uri'].rstrip('/')}/{script['OnCreate']}"
    return spec


def _storage(group: Mapping[str, Any], spec: dict[str, Any], left_out: list[str]) -> None:
    for storage in group.get("InstanceStorageConfigs", ()):
        volume = storage.get("EbsVolumeConfig", {})
        if volume.get("VolumeSizeInGB") and "ebsVolumeGiB" not in spec:
            spec["ebsVolumeGiB"] = volume["VolumeSizeInGB"]
        else:
            left_out.append(f"a storage configuration of {group['InstanceGroupName']} ({', '.join(storage)})")


def _updates(group: Mapping[str, Any], spec: dict[str, Any]) -> None:
    patch = group.get("AutoPatchConfig")
    if patch:
        names = {"PatchingStrategy": "patchingStrategy", "IdleWaitWindowInSeconds": "idleWaitWindowInSeconds"}
        spec["autoPatch"] = _renamed(patch, names) | _rolling(patch)
        if patch.get("DrainPolicy"):
            drain = {"DrainTimeoutInSeconds": "drainTimeoutInSeconds", "OnDrainTimeout": "onDrainTimeout"}
            spec["autoPatch"]["drainPolicy"] = _renamed(patch["DrainPolicy"], drain)
    schedule = group.get("ScheduledUpdateConfig")
    if schedule:
        spec["scheduledUpdate"] = {"scheduleExpression": schedule["ScheduleExpression"]} | _rolling(schedule)


def _rolling(update: Mapping[str, Any]) -> dict[str, Any]:
    config = update.get("DeploymentConfig", {})
    policy = config.get("RollingUpdatePolicy")
    if not policy:
        return {}
    size = {"Type": "type", "Value": "value"}
    spec: dict[str, Any] = {"maximumBatchSize": _renamed(policy["MaximumBatchSize"], size)}
    if policy.get("RollbackMaximumBatchSize"):
        spec["rollbackMaximumBatchSize"] = _renamed(policy["RollbackMaximumBatchSize"], size)
    spec |= _renamed(config, {"WaitIntervalInSeconds": "waitIntervalInSeconds"})
    alarms = [alarm["AlarmName"] for alarm in config.get("AutoRollbackConfiguration", ())]
    return {"deploymentConfig": spec | ({"autoRollbackAlarms": alarms} if alarms else {})}


def _renamed(source: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {ours: source[theirs] for theirs, ours in names.items() if source.get(theirs) is not None}


def _policy(policy: Mapping[str, Any]) -> dict[str, Any]:
    config = policy.get("SchedulerConfig", {})
    classes = sorted(config.get("PriorityClasses", ()), key=lambda each: -int(each["Weight"]))
    spec: dict[str, Any] = {"taskPrioritization": "Rank" if classes else "FirstComeFirstServed"}
    if classes:
        spec["priorityClasses"] = [{"name": each["Name"], "weight": each["Weight"]} for each in classes]
    return spec | _renamed(config, {"FairShare": "fairShare", "IdleResourceSharing": "idleResourceSharing"})


def _team(quota: Mapping[str, Any]) -> str:
    return str(quota["ComputeQuotaTarget"]["TeamName"])


def _by_team(quotas: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(quotas, key=_team)


def _sharing(quota: Mapping[str, Any], left_out: list[str]) -> dict[str, Any]:
    config = quota.get("ComputeQuotaConfig", {})
    stated = config.get("ResourceSharingConfig", {})
    spec: dict[str, Any] = {"name": _team(quota)}
    spec["fairShareWeight"] = quota["ComputeQuotaTarget"].get("FairShareWeight", 0)
    sharing = _renamed(stated, {"Strategy": "strategy"})
    # The service fills a limit in whatever the strategy; only with this one does it mean anything.
    if sharing.get("strategy") == "LendAndBorrow":
        sharing |= _renamed(stated, {"BorrowLimit": "borrowLimit"})
        absolute = []
        for row in stated.get("AbsoluteBorrowLimits", ()):
            if row.get("Count") is not None:
                absolute.append({"instanceType": row["InstanceType"], "count": row["Count"]})
            else:
                left_out.append(f"a borrow limit of {_team(quota)} in fractions of {row['InstanceType']}")
        if absolute:
            sharing["absoluteBorrowLimits"] = absolute
    if sharing:
        spec["sharing"] = sharing
    if quota.get("ActivationState") == "Disabled":
        left_out.append(f"the quota of {_team(quota)} is disabled; the kit's quotas are enabled")
    return spec | _renamed(config, {"PreemptTeamTasks": "preemptTeamTasks"})


def _rows(quota: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for row in quota.get("ComputeQuotaConfig", {}).get("ComputeQuotaResources", ()):
        spec: dict[str, Any] = {"instanceType": row["InstanceType"]}
        if row.get("Count"):
            # Beside a count, the service's own figures for vCPU and memory say nothing new.
            rows.append({**spec, "count": row["Count"]})
            continue
        partition = row.get("AcceleratorPartition")
        if partition:
            spec["acceleratorPartition"] = {"type": partition["Type"], "count": partition["Count"]}
        elif row.get("Accelerators"):
            spec["accelerators"] = row["Accelerators"]
        spec |= _renamed(row, {"VCpu": "vCpu", "MemoryInGiB": "memoryInGiB"})
        if len(spec) == 1:
            spec["count"] = 0
        rows.append(spec)
    return rows
