"""The HyperPod cluster with its instance groups, and the dependencies chart that it requires on EKS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi
import pulumi_kubernetes as k8s

from hpkit.config.models.base import Model
from hpkit.config.models.cluster import AutoPatch, InstanceGroup, InstanceGroupBase, ScheduledUpdate
from hpkit.plan.endpoint import awaited_groups
from hpkit.plan.model import GroupPlan, Plan, RestrictedGroupPlan
from hpkit.plan.principals import DEPENDENCIES_NAMESPACE
from hpkit.plan.protected import DEPENDENCIES, deletion_protected
from hpkit.program.components.access.roles import Identity
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.cluster.network import Network
from hpkit.program.components.common.base import Component, DeployContext
from hpkit.program.components.storage.aws_storage import ON_CREATE, Storage
from hpkit.program.sdk import AutoscaledGroup, Cluster, Object, Readiness

__all__ = ["Dependencies", "HyperPod", "tags_of"]

# The file's keys are the API's names, so a section is mostly the model's own dump.
# Settings of a group that the API has under the same names.
_SHARED: Final = {"training_plan_arn", "instance_storage_configs", "threads_per_core"}
_ORDINARY: Final = {"instance_type", "min_instance_count", "image_id", "image_release_version", "network_interface"}


def _capacity(spec: InstanceGroup) -> dict[str, Any]:
    """Return an ordinary group's instances, and their image."""
    config: dict[str, Any] = {}
    if spec.instance_types:
        config["instanceRequirements"] = {"instanceTypes": list(spec.instance_types)}
    if spec.is_spot:
        config["capacityRequirements"] = {"spot": {}}
    return config | _stated(spec, _ORDINARY | _SHARED)


def _upkeep(spec: InstanceGroup) -> dict[str, Any]:
    """Return how nodes of an ordinary group are checked, labelled, patched and updated."""
    config = _checks(spec)
    kubernetes = _stated(spec, {"labels", "taints"})
    if kubernetes:
        config["kubernetesConfig"] = kubernetes
    if spec.auto_patch is not None:
        config["autoPatchConfig"] = _update(spec.auto_patch)
    return config


def _checks(spec: InstanceGroupBase) -> dict[str, Any]:
    """Return how nodes of any group are checked, and when their AMI is updated."""
    config: dict[str, Any] = {}
    if spec.deep_health_checks:
        config["onStartDeepHealthChecks"] = list(spec.deep_health_checks)
    if spec.scheduled_update is not None:
        config["scheduledUpdateConfig"] = _update(spec.scheduled_update)
    return config


def _stated(spec: Model, names: set[str] | None = None) -> dict[str, Any]:
    """Return a section without omitted settings; names: the fields to include, by default all."""
    return spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=names)


def _update(spec: AutoPatch | ScheduledUpdate) -> dict[str, Any]:
    """Return an update; the API has a level more for batches and alarms than the file."""
    config = _stated(spec)
    if "deploymentConfig" in config:
        stated = config["deploymentConfig"]
        sizes = ("maximumBatchSize", "rollbackMaximumBatchSize")
        deployment: dict[str, Any] = {
            "rollingUpdatePolicy": {size: stated.pop(size) for size in sizes if size in stated}
        }
        if alarms := stated.pop("autoRollbackAlarms", None):
            deployment["autoRollbackConfiguration"] = [{"alarmName": alarm} for alarm in alarms]
        config["deploymentConfig"] = deployment | stated
    return config


