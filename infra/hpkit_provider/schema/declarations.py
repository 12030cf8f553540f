"""The package's resources, with facts that the service's own model doesn't contain.

Sources: SageMaker API reference, UpdateCluster and the other Update operations (what they lack can't change). Tables
below without a source are from that reference.
"""

from dataclasses import replace
from typing import Any, Final

from hpkit_provider.schema.field import Behavior, Field, ResourceTable

__all__ = ["RESOURCES"]


def _output(name: str, kind: str = "string") -> Field:
    return Field(name, name[0].upper() + name[1:], kind)


_NAMES = Field("", "", "string")


def _own(name: str, kind: str = "string", **facts: Any) -> Field:
    """Return an input that SageMaker doesn't have; lists and maps are of names."""
    if kind == "list":
        facts = {"identity": "*", "item": _NAMES, **facts}
    if kind == "map":
        facts = {"item": _NAMES, "key": _NAMES, **facts}
    return Field(name, "", kind, **facts)


_KIT_OWN = (
    # Names of the groups that managed Karpenter scales. Their counts are ignored after creation.
    _own("autoscaledInstanceGroups", "list"),
    # Whether a change may replace the cluster.
    _own("allowReplace", "boolean", silent=True),
    # Names of groups with instances that a change may delete.
    _own("allowDeleteInstanceGroups", "list", silent=True),
)
# Inputs for policies; SageMaker has no such properties.
_STATED_OF_QUOTA = (
    # Instance types whose quota may rely on nodes that Karpenter adds. For policies; it isn't sent to SageMaker.
    _own("elasticInstanceTypes", "list", silent=True),
    # Instance types whose quota may exist before an instance group. For policies; it isn't sent to SageMaker.
    _own("futureInstanceTypes", "list", silent=True),
)

_VERSION = r"[0-9]+\.[0-9]+"
_GUARDED = (
    # Name of the guarded resource in messages.
    _own("subject", required=True, silent=True),
    # Live ID of each guarded resource, by its name in allowReplace.
    _own("identity", "map"),
    # Live name of each part, such as `teams/nlp`; deleting one requires its name in allowReplace.
    _own("parts", "map", silent=True),
    # Description of each guarded resource and of what is deleted with it, for messages.
    _own("contents", "map", silent=True),
    # Names of resources that depend on each other, in order: each depends on the one before it.
    _own("nested", "list", identity="", silent=True),
    # Names of resources that may be replaced or deleted, with a warning only.
    _own("allowReplace", "list", silent=True),
    # Names of resources that their services don't delete until a run lifts their protection.
    _own("protected", "list", silent=True),
    # Where to set allowReplace, for messages.
    _own("where", silent=True),
    # `network`: the VPC; `group` or `group in zone`: the place of an instance group. They can't change.
    _own("fixed", "map", silent=True),
    # Range of the nodes' subnet in each zone; none may have addresses of another one, which exists until then.
    _own("ranges", "map", silent=True),
    # Kubernetes minor version. It can only increase, by one at a time.
    _own("version", pattern=_VERSION),
)

_AUTOSCALED_GROUP = (
    # ARN of the cluster that has the group.
    _own("clusterArn", required=True),
    # Name of the group, as the Cluster declares it.
    _own("instanceGroupName", required=True),
)

_READINESS = (
    # Maximum wait in minutes.
    _own("minutes", "number", required=True, minimum=1, silent=True),
    # EKS cluster whose Kubernetes API is read.
    _own("eksClusterName"),
    # Address of the Kubernetes API. Without other inputs, only access for the caller is awaited.
    _own("endpoint"),
    # Certificate authority of the Kubernetes API, in base64.
    _own("certificateAuthority"),
    # HyperPod cluster that has the groups.
    _own("clusterArn"),
    # Instance groups whose nodes must be Ready and schedulable.
    _own("instanceGroups", "list"),
    # Deployments that must be available, `namespace/name`.
    _own("deployments", "list"),
    # Instances that each instance group should have. When the time is up, the run continues with a warning.
    _own("instanceCounts", "map", item=Field("", "", "number")),
    # KMS key that must be enabled.
    _own("keyArn"),
    # IDs of Pod Identity associations that must be effective, by `namespace/service-account`.
    _own("podIdentityAssociations", "map"),
)


