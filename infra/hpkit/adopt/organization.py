"""The organization file that describes a live platform, so that the program changes nothing in it.

It calls no API. What the file can't express is reported, with what hpkit will do about it. What makes an adoption
impossible is a blocker.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from hpkit.adopt.karpenter import autoscaling_of, leave_counts_to_karpenter
from hpkit.adopt.live_platform import LiveAccessEntry, LivePlatform, Remarks, addons_of
from hpkit.catalog import INFERENCE_OPERATOR, find_instance_type, keda_chart, operator_charts
from hpkit.config.models.base import Model
from hpkit.config.models.cluster import (
    AutoPatch,
    EnvironmentConfig,
    InstanceGroup,
    ScheduledUpdate,
    SharedEnvironmentConfig,
    Taint,
    TieredStorage,
)
from hpkit.plan.model import NAMESPACE_PREFIX
from hpkit.plan.names import GROUP_PREFIX
from hpkit.plan.principals import TEAM_ROLE

__all__ = ["Adopted", "adopt"]

# Chart → the API group that its operator serves, however it was installed.
_API_GROUPS = {"keda": "keda.sh", "kuberay-operator": "ray.io", "lws": "leaderworkerset.x-k8s.io"}
_ADMIN = "AmazonEKSClusterAdminPolicy"
# A quota or policy in any other status is in transition, or failed and cannot be updated.
_STEADY = ("Created", "Updated")
# A resource in a team's Role that only this kind of work allows.
_SIGN_OF = {"training": "jobs", "inference": "horizontalpodautoscalers", "spaces": "workspaces"}


@dataclass(frozen=True, slots=True)
class Adopted:
    """The data of an organization file, and remarks about what it doesn't contain."""

    data: dict[str, Any]
    remarks: Remarks


def adopt(live: LivePlatform, *, organization: str, environment: str) -> Adopted:
    """Return the organization file of a live platform; organization and environment name its stack."""
    remarks = Remarks()
    _add_blockers(live, remarks)
    members, administrators = _access(live, remarks)
    spec: dict[str, Any] = {
        "region": live.region,
        "account": live.account,
        "manageTags": False,
        "network": {"existing": _network(live)},
        "eks": {"version": live.eks["version"], "existing": {"name": live.eks_name}},
        "cluster": _cluster(live, remarks),
    }
    if administrators:
        spec["eks"]["administrators"] = administrators
    bucket = _bucket(spec["cluster"]["instanceGroups"])
    if bucket:
        spec["storage"] = {"existing": {"bucket": bucket}}
    if live.autoscales:
        spec["autoscaling"] = autoscaling_of(live, remarks.changes)
    if live.quotas or live.policies:
        spec["governance"] = _governance(live, f"{organization}-{environment}")
    if live.autoscales:
        remarks.assumed += leave_counts_to_karpenter(spec)
    if live.addons:
        spec["addons"] = addons_of(live, remarks)
    remarks.unmanaged += [
        f"the role {each['roleArn']} of the pods of {each['namespace']}: before you set `storage.teamBuckets` for the "
        "team, delete its Pod Identity association"
        for each in live.identities
        if each["namespace"].startswith(NAMESPACE_PREFIX) and each["serviceAccount"] == "default"
    ]
    remarks.unmanaged += _operators(live)
    data: dict[str, Any] = {"organization": organization}
    if live.policies:
        data["clusterPolicy"] = _policy(live.policies[0])
    if live.quotas:
        data["teams"] = [_team_of(quota, members) | _workloads(quota, live) for quota in _by_team(live.quotas)]
    data["environments"] = {environment: spec}
    return Adopted(data, remarks)


def _operators(live: LivePlatform) -> Iterator[str]:
    """Yield the operators that hpkit could install; a second release would find objects that it doesn't own."""
    if live.api_groups is None:
        yield "operators, such as KubeRay: the Kubernetes API couldn't be reached to find them"
    for chart in (keda_chart(), *operator_charts()):
        brought = chart.name == "keda" and INFERENCE_OPERATOR in live.addons
        if _API_GROUPS[chart.name] in (live.api_groups or ()) and not brought:
            key = "autoscaling: {keda: {}}" if chart.name == "keda" else f"operators: [{chart.name}]"
            yield (
                f"the operator of {_API_GROUPS[chart.name]}. To let hpkit install its chart ({chart.name} "
                f"{chart.version}), uninstall it while none of its objects exist, then set `{key}`"
            )


