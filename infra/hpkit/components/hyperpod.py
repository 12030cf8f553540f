"""The HyperPod cluster with its instance groups, and the chart of what HyperPod expects on EKS before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pulumi
import pulumi_kubernetes as k8s

from hpkit.components.base import Component
from hpkit.components.eks import Eks
from hpkit.components.identity import Identity
from hpkit.components.network import Network
from hpkit.components.storage import ON_CREATE, Storage
from hpkit.config.cluster import AutoPatch, DeploymentConfig, InstanceGroup, ScheduledUpdate
from hpkit.plan.model import GroupPlan, Plan
from hpkit.sdk import AutoscaledGroup, Cluster
from hpkit.sdk.types import ClusterInstanceGroupSpecification, Tag

__all__ = ["Dependencies", "HyperPod", "tags_of"]

Document = dict[str, Any]


class Dependencies(Component):
    """The dependencies chart: health monitoring agent, device plugins, EFA, training operators, their RBAC.

    Source: SageMaker HyperPod developer guide, "Install packages on the EKS cluster using Helm". The chart has to be
    there before a cluster is made through the API.
    """

    release: k8s.helm.v3.Release | None = None

    def __init__(
        self, name: str, plan: Plan, *, eks: Eks, after: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__(name, opts=opts)
        wanted = plan.spec.cluster.dependencies
        if wanted is not None:
            self.release = k8s.helm.v3.Release(
                "hyperpod-dependencies",
                name="hyperpod-dependencies",
                namespace="kube-system",
                chart=wanted.chart if wanted.chart.startswith("oci://") else f"../{wanted.chart}",
                version=wanted.version,
                values={"health-monitoring-agent": {"region": plan.spec.region}, **wanted.values},
                opts=self.child(after=after, provider=eks.kubernetes),
            )
        self.register_outputs({"installed": self.release is not None})


class HyperPod(Component):
    """The cluster; in_service waits until it is, with managed Karpenter on where the plan wants it.

    autoscaled: what stands for each group that Karpenter fills, by name; a NodeClass that names the group waits for it,
    and so lets go of the group before that is deleted.
    """

    cluster: Cluster
    autoscaled: Mapping[str, AutoscaledGroup]

    def __init__(
        self,
        name: str,
        plan: Plan,
        *,
        network: Network,
        storage: Storage,
        identity: Identity,
        eks: Eks,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__(name, opts=opts)
        self._plan, self._network, self._storage, self._identity = plan, network, storage, identity
        spec = plan.spec.cluster
        autoscaled = [group.spec.name for group in plan.groups if group.autoscaled]
        on: Document = {"mode": "Enable", "autoScalerType": "Karpenter"}
        self.cluster = Cluster(
            "cluster",
            cluster_name=spec.name,
            orchestrator={"eks": {"clusterArn": eks.arn}},
            # The default of groups without subnets of their own: every group has them, so that zones can come later.
            vpc_config={
                "subnets": list(network.control_plane_subnet_ids),
                "securityGroupIds": list(network.security_group_ids),
            },
            instance_groups=[self._group(group) for group in plan.groups],
            node_provisioning_mode="Continuous",
            node_recovery=cast("Any", spec.node_recovery),
            cluster_role=identity.karpenter_role_arn,
            auto_scaling=cast("Any", on) if plan.spec.autoscaling is not None else None,
            autoscaled_instance_groups=autoscaled or None,
            allow_delete_instance_groups=list(plan.spec.allow_delete.instance_groups) or None,
            tiered_storage_config=cast("Any", _given(spec.tiered_storage)) if spec.tiered_storage else None,
            tags=tags_of(plan),
            opts=self.child(
                after=[*storage.ready, *identity.for_nodes, *network.egress, *after],
                # The plugin refuses to replace it anyway; protected, one that never came to be could not be either.
                protect=plan.spec.protect or None,
            ),
        )
        alive = pulumi.ResourceOptions(deleted_with=self.cluster)
        # A cluster goes on naming its role when autoscaling goes: the role must outlive the groups that leave with it.
        before = [self.cluster, *identity.for_nodes]
        self.autoscaled = {
            group: AutoscaledGroup(
                f"autoscaled-{group}",
                cluster_arn=self.cluster.cluster_arn,
                instance_group_name=group,
                opts=pulumi.ResourceOptions.merge(self.child(after=before), alive),
            )
            for group in autoscaled
        }
        self.register_outputs({"clusterArn": self.cluster.cluster_arn})

    def _group(self, group: GroupPlan) -> ClusterInstanceGroupSpecification:
        spec = group.spec
        storage: list[Document] = []
        if spec.ebs_volume_gib is not None:
            storage.append({"ebsVolumeConfig": {"volumeSizeInGB": spec.ebs_volume_gib}})
        kubernetes: Document = {
            "labels": dict(sorted(spec.labels.items())),
            "taints": [_given(taint) for taint in spec.taints],
        }
        flexible = {"instanceRequirements": {"instanceTypes": list(spec.instance_types)}}
        given: Document = {
            "instanceGroupName": spec.name,
            "instanceCount": spec.instance_count,
            "minInstanceCount": spec.min_instance_count,
            **({"instanceType": spec.instance_type} if spec.instance_type else flexible),
            "executionRole": spec.execution_role or self._identity.node_role_arn,
            "lifeCycleConfig": self._lifecycle(spec),
            "overrideVpcConfig": self._place(group),
            "capacityRequirements": {"spot": {}} if spec.capacity_type == "Spot" else None,
            "instanceStorageConfigs": storage,
            "threadsPerCore": spec.threads_per_core,
            "onStartDeepHealthChecks": list(spec.deep_health_checks),
            "trainingPlanArn": spec.training_plan_arn,
            "imageId": spec.image_id,
            "kubernetesConfig": {key: value for key, value in kubernetes.items() if value},
            "autoPatchConfig": _auto_patch(spec.auto_patch),
            "scheduledUpdateConfig": _scheduled_update(spec.scheduled_update),
        }
        named = {key: value for key, value in given.items() if value not in (None, [], {})}
        return cast("ClusterInstanceGroupSpecification", {**named, "instanceCount": spec.instance_count})

    def _place(self, group: GroupPlan) -> Document:
        if group.spec.override_vpc_config is not None:
            override = group.spec.override_vpc_config
            return {"subnets": list(override.subnets), "securityGroupIds": list(override.security_group_ids)}
        return {
            "subnets": [self._network.node_subnet_ids[zone] for zone in group.zones],
            "securityGroupIds": list(self._network.security_group_ids),
        }

    def _lifecycle(self, spec: InstanceGroup) -> Document | None:
        if not spec.has_lifecycle:
            return None
        if spec.lifecycle_script is None:
            return {"sourceS3Uri": self._storage.lifecycle_uri, "onCreate": ON_CREATE}
        folder, _, script = spec.lifecycle_script.rpartition("/")
        return {"sourceS3Uri": folder, "onCreate": script}


def tags_of(plan: Plan) -> list[Tag] | None:
    """Return the plan's tags as the SageMaker API takes them; None where the kit manages none."""
    if not plan.spec.manage_tags:
        return None
    return [{"key": key, "value": value} for key, value in sorted(plan.tags.items())]