def _default(value: object, *, watched: bool = False) -> Behavior:
    """Return the behavior of a property that returns to its default only if a request sends that."""
    return Behavior(default=value, reset_to=value, watched=watched)


# Rejected on a group that exists; source: API reference, UpdateCluster, "continuous provisioning".
_FROZEN: Final = Behavior(frozen=True)
# The API reference states no default (ClusterInstanceGroupSpecification), and its examples set 1 for types that have
# two. The value of a group that was created without it is unknown until the service reports it.
_THREADS: Final = Behavior(frozen=True, undisclosed=True)
# The API has no empty value for these.
_STICKY: Final = Behavior(sticky=True)
# Changed by patching and image updates.
_SERVICE_OWNED: Final = Behavior(service_owned=True)

# Source: API reference, CreateCluster and UpdateCluster.
_CLUSTER_BEHAVIORS: Final = {
    "nodeRecovery": _default("Automatic", watched=True),
    "tieredStorageConfig": Behavior(reset_to={"mode": "Disable"}),
    "instanceGroups.minInstanceCount": Behavior(reset_to=0, watched=True),
    "instanceGroups.kubernetesConfig": Behavior(reset_to={}, watched=True),
    "instanceGroups.kubernetesConfig.labels": Behavior(reset_to={}, watched=True),
    "instanceGroups.kubernetesConfig.taints": Behavior(reset_to=[], watched=True),
    "instanceGroups.instanceStorageConfigs": Behavior(reset_to=[]),
    "restrictedInstanceGroups.instanceStorageConfigs": Behavior(reset_to=[]),
    "instanceGroups.imageId": Behavior(reset_to="default", service_owned=True),
    "instanceGroups.imageReleaseVersion": _SERVICE_OWNED,
    "instanceGroups.autoPatchConfig.patchSchedule": _SERVICE_OWNED,
    "instanceGroups.instanceType": _FROZEN,
    "instanceGroups.executionRole": _FROZEN,
    "instanceGroups.threadsPerCore": _THREADS,
    "instanceGroups.overrideVpcConfig": _FROZEN,
    "instanceGroups.capacityRequirements": _FROZEN,
    "instanceGroups.lifeCycleConfig": _STICKY,
    "instanceGroups.onStartDeepHealthChecks": _STICKY,
    "instanceGroups.trainingPlanArn": _STICKY,
    "instanceGroups.scheduledUpdateConfig": _STICKY,
    "instanceGroups.autoPatchConfig": _STICKY,
    "instanceGroups.networkInterface": _STICKY,
    "instanceGroups.instanceRequirements": _STICKY,
    # The API reference lists what cannot change on a group, of either kind.
    "restrictedInstanceGroups.instanceType": _FROZEN,
    "restrictedInstanceGroups.executionRole": _FROZEN,
    "restrictedInstanceGroups.threadsPerCore": _THREADS,
    "restrictedInstanceGroups.overrideVpcConfig": _FROZEN,
    "restrictedInstanceGroups.onStartDeepHealthChecks": _STICKY,
    "restrictedInstanceGroups.trainingPlanArn": _STICKY,
    "restrictedInstanceGroups.scheduledUpdateConfig": _STICKY,
    "restrictedInstanceGroups.environmentConfig": _STICKY,
}
# Source: API reference, CreateComputeQuota; developer guide, task governance.
_QUOTA_BEHAVIORS: Final = {
    "description": Behavior(reset_to="", watched=True),
    "activationState": _default("Enabled", watched=True),
    "computeQuotaTarget.fairShareWeight": _default(0, watched=True),
    "computeQuotaConfig.preemptTeamTasks": _default("LowerPriority", watched=True),
    "computeQuotaConfig.computeQuotaResources": Behavior(reset_to=[]),
    "computeQuotaConfig.resourceSharingConfig": Behavior(reset_to={"strategy": "LendAndBorrow"}),
    "computeQuotaConfig.resourceSharingConfig.strategy": Behavior(default="LendAndBorrow"),
    # Never sent: the API rejects it together with a strategy that doesn't borrow.
    "computeQuotaConfig.resourceSharingConfig.borrowLimit": Behavior(default=50),
}
# Source: API reference, CreateClusterSchedulerConfig; developer guide, task governance.
_SCHEDULER_BEHAVIORS: Final = {
    "description": Behavior(reset_to="", watched=True),
    "schedulerConfig.fairShare": _default("Enabled"),
    "schedulerConfig.idleResourceSharing": _default("Disabled"),
    "schedulerConfig.priorityClasses": Behavior(reset_to=[], watched=True),
}