def _add_blockers(live: LivePlatform, remarks: Remarks) -> None:
    """Add the blockers: what cannot be adopted in its present state."""
    block, cluster = remarks.blockers.append, live.cluster
    for what in live.unknown:
        block(f"not known, so nothing is imported: {what}")
    if cluster["ClusterStatus"] != "InService":
        reason = f" ({cluster['FailureMessage']})" if cluster.get("FailureMessage") else ""
        block(f"the cluster {cluster['ClusterName']} is {cluster['ClusterStatus']}{reason}: wait until it is InService")
    if cluster.get("NodeProvisioningMode") != "Continuous":
        block(
            f"{cluster['ClusterName']} doesn't provision continuously, and HyperPod "
            "can't change that in an existing cluster: create a new cluster and move the teams to it"
        )
    if not cluster["InstanceGroups"]:
        names = ", ".join(str(group["InstanceGroupName"]) for group in _restricted_groups(live))
        block(f"the cluster only has restricted instance groups ({names}): add an ordinary instance group")
    if len(live.policies) > 1:
        names = ", ".join(str(each["Name"]) for each in live.policies)
        block(
            f"{len(live.policies)} cluster policies ({names}), but HyperPod documents one per cluster: delete the "
            f"others"
        )
    teams = [_team(quota) for quota in live.quotas]
    for team in sorted({team for team in teams if teams.count(team) > 1}):
        names = ", ".join(str(quota["Name"]) for quota in live.quotas if _team(quota) == team)
        block(f"{teams.count(team)} quotas of team {team} ({names}): the file has one per team; delete the others")
    for each in [*live.quotas, *live.policies]:
        if each["Status"] not in _STEADY:
            block(f"{each['Name']} is {each['Status']}: wait, or delete it, until it is {' or '.join(_STEADY)}")


def _network(live: LivePlatform) -> dict[str, Any]:
    """Return the network: one subnet per zone, of the cluster if it has one there, else of a group."""
    config = live.cluster["VpcConfig"]
    subnets: dict[str, str] = {}
    for subnet in [*config["Subnets"], *(each for group in _all_groups(live) for each in _override(group)["Subnets"])]:
        subnets.setdefault(live.zones[subnet], subnet)
    return {
        "vpcId": live.eks["resourcesVpcConfig"]["vpcId"],
        "subnets": dict(sorted(subnets.items())),
        "controlPlaneSubnets": list(config["Subnets"]),
        "securityGroupIds": list(config["SecurityGroupIds"]),
    }


def _groups(live: LivePlatform) -> list[Mapping[str, Any]]:
    return sorted(live.cluster["InstanceGroups"], key=lambda group: str(group["InstanceGroupName"]))


def _restricted_groups(live: LivePlatform) -> list[Mapping[str, Any]]:
    found = live.cluster.get("RestrictedInstanceGroups", ())
    return sorted(found, key=lambda group: str(group["InstanceGroupName"]))


def _all_groups(live: LivePlatform) -> list[Mapping[str, Any]]:
    return [*_groups(live), *_restricted_groups(live)]


def _override(group: Mapping[str, Any]) -> Mapping[str, Any]:
    return group.get("OverrideVpcConfig") or {"Subnets": [], "SecurityGroupIds": []}


