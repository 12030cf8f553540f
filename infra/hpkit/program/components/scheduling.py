"""Topology-aware scheduling of the task-governance add-on, switched as the plan says and kept so.

Nodes that do not exist yet have no topology: with managed Karpenter the feature must be off, or every workload waits.
It is a feature gate in the add-on's own ConfigMap, which an update of the add-on or of the policy may overwrite. So the
gate is read and set again after every such change (SageMaker HyperPod developer guide, topology-aware scheduling).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from hpkit.plan.model import Plan
from hpkit.program.components.base import Component
from hpkit.program.components.eks import Eks
from hpkit.program.components.kueue import gates_of, with_feature_gates
from hpkit.program.sdk import ClusterSchedulerConfig

__all__ = ["Scheduling"]

_NAMESPACE = "kueue-system"
_CONFIG = "kueue-manager-config"
_DEPLOYMENT = "kueue-controller-manager"
_FILE = "controller_manager_config.yaml"
_FORCE = {"pulumi.com/patchForce": "true"}


class Scheduling(Component):
    """The feature gate, and a restart of Kueue whenever its configuration changes.

    Kueue restarts after the quotas: while it does, its webhook doesn't answer, and a quota that is created then fails
    (CreateFailed). Pulumi waits until the Deployment is available again.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        *,
        eks: Eks,
        addon: aws.eks.Addon,
        policy: ClusterSchedulerConfig,
        quotas: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__(name, opts=opts)
        # What the add-on wrote is left behind as it is: the add-on takes it along when it goes.
        inside = pulumi.ResourceOptions(
            parent=self, provider=eks.kubernetes, depends_on=[addon, policy, *quotas], retain_on_delete=True
        )
        # The id is known only when the policy is there, so that a first preview does not look for the file.
        there = k8s.core.v1.ConfigMap.get(
            "kueue-config", policy.cluster_scheduler_config_arn.apply(lambda _: f"{_NAMESPACE}/{_CONFIG}"), opts=inside
        )
        gates = gates_of(plan)
        text = there.data.apply(lambda data: with_feature_gates((data or {}).get(_FILE, ""), gates))
        config = k8s.core.v1.ConfigMapPatch(
            "kueue-config",
            metadata={"name": _CONFIG, "namespace": _NAMESPACE, "annotations": _FORCE},
            data={_FILE: text},
            opts=inside,
        )
        digest = text.apply(lambda known: hashlib.sha256(known.encode()).hexdigest()[:16])
        k8s.apps.v1.DeploymentPatch(
            "kueue",
            metadata={"name": _DEPLOYMENT, "namespace": _NAMESPACE, "annotations": _FORCE},
            spec={"template": {"metadata": {"annotations": {"hpkit/kueue-config": digest}}}},
            opts=pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=[config])),
        )
        self.register_outputs({})