RESOURCES: Final = {
    resource.name: resource
    for resource in (
        ResourceTable(
            name="Cluster",
            operation="CreateCluster",
            replacing=frozenset({"clusterName", "vpcConfig", "orchestrator", "nodeProvisioningMode"}),
            extra=_KIT_OWN,
            # Slurm clusters are not what this package is for; the API takes exactly one orchestrator.
            omitted=frozenset({"orchestrator.slurm", "instanceGroups.slurmConfig"}),
            required=frozenset({"orchestrator", "orchestrator.eks", "vpcConfig"}),
            identities={
                "instanceGroups": "instanceGroupName",
                "restrictedInstanceGroups": "instanceGroupName",
                "instanceGroups.kubernetesConfig.taints": "*",
                "instanceGroups.onStartDeepHealthChecks": "*",
                "instanceGroups.overrideVpcConfig.subnets": "*",
                "instanceGroups.overrideVpcConfig.securityGroupIds": "*",
                "restrictedInstanceGroups.onStartDeepHealthChecks": "*",
                "restrictedInstanceGroups.overrideVpcConfig.subnets": "*",
                "restrictedInstanceGroups.overrideVpcConfig.securityGroupIds": "*",
                "vpcConfig.subnets": "*",
                "vpcConfig.securityGroupIds": "*",
                "tags": "key",
            },
            behaviors=_CLUSTER_BEHAVIORS,
            outputs=(
                _output("clusterArn"),
                _output("clusterStatus"),
                _output("creationTime"),
                _output("failureMessage"),
                replace(_output("managedInstanceGroups", "list"), item=_NAMES),
                _output("creationFailed", "boolean"),
            ),
        ),
        ResourceTable(
            name="AutoscaledGroup",
            operation="",
            replacing=frozenset({"clusterArn", "instanceGroupName"}),
            extra=_AUTOSCALED_GROUP,
            outputs=(),
        ),
        ResourceTable(
            name="ComputeQuota",
            operation="CreateComputeQuota",
            replacing=frozenset({"name", "clusterArn", "computeQuotaTarget.teamName"}),
            extra=_STATED_OF_QUOTA,
            identities={"tags": "key"},
            behaviors=_QUOTA_BEHAVIORS,
            outputs=(
                _output("computeQuotaArn"),
                _output("computeQuotaId"),
                _output("computeQuotaVersion", "integer"),
                _output("status"),
                _output("failureReason"),
            ),
        ),
        ResourceTable(
            name="ClusterSchedulerConfig",
            operation="CreateClusterSchedulerConfig",
            replacing=frozenset({"name", "clusterArn"}),
            identities={"schedulerConfig.priorityClasses": "name", "tags": "key"},
            behaviors=_SCHEDULER_BEHAVIORS,
            outputs=(
                _output("clusterSchedulerConfigArn"),
                _output("clusterSchedulerConfigId"),
                _output("clusterSchedulerConfigVersion", "integer"),
                _output("status"),
                _output("failureReason"),
            ),
        ),
        ResourceTable(name="Readiness", operation="", replacing=frozenset(), extra=_READINESS, outputs=()),
        ResourceTable(name="ChangeGuard", operation="", replacing=frozenset(), extra=_GUARDED, outputs=()),
    )
}