def _bucket(groups: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the bucket of the first group's script, for groups that are added later."""
    scripts = [group["lifecycleScript"] for group in groups if "lifecycleScript" in group]
    return scripts[0].removeprefix("s3://").partition("/")[0] if scripts else None


def _access(live: LivePlatform, remarks: Remarks) -> tuple[dict[str, list[str]], list[str]]:
    """Return team → roles, and administrators; other entries aren't changed.

    HyperPod and EKS manage their own entries for nodes and services.
    """
    members: dict[str, list[str]] = {}
    administrators = []
    teams = {_team(quota) for quota in live.quotas}
    for entry in sorted(live.entries, key=lambda each: each.principal):
        if entry.described.get("type", "STANDARD") != "STANDARD" or "/aws-service-role/" in entry.principal:
            continue
        own = {group.removeprefix(GROUP_PREFIX) for group in entry.groups if group.startswith(GROUP_PREFIX)}
        plain = ":role/" in entry.principal and len(own) == len(entry.groups) and own <= teams
        if not plain or not (own or entry.has(_ADMIN)):
            remarks.unmanaged.append(_left_alone(entry))
            continue
        for team in sorted(own):
            members.setdefault(team, []).append(entry.principal)
        if entry.has(_ADMIN):
            administrators.append(entry.principal)
    return members, administrators


def _left_alone(entry: LiveAccessEntry) -> str:
    has = [*sorted(entry.groups), *(str(each["policyArn"]).rpartition("/")[2] for each in entry.policies)]
    return f"access entry of {entry.principal} ({', '.join(has) or 'no permissions'})"


def _governance(live: LivePlatform, stack: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "topologyAwareScheduling": "Unmanaged",
        "allocations": {
            _team(quota): _rows(quota.get("ComputeQuotaConfig", {}).get("ComputeQuotaResources", ()))
            for quota in _by_team(live.quotas)
        },
    }
    names = {_team(quota): str(quota["Name"]) for quota in _by_team(live.quotas) if quota["Name"] != _team(quota)}
    if names:
        spec["quotaNames"] = names
    if live.policies and live.policies[0]["Name"] != stack:
        spec["policyName"] = live.policies[0]["Name"]
    return spec


def _cluster(live: LivePlatform, remarks: Remarks) -> dict[str, Any]:
    cluster = live.cluster
    spec: dict[str, Any] = {"name": cluster["ClusterName"], "nodeRecovery": cluster.get("NodeRecovery", "None")}
    tiered = cluster.get("TieredStorageConfig")
    if tiered and tiered.get("Mode") != "Disable":
        spec["tieredStorage"] = _section(TieredStorage, tiered)
    # A cluster with nodes already has the dependencies. A second Helm release would find objects that it doesn't own.
    spec["dependencies"] = {"installed": True}
    spec["instanceGroups"] = [_group(group, live, remarks) for group in _groups(live)]
    restricted = [_restricted_group(group, live, remarks) for group in _restricted_groups(live)]
    if restricted:
        spec["restrictedInstanceGroups"] = restricted
    shared = cluster.get("RestrictedInstanceGroupsConfig", {}).get("SharedEnvironmentConfig")
    if shared:
        # The desired values override the current ones, because an update may be in progress.
        details = {
            name.removeprefix(when): value
            for when in ("Current", "Desired")
            for name, value in shared.items()
            if name.startswith(when)
        }
        spec["restrictedInstanceGroupsConfig"] = {"sharedEnvironmentConfig": _section(SharedEnvironmentConfig, details)}
    return spec


def _group(group: Mapping[str, Any], live: LivePlatform, remarks: Remarks) -> dict[str, Any]:
    name = group["InstanceGroupName"]
    spec: dict[str, Any] = {"name": name}
    types = group.get("InstanceRequirements", {}).get("DesiredInstanceTypes")
    if group.get("InstanceType"):
        spec["instanceType"] = group["InstanceType"]
    else:
        spec["instanceTypes"] = list(types or ())
    _common(group, spec, live, remarks)
    if group.get("MinCount") is not None:
        spec["minInstanceCount"] = group["MinCount"]
    if "Spot" in group.get("CapacityRequirements", {}):
        spec["capacityType"] = "Spot"
    _kubernetes(group, spec)
    if group.get("AutoPatchConfig"):
        spec["autoPatch"] = _update(AutoPatch, group["AutoPatchConfig"])
    script = group.get("LifeCycleConfig", {})
    if script.get("OnCreate"):
        spec["lifecycleScript"] = f"{script['SourceS3Uri']}/{script['OnCreate']}"
    spec |= _section(InstanceGroup, group, "NetworkInterface")
    # Settings that only a Slurm cluster has: an update would remove them.
    if group.get("SlurmConfig"):
        remarks.changes.append(f"{spec['name']} has SlurmConfig, which the file can't express")
    return spec


def _restricted_group(group: Mapping[str, Any], live: LivePlatform, remarks: Remarks) -> dict[str, Any]:
    spec: dict[str, Any] = {"name": group["InstanceGroupName"], "instanceType": group["InstanceType"]}
    _common(group, spec, live, remarks)
    environment = _section(EnvironmentConfig, group.get("EnvironmentConfig", {}))
    return spec | ({"environmentConfig": environment} if environment else {})


def _common(group: Mapping[str, Any], spec: dict[str, Any], live: LivePlatform, remarks: Remarks) -> None:
    """Add what ordinary and restricted groups have alike."""
    spec["instanceCount"] = group.get("TargetCount", group.get("CurrentCount", 0))
    spec |= _where(group, live)
    spec["executionRole"] = group["ExecutionRole"]
    storage = group.get("InstanceStorageConfigs") or ()
    volumes = [each for each in storage if "EbsVolumeConfig" in each]
    if len(volumes) < len(storage):
        remarks.changes.append(f"{spec['name']} mounts an FSx file system, which the file can't express")
    known = {**group, "InstanceStorageConfigs": volumes}
    spec |= _section(InstanceGroup, known, "ThreadsPerCore", "TrainingPlanArn", "InstanceStorageConfigs")
    types = [find_instance_type(name) for name in spec.get("instanceTypes", [spec.get("instanceType", "")])]
    if "threadsPerCore" not in spec and all(each and (each.threads_per_core or 1) > 1 for each in types):
        # The API reference names no default (ClusterInstanceGroupSpecification).
        remarks.assumed.append(
            f"{spec['name']} has two threads per core; if its nodes show half of the CPUs in `kubectl "
            "describe nodes`, add `threadsPerCore: 1`"
        )
    if group.get("OnStartDeepHealthChecks"):
        spec["deepHealthChecks"] = list(group["OnStartDeepHealthChecks"])
    if group.get("ScheduledUpdateConfig"):
        spec["scheduledUpdate"] = _update(ScheduledUpdate, group["ScheduledUpdateConfig"])


def _where(group: Mapping[str, Any], live: LivePlatform) -> dict[str, Any]:
    """Return the group's zone, nothing if it is in all zones of the network, else its subnets and security groups."""
    network, override = _network(live), group.get("OverrideVpcConfig")
    config = override or live.cluster["VpcConfig"]
    same_groups = sorted(config["SecurityGroupIds"]) == sorted(network["securityGroupIds"])
    zones = sorted({live.zones[subnet] for subnet in config["Subnets"]})
    named = [network["subnets"][zone] for zone in zones]
    if same_groups and sorted(config["Subnets"]) == sorted(named):
        if override and len(zones) == 1:
            return {"availabilityZone": zones[0]}
        if set(zones) == set(network["subnets"]):
            return {}
    # The file does not list these subnets, so it has to name their zone.
    zone = {"availabilityZone": zones[0]} if override and len(zones) == 1 else {}
    return zone | {
        "overrideVpcConfig": {"subnets": list(config["Subnets"]), "securityGroupIds": list(config["SecurityGroupIds"])}
    }


def _kubernetes(group: Mapping[str, Any], spec: dict[str, Any]) -> None:
    kubernetes = group.get("KubernetesConfig", {})
    labels = kubernetes.get("DesiredLabels")
    if labels:
        spec["labels"] = dict(sorted(labels.items()))
    taints = kubernetes.get("DesiredTaints")
    if taints:
        spec["taints"] = [_section(Taint, taint) for taint in taints]


def _update(model: type[AutoPatch | ScheduledUpdate], live: Mapping[str, Any]) -> dict[str, Any]:
    """Return an update; the API has a level more for batches and alarms than the file."""
    config = live.get("DeploymentConfig", {})
    if not config.get("RollingUpdatePolicy"):
        return _section(model, {**live, "DeploymentConfig": None})
    alarms = [alarm["AlarmName"] for alarm in config.get("AutoRollbackConfiguration", ())]
    deployment = {**config, **config["RollingUpdatePolicy"], "AutoRollbackAlarms": alarms or None}
    return _section(model, {**live, "DeploymentConfig": deployment})


def _section(model: type[Model], live: Mapping[str, Any], *only: str) -> dict[str, Any]:
    """Return a section of the file from a member of the API, whose names are the file's keys in upper camel case.

    only: the API's names to include; by default, all that the section has.
    """
    keys = {key[0].upper() + key[1:]: (key, each) for each in model.model_fields.values() if (key := each.alias)}
    return {
        key: _value(field.annotation, live[name])
        for name, (key, field) in keys.items()
        if live.get(name) not in (None, [], {}) and (not only or name in only)
    }


def _value(annotation: Any, live: Any) -> Any:
    if isinstance(live, list | tuple):
        return [_value(annotation, each) for each in live]
    model = next(_models(annotation), None)
    return _section(model, live) if model is not None and isinstance(live, Mapping) else live


def _models(annotation: Any) -> Iterator[type[Model]]:
    """Yield the sections in a type, such as an optional one or a list of them."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _renamed(source: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name[0].lower() + name[1:]: source[name] for name in names if source.get(name) is not None}


def _policy(policy: Mapping[str, Any]) -> dict[str, Any]:
    config = policy.get("SchedulerConfig", {})
    classes = sorted(config.get("PriorityClasses", ()), key=lambda each: -int(each["Weight"]))
    spec: dict[str, Any] = {"taskPrioritization": "Rank" if classes else "FirstComeFirstServed"}
    if classes:
        spec["priorityClasses"] = [{"name": each["Name"], "weight": each["Weight"]} for each in classes]
    spec |= _renamed(config, "FairShare", "IdleResourceSharing")
    return spec | _renamed(policy, "Description")


def _team(quota: Mapping[str, Any]) -> str:
    return str(quota["ComputeQuotaTarget"]["TeamName"])


def _by_team(quotas: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(quotas, key=_team)


def _team_of(quota: Mapping[str, Any], members: Mapping[str, list[str]]) -> dict[str, Any]:
    config = quota.get("ComputeQuotaConfig", {})
    spec: dict[str, Any] = {"name": _team(quota), **_renamed(quota, "Description")}
    spec["fairShareWeight"] = quota["ComputeQuotaTarget"].get("FairShareWeight", 0)
    sharing = _sharing(quota)
    if sharing:
        spec["sharing"] = sharing
    if quota.get("ActivationState") == "Disabled":
        spec["activationState"] = "Disabled"
    spec |= _renamed(config, "PreemptTeamTasks")
    return spec | ({"members": members[_team(quota)]} if _team(quota) in members else {})


def _workloads(quota: Mapping[str, Any], live: LivePlatform) -> dict[str, Any]:
    """Return what members of a team can run, from the Role that hpkit created for them, if it did."""
    role = live.objects.get(f"Role {NAMESPACE_PREFIX}{_team(quota)}/{TEAM_ROLE}")
    allowed = {resource for rule in (role or {}).get("rules", ()) for resource in rule.get("resources", ())}
    found = [each for each, sign in _SIGN_OF.items() if sign in allowed]
    return {"workloads": found} if found and found != ["training"] else {}


def _sharing(quota: Mapping[str, Any]) -> dict[str, Any]:
    stated = quota.get("ComputeQuotaConfig", {}).get("ResourceSharingConfig", {})
    sharing = _renamed(stated, "Strategy")
    # The service returns a limit with every strategy; only with this one does it have a meaning.
    if sharing.get("strategy") == "LendAndBorrow":
        sharing |= _renamed(stated, "BorrowLimit")
        absolute = _rows(stated.get("AbsoluteBorrowLimits", ()))
        if absolute:
            sharing["absoluteBorrowLimits"] = absolute
    return sharing


def _rows(resources: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for row in resources:
        spec: dict[str, Any] = {"instanceType": row["InstanceType"]}
        if row.get("Count"):
            # With a count, vCPU and memory are the service's own values and follow from it.
            rows.append({**spec, "count": row["Count"]})
            continue
        partition = row.get("AcceleratorPartition")
        if partition:
            spec["acceleratorPartition"] = {"type": partition["Type"], "count": partition["Count"]}
        elif row.get("Accelerators"):
            spec["accelerators"] = row["Accelerators"]
        spec |= _renamed(row, "VCpu", "MemoryInGiB")
        if len(spec) == 1:
            spec["count"] = 0
        rows.append(spec)
    return rows