def _given(model: Any) -> Document:
    """Return what a person wrote in a section, in the API's names."""
    return cast("Document", model.model_dump(by_alias=True, exclude_none=True))


def _deployment(config: DeploymentConfig) -> Document:
    policy = {
        "maximumBatchSize": _given(config.maximum_batch_size),
        "rollbackMaximumBatchSize": (
            _given(config.rollback_maximum_batch_size) if config.rollback_maximum_batch_size else None
        ),
    }
    given = {
        "rollingUpdatePolicy": {key: value for key, value in policy.items() if value},
        "waitIntervalInSeconds": config.wait_interval_in_seconds,
        "autoRollbackConfiguration": [{"alarmName": alarm} for alarm in config.auto_rollback_alarms] or None,
    }
    return {key: value for key, value in given.items() if value is not None}


def _auto_patch(spec: AutoPatch | None) -> Mapping[str, Any] | None:
    return None if spec is None else _with_deployment(spec)


def _scheduled_update(spec: ScheduledUpdate | None) -> Mapping[str, Any] | None:
    return None if spec is None else _with_deployment(spec)


def _with_deployment(spec: AutoPatch | ScheduledUpdate) -> Document:
    given = _given(spec)
    if spec.deployment_config is not None:
        given["deploymentConfig"] = _deployment(spec.deployment_config)
    return given
