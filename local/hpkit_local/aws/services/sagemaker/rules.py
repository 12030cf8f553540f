"""Checks of a cluster request beyond its API model.

Sources: UpdateCluster API reference; SageMaker developer guide, pages "Creating a SageMaker HyperPod cluster with EKS
orchestration", "Continuous provisioning", "Custom labels and taints", and "Autoscaling on SageMaker HyperPod EKS".
"""

from collections import Counter
from collections.abc import Container, Iterable
from typing import Any

from hpkit.catalog.group_constraints import group_problems, patch_problems, type_problems
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.ec2.rules import Subnet, require_security_group, require_subnet
from hpkit_local.aws.services.iam import require_role
from hpkit_local.aws.services.s3 import require_bucket

__all__ = [
    "check_autoscaling",
    "check_groups",
    "check_instance_quotas",
    "check_references",
    "check_replacement",
    "conflict",
    "reject",
]

RESERVED_PREFIXES = (
    "kubernetes.io/",
    "k8s.io/",
    "sagemaker.amazonaws.com/",
    "eks.amazonaws.com/",
    "k8s.aws/",
    "karpenter.sh/",
)
IMMUTABLE = (
    "InstanceType",
    "ExecutionRole",
    "ThreadsPerCore",
    "OverrideVpcConfig",
    "CapacityRequirements",
)
NODE_TRUST = "sagemaker.amazonaws.com"
AUTOSCALER_TRUST = "hyperpod.sagemaker.amazonaws.com"


def reject(message: str) -> ServiceError:
    """Return a broken rule, as the service answers it."""
    return ServiceError("ValidationException", message)


def conflict(message: str) -> ServiceError:
    """Return a conflict with what exists, as the service answers it."""
    return ServiceError("ConflictException", message)


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateCluster.html
def check_groups(groups: Iterable[Record], *, continuous: bool, restricted: Container[str]) -> None:
    """Rules that concern the groups of one request only; restricted: the names of restricted groups."""
    listed = list(groups)
    for name, times in Counter(group["InstanceGroupName"] for group in listed).items():
        if times > 1:
            raise reject(f"Instance group names must be unique: '{name}' is given {times} times")
    for group in listed:
        _check_type(group, continuous=continuous)
        _check_count(group, continuous=continuous)
        _check_settings(group)
        if group["InstanceGroupName"] not in restricted:
            _check_lifecycle(group)
        _check_kubernetes(group)


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html
def check_instance_quotas(ctx: Context, before: Iterable[Record], after: Iterable[Record]) -> None:
    """Reject instances beyond the account's quota: the fault `instance-quota`. Running ones stay."""
    groups = [group["spec"] for cluster in ctx.table("clusters").values() for group in cluster["groups"].values()]
    used = _instances(groups)
    added = _instances(after)
    added.subtract(_instances(before))
    for instance_type, delta in sorted(added.items()):
        limit = ctx.faults.value("instance-quota", instance_type)
        if limit is not None and delta > 0 and used[instance_type] + delta > limit:
            raise ServiceError(
                "ResourceLimitExceeded",
                f"The account-level service limit '{instance_type} for cluster usage' is {int(limit)} Instances, with "
                f"current utilization of {used[instance_type]} Instances and a request delta of {delta} Instances. "
                "Please use AWS Service Quotas to request an increase for this quota.",
            )


def _instances(groups: Iterable[Record]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for group in groups:
        if "InstanceType" in group and "Spot" not in group.get("CapacityRequirements", {}):
            counts[group["InstanceType"]] += group["InstanceCount"]
    return counts


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html
def _check_type(group: Record, *, continuous: bool) -> None:
    name = group["InstanceGroupName"]
    if "InstanceRequirements" in group:
        types = group["InstanceRequirements"]["InstanceTypes"]
        if len(set(types)) != len(types):
            raise reject(f"Instance group '{name}': InstanceRequirements.InstanceTypes has duplicates: {types}")
        if not continuous:
            raise reject(f"Instance group '{name}': InstanceRequirements needs NodeProvisioningMode Continuous")
    spot = group.get("CapacityRequirements", {})
    if len(spot) > 1:
        raise reject(f"Instance group '{name}': CapacityRequirements is either Spot or OnDemand")
    if "Spot" in spot and not continuous:
        raise reject(f"Instance group '{name}': Spot capacity needs NodeProvisioningMode Continuous")
    if "SlurmConfig" in group:
        raise reject(f"Instance group '{name}': SlurmConfig is not for clusters orchestrated by EKS")


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html
def _check_count(group: Record, *, continuous: bool) -> None:
    if "MinInstanceCount" in group and not continuous:
        name = group["InstanceGroupName"]
        raise reject(f"Instance group '{name}': MinInstanceCount needs NodeProvisioningMode Continuous")


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterEbsVolumeConfig.html
def _check_settings(group: Record) -> None:
    stated = _lower_camel(group)
    patch = patch_problems(stated.get("autoPatchConfig", {}))
    for problem in (*type_problems(stated), *group_problems(stated), *patch):
        raise reject(f"Instance group '{group['InstanceGroupName']}' {problem.message}")


def _lower_camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: _lower_camel(inner) for name, inner in value.items()}
    return [_lower_camel(inner) for inner in value] if isinstance(value, list) else value


