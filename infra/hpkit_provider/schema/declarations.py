"""The package's resources, with facts that the service's own model doesn't contain.

Sources: SageMaker API reference, UpdateCluster and the other Update operations (what they lack can't change). Tables
below without a source are from that reference.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from hpkit_provider.schema.field import Behavior, Field, ResourceTable

__all__ = ["RESOURCES"]


def _output(name: str, text: str, kind: str = "string") -> Field:
    return Field(name, name[0].upper() + name[1:], kind, text=text)


_NAMES = Field("", "", "string")


def _own(name: str, text: str, kind: str = "string", **facts: Any) -> Field:
    """Return an input that SageMaker doesn't have; lists and maps are of names."""
    if kind == "list":
        facts = {"identity": "*", "item": _NAMES, **facts}
    if kind == "map":
        facts = {"item": _NAMES, "key": _NAMES, **facts}
    return Field(name, "", kind, text=text, **facts)


_KIT_OWN = (
    _own(
        "autoscaledInstanceGroups",
        "Names of the groups that managed Karpenter scales. Their counts are ignored after creation.",
        "list",
    ),
    _own("allowReplace", "Whether a change may replace the cluster.", "boolean", silent=True),
    _own("allowDeleteInstanceGroups", "Names of groups with instances that a change may delete.", "list", silent=True),
)
# Inputs for policies; SageMaker has no such properties.
_STATED_OF_QUOTA = (
    _own(
        "elasticInstanceTypes",
        "Instance types whose quota may rely on nodes that Karpenter adds. For policies; it isn't sent to SageMaker.",
        "list",
        silent=True,
    ),
    _own(
        "futureInstanceTypes",
        "Instance types whose quota may exist before an instance group. For policies; it isn't sent to SageMaker.",
        "list",
        silent=True,
    ),
)

_VERSION = r"[0-9]+\.[0-9]+"
_GUARDED = (
    _own("subject", "Name of the guarded resource in messages.", required=True, silent=True),
    _own("identity", "Live ID of each guarded resource, by its name in allowReplace.", "map"),
    _own(
        "parts",
        "Live name of each part, such as `teams/nlp`; deleting one requires its name in allowReplace.",
        "map",
        silent=True,
    ),
    _own(
        "contents",
        "Description of each guarded resource and of what is deleted with it, for messages.",
        "map",
        silent=True,
    ),
    _own(
        "nested",
        "Names of resources that depend on each other, in order: each depends on the one before it.",
        "list",
        identity="",
        silent=True,
    ),
    _own(
        "allowReplace", "Names of resources that may be replaced or deleted, with a warning only.", "list", silent=True
    ),
    _own(
        "protected",
        "Names of resources that their services don't delete until a run lifts their protection.",
        "list",
        silent=True,
    ),
    _own("where", "Where to set allowReplace, for messages.", silent=True),
    _own(
        "fixed",
        "`network`: the VPC; `group` or `group in zone`: the place of an instance group. They can't change.",
        "map",
        silent=True,
    ),
    _own("version", "Kubernetes minor version. It can only increase, by one at a time.", pattern=_VERSION),
)

_AUTOSCALED_GROUP = (
    _own("clusterArn", "ARN of the cluster that has the group.", required=True),
    _own("instanceGroupName", "Name of the group, as the Cluster declares it.", required=True),
)

_READINESS = (
    _own("minutes", "Maximum wait in minutes.", "number", required=True, minimum=1, silent=True),
    _own("eksClusterName", "EKS cluster whose Kubernetes API is read."),
    _own("endpoint", "Address of the Kubernetes API. Without other inputs, only access for the caller is awaited."),
    _own("certificateAuthority", "Certificate authority of the Kubernetes API, in base64."),
    _own("clusterArn", "HyperPod cluster that has the groups."),
    _own("instanceGroups", "Instance groups whose nodes must be Ready and schedulable.", "list"),
    _own("deployments", "Deployments that must be available, `namespace/name`.", "list"),
    _own(
        "instanceCounts",
        "Instances that each instance group should have. When the time is up, the run continues with a warning.",
        "map",
        item=Field("", "", "number"),
    ),
    _own("keyArn", "KMS key that must be enabled."),
    _own(
        "podIdentityAssociations",
        "IDs of Pod Identity associations that must be effective, by `namespace/service-account`.",
        "map",
    ),
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
            text="A HyperPod cluster orchestrated by Amazon EKS, with its instance groups.",
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
                _output("clusterArn", "ARN of the cluster."),
                _output("clusterStatus", "Last status that the service reported."),
                _output("creationTime", "Creation time of the cluster."),
                _output("failureMessage", "Why the last change failed."),
                replace(
                    _output(
                        "managedInstanceGroups",
                        "Groups that this resource created or adopted. It deletes no others.",
                        "list",
                    ),
                    item=_NAMES,
                ),
                _output("creationFailed", "Whether creation failed. The next update then replaces it.", "boolean"),
            ),
        ),
        ResourceTable(
            name="AutoscaledGroup",
            operation="",
            text="An instance group that managed Karpenter scales. Its NodeClass releases it before it's deleted.",
            replacing=frozenset({"clusterArn", "instanceGroupName"}),
            extra=_AUTOSCALED_GROUP,
            outputs=(),
        ),
        ResourceTable(
            name="ComputeQuota",
            operation="CreateComputeQuota",
            text="A team's quota on a cluster, and its sharing settings.",
            replacing=frozenset({"name", "clusterArn", "computeQuotaTarget.teamName"}),
            extra=_STATED_OF_QUOTA,
            identities={"tags": "key"},
            behaviors=_QUOTA_BEHAVIORS,
            outputs=(
                _output("computeQuotaArn", "ARN of the quota."),
                _output("computeQuotaId", "ID of the quota."),
                _output("computeQuotaVersion", "Version, which increases with each update.", "integer"),
                _output("status", "Last status that the service reported."),
                _output("failureReason", "Why the last change failed."),
            ),
        ),
        ResourceTable(
            name="ClusterSchedulerConfig",
            operation="CreateClusterSchedulerConfig",
            text="The only scheduling policy of a cluster: task priorities, fair share, sharing of idle compute.",
            replacing=frozenset({"name", "clusterArn"}),
            identities={"schedulerConfig.priorityClasses": "name", "tags": "key"},
            behaviors=_SCHEDULER_BEHAVIORS,
            outputs=(
                _output("clusterSchedulerConfigArn", "ARN of the policy."),
                _output("clusterSchedulerConfigId", "ID of the policy."),
                _output("clusterSchedulerConfigVersion", "Version, which increases with each update.", "integer"),
                _output("status", "Last status that the service reported."),
                _output("failureReason", "Why the last change failed."),
            ),
        ),
        ResourceTable(
            name="Readiness",
            operation="",
            text="Waits until the listed resources can be used. It creates nothing.",
            replacing=frozenset(),
            extra=_READINESS,
            outputs=(),
        ),
        ResourceTable(
            name="ChangeGuard",
            operation="",
            text="Rejects a change that would replace or delete guarded resources, in the preview. It creates nothing.",
            replacing=frozenset(),
            extra=_GUARDED,
            outputs=(),
        ),
    )
}
