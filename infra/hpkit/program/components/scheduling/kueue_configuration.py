"""Topology-aware and gang scheduling of the task governance add-on, set as in the plan in every run.

Nodes that don't exist yet have no topology: with managed Karpenter, the feature must be off, or every workload waits.
Both are settings in the add-on's own ConfigMap, which an update of the add-on or of the policy can overwrite, and the
console edits. So they are read and set again in every run (SageMaker HyperPod developer guide, topology-aware
scheduling; using gang scheduling).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from hpkit.kueue.configuration import configured, gang_differences, gang_of
from hpkit.plan.model import Plan
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component
from hpkit.program.sdk import ClusterSchedulerConfig, Readiness

__all__ = ["Scheduling", "kueue_runs"]

_NAMESPACE = "kueue-system"
_CONFIG = "kueue-manager-config"
_DEPLOYMENT = "kueue-controller-manager"
_FILE = "controller_manager_config.yaml"
_FORCE = {"pulumi.com/patchForce": "true"}
# An add-on is ACTIVE when its Deployments are; this leaves Kueue time to restart once.
_MINUTES = 15


def kueue_runs(eks: Eks, addon: aws.eks.Addon, *, opts: pulumi.ResourceOptions) -> Readiness:
    """Return what waits until the add-on's Kueue is available, whose webhooks check what a policy or quota creates.

    Source: awslabs/awsome-distributed-training, Terraform module task_governance, which waits for the same Deployment.
    """
    after = pulumi.ResourceOptions(depends_on=[addon])
    return eks.wait(
        "kueue",
        minutes=_MINUTES,
        deployments=[f"{_NAMESPACE}/{_DEPLOYMENT}"],
        opts=pulumi.ResourceOptions.merge(opts, after),
    )


class Scheduling(Component):
    """The configuration, and a restart of Kueue whenever its configuration changes.

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
        # The add-on's contents are kept: the add-on deletes them when it's deleted.
        inside = pulumi.ResourceOptions(
            parent=self, provider=eks.kubernetes, depends_on=[addon, policy], retain_on_delete=True
        )
        # The ID is known only when the policy exists, so that a first preview doesn't look for the file.
        live = k8s.core.v1.ConfigMap.get(
            "kueue-config", policy.cluster_scheduler_config_arn.apply(lambda _: f"{_NAMESPACE}/{_CONFIG}"), opts=inside
        )
        text = live.data.apply(lambda data: _configured((data or {}).get(_FILE, ""), plan))
        config = k8s.core.v1.ConfigMapPatch(
            "kueue-config",
            metadata={"name": _CONFIG, "namespace": _NAMESPACE, "annotations": _FORCE},
            data={_FILE: text},
            opts=inside,
        )
        digest = text.apply(lambda known: hashlib.sha256(known.encode()).hexdigest()[:16])
        # The service changes the file when the policy's fair sharing changes, which a preview can't know.
        annotations = {"hpkit/kueue-config": digest, "hpkit/fair-share": plan.policy.fair_share if plan.policy else ""}
        k8s.apps.v1.DeploymentPatch(
            "kueue",
            metadata={"name": _DEPLOYMENT, "namespace": _NAMESPACE, "annotations": _FORCE},
            spec={"template": {"metadata": {"annotations": annotations}}},
            opts=pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=[config, *quotas])),
        )
        self.register_outputs({})


def _configured(text: str, plan: Plan) -> str:
    """Return Kueue's configuration as the plan wants it; a change of gang scheduling that is on is a warning."""
    say = pulumi.log.warn if gang_of(text, plan) else pulumi.log.info
    for difference in gang_differences(text, plan):
        say(
            f"{difference}. This run sets it as in the file and restarts Kueue. If the console changed it, and it's "
            "to stay, set `governance.gangScheduling` in the file"
        )
    return configured(text, plan)