# Source: SageMaker developer guide, "Getting started with SageMaker HyperPod using the AWS CLI" (Slurm), "Common
# validation errors", which quotes the first words of each message, and names EKS clusters for the first.
def _check_lifecycle(group: Record) -> None:
    name, config = group["InstanceGroupName"], group.get("LifeCycleConfig")
    if config is None:
        raise reject(f"LifeCycleConfig is required for instance group {name}")
    if "OnCreate" in config and "OnInitComplete" in config:
        raise reject(f"OnCreate and OnInitComplete in LifeCycleConfig are mutually exclusive for instance group {name}")
    # The same page: groups on EKS continue to require OnCreate and SourceS3Uri.
    if "SourceS3Uri" not in config or "OnCreate" not in config:
        raise reject(f"LifeCycleConfig for instance group {name} is incomplete: it needs SourceS3Uri and a script")


# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-custom-labels-and-taints.html
def _check_kubernetes(group: Record) -> None:
    name, config = group["InstanceGroupName"], group.get("KubernetesConfig", {})
    keys = [*config.get("Labels", {}), *(taint["Key"] for taint in config.get("Taints", []))]
    for key in keys:
        prefix = key.rpartition("/")[0] + "/" if "/" in key else ""
        if any(prefix == reserved or prefix.endswith("." + reserved) for reserved in RESERVED_PREFIXES):
            raise reject(f"Instance group '{name}': the key '{key}' uses a reserved prefix")


def check_references(ctx: Context, groups: Iterable[Record], vpc_id: str) -> None:
    """Roles, subnets, security groups and buckets that groups name, and dates: AWS documents no past ones."""
    for group in groups:
        require_role(ctx, group["ExecutionRole"], trusts=NODE_TRUST, purpose="the execution role")
        if "SourceS3Uri" in group.get("LifeCycleConfig", {}):
            require_bucket(ctx, group["LifeCycleConfig"]["SourceS3Uri"])
        if "OverrideVpcConfig" in group:
            check_vpc(ctx, group["OverrideVpcConfig"], vpc_id)
        date = group.get("AutoPatchConfig", {}).get("PatchSchedule", {}).get("NextPatchDate")
        if date is not None and date <= ctx.now:
            raise reject(f"Instance group '{group['InstanceGroupName']}': NextPatchDate is in the past")


# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html
def check_vpc(ctx: Context, config: Record, vpc_id: str) -> list[Subnet]:
    """Subnets and security groups must be in the VPC of the EKS cluster."""
    subnets = [require_subnet(ctx, subnet) for subnet in config["Subnets"]]
    for subnet in subnets:
        if subnet.vpc_id != vpc_id:
            raise reject(f"The subnet '{subnet.id}' is in VPC {subnet.vpc_id}; the EKS cluster is in VPC {vpc_id}")
    for group in config["SecurityGroupIds"]:
        require_security_group(ctx, group, vpc_id=vpc_id)
    return subnets


# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-autoscaling.html
def check_autoscaling(ctx: Context, settings: Record, mode: str | None) -> None:
    """Check the requirements of managed Karpenter: continuous mode, automatic recovery, a role."""
    if "ClusterRole" in settings:
        require_role(ctx, settings["ClusterRole"], trusts=AUTOSCALER_TRUST, purpose="the cluster role")
    if mode != "Enable":
        return
    if settings.get("NodeProvisioningMode") != "Continuous":
        raise reject("AutoScaling needs NodeProvisioningMode Continuous")
    if "ClusterRole" not in settings:
        raise reject("AutoScaling needs a ClusterRole that the autoscaler can assume")
    if settings.get("NodeRecovery") != "Automatic":
        raise reject("AutoScaling needs NodeRecovery Automatic")


# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-cmk.html
def _check_volume_keys(old: Record, new: Record) -> None:
    """Reject another key of a volume (developer guide, "Customer managed AWS KMS key encryption")."""
    if "InstanceStorageConfigs" not in new:
        return
    was, now = (
        {
            bool(volume.get("RootVolume")): volume.get("VolumeKmsKeyId", "").rpartition("/")[2]
            for volume in (config.get("EbsVolumeConfig") for config in side.get("InstanceStorageConfigs", []))
            if volume is not None
        }
        for side in (old, new)
    )
    # A root volume that isn't listed has a key of AWS.
    was, now = ({True: "", **keys} for keys in (was, now))
    if any(was[root] != now[root] for root in was.keys() & now.keys()):
        raise reject(
            f"Instance group '{old['InstanceGroupName']}': the KMS key of a volume cannot be changed; create a new "
            "instance group"
        )


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_UpdateCluster.html
def check_replacement(old: Record, new: Record, live_types: set[str]) -> None:
    """Reject what cannot change on a group that exists (UpdateCluster API reference)."""
    name = old["InstanceGroupName"]
    for style, other in (("InstanceType", "InstanceRequirements"), ("InstanceRequirements", "InstanceType")):
        if style in new and style not in old:
            raise reject(f"Instance group '{name}' cannot switch from {other} to {style}; create a new group")
    for member in IMMUTABLE:
        if member in new and old.get(member) is not None and new[member] != old[member]:
            raise reject(
                f"Instance group '{name}': {member} cannot be changed from {old[member]} to {new[member]}; "
                "create a new instance group"
            )
        if member in ("OverrideVpcConfig", "CapacityRequirements") and member in new and member not in old:
            raise reject(f"Instance group '{name}': {member} cannot be added after creation; create a new group")
    _check_volume_keys(old, new)
    if "InstanceRequirements" in new:
        lost = live_types - set(new["InstanceRequirements"]["InstanceTypes"])
        if lost:
            raise reject(f"Instance group '{name}': types {sorted(lost)} have running nodes and cannot be removed")