class Dependencies(Component):
    """The dependencies chart: health monitoring agent, device plugins, EFA, training operators, their RBAC.

    Source: SageMaker HyperPod developer guide, "Installing packages on the Amazon EKS cluster using Helm". The chart
    must exist before a cluster is created through the API, so it's uninstalled after the cluster.
    """

    release: k8s.helm.v3.Release | None = None

    def __init__(
        self,
        name: str,
        plan: Plan,
        context: DeployContext,
        *,
        eks: Eks,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__(name, opts=opts)
        chart = plan.dependencies
        if chart is not None:
            self.release = k8s.helm.v3.Release(
                DEPENDENCIES,
                name=DEPENDENCIES,
                namespace=DEPENDENCIES_NAMESPACE,
                chart=chart.chart if chart.chart.startswith("oci://") else context.in_project(chart.chart),
                version=chart.version,
                values=chart.values,
                # HyperPod requires the chart before it creates nodes, and without nodes none of its pods can become
                # ready.
                skip_await=True,
                opts=self.child(after=after, provider=eks.kubernetes),
            )
        self.register_outputs({"installed": self.release is not None})


class HyperPod(Component):
    """The cluster, with managed Karpenter if the plan has it.

    nodes: what waits until the nodes that run the add-ons are Ready; empty if only Karpenter adds nodes. autoscaled:
    the resource of each group that Karpenter fills, by name. A NodeClass with the group waits for it, so it's deleted
    before the group.
    """

    cluster: Cluster
    nodes: Sequence[pulumi.Resource]
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
        self.cluster = Cluster(
            "cluster",
            cluster_name=spec.name,
            orchestrator={"eks": {"clusterArn": eks.arn}},
            # The default for groups without subnets: every group has its own, so that zones can be added later.
            vpc_config={
                "subnets": list(network.control_plane_subnet_ids),
                "securityGroupIds": list(network.security_group_ids),
            },
            instance_groups=[self._group(group) for group in plan.groups],
            restricted_instance_groups=[self._restricted_group(group) for group in plan.restricted_groups] or None,
            restricted_instance_groups_config=_stated(spec.restricted_instance_groups_config)
            if spec.restricted_instance_groups_config
            else None,
            node_provisioning_mode="Continuous",
            node_recovery=spec.node_recovery,
            cluster_role=identity.karpenter_role_arn,
            auto_scaling={"mode": "Enable", "autoScalerType": "Karpenter"} if plan.spec.karpenter is not None else None,
            autoscaled_instance_groups=autoscaled or None,
            allow_delete_instance_groups=list(plan.spec.allow_delete.instance_groups) or None,
            tiered_storage_config=_stated(spec.tiered_storage) if spec.tiered_storage else None,
            tags=tags_of(plan),
            opts=self.child(
                after=[*storage.ready, *identity.for_nodes, *network.connectivity, *after],
                # The plugin won't replace it anyway; if it were protected, one whose creation failed couldn't be
                # replaced.
                protect=deletion_protected(plan, "cluster") or None,
            ),
        )
        self.nodes = self._nodes(eks)
        self._await_capacity()
        alive = pulumi.ResourceOptions(deleted_with=self.cluster)
        # A cluster keeps its role when autoscaling is turned off, so the role must outlive the groups that are deleted
        # then.
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

    def _nodes(self, eks: Eks) -> list[pulumi.Resource]:
        groups = sorted(group.name for group in awaited_groups(self._plan))
        if not groups:
            return []
        return [
            eks.wait(
                "nodes",
                minutes=self._plan.spec.cluster.nodes_ready_minutes,
                cluster_arn=self.cluster.cluster_arn,
                instance_groups=groups,
                opts=self.child(after=[self.cluster]),
            )
        ]

    def _await_capacity(self) -> None:
        """Wait for the instances of all groups, which nothing else does: the first nodes are enough for the rest."""
        minutes = self._plan.spec.cluster.capacity_wait_minutes
        names = {group.spec.name: group.spec.instance_count for group in self._plan.all_groups}
        counts = {name: count for name, count in sorted(names.items()) if count}
        if minutes and counts:
            Readiness(
                "capacity",
                minutes=minutes,
                cluster_arn=self.cluster.cluster_arn,
                instance_counts=counts,
                opts=self.child(after=[self.cluster]),
            )

    def _group(self, group: GroupPlan) -> Object:
        spec = group.spec
        return {
            "instanceGroupName": spec.name,
            "instanceCount": spec.instance_count,
            "executionRole": spec.execution_role or self._identity.node_role_arn or "",
            "overrideVpcConfig": self._place(group),
            "lifeCycleConfig": self._lifecycle(spec),
            **_capacity(spec),
            **_upkeep(spec),
        }

    def _restricted_group(self, group: RestrictedGroupPlan) -> Object:
        spec = group.spec
        config = {
            "instanceGroupName": spec.name,
            "instanceType": spec.instance_type,
            "instanceCount": spec.instance_count,
            "executionRole": spec.execution_role,
            "overrideVpcConfig": self._place(group),
            **_stated(spec, _SHARED),
            **_checks(spec),
        }
        if spec.environment_config is not None:
            config["environmentConfig"] = _stated(spec.environment_config)
        return config

    def _place(self, group: GroupPlan | RestrictedGroupPlan) -> Object:
        if group.spec.override_vpc_config is not None:
            override = group.spec.override_vpc_config
            return {"subnets": list(override.subnets), "securityGroupIds": list(override.security_group_ids)}
        return {
            "subnets": [self._network.node_subnet_ids[zone] for zone in group.zones],
            "securityGroupIds": list(self._network.security_group_ids),
        }

    def _lifecycle(self, spec: InstanceGroup) -> Object:
        if spec.lifecycle_script is None:
            return {"sourceS3Uri": self._storage.lifecycle_uri or "", "onCreate": ON_CREATE}
        folder: pulumi.Input[str]
        folder, _, script = spec.lifecycle_script.rpartition("/")
        if spec.verified_script is not None:
            folder, script = self._storage.loader_uris[spec.verified_script], ON_CREATE
        return {"sourceS3Uri": folder, "onCreate": script}


def tags_of(plan: Plan) -> list[Object] | None:
    """Return the plan's tags as the SageMaker API takes them; None where hpkit manages none."""
    if not plan.spec.manage_tags:
        return None
    return [{"key": key, "value": value} for key, value in sorted(plan.tags.items())]
