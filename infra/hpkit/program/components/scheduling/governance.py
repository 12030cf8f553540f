"""Task governance: the cluster policy, and one compute quota per team.

It doesn't create team namespaces or queues, because the service creates them with the quota.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from hpkit.config.models.governance import ClusterPolicy
from hpkit.kueue.configuration import configured, gang_differences, gang_of
from hpkit.plan.model import Plan, QuotaResource
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.cluster.hyperpod import tags_of
from hpkit.program.components.common.base import Component, KubernetesObject
from hpkit.program.sdk import ClusterSchedulerConfig, ComputeQuota, Object, Readiness

__all__ = ["Governance", "Scheduling", "kueue_runs"]


class Governance(Component):
    """The policy, and the quotas by team, for resources that must wait for a team's namespace."""

    policy: ClusterSchedulerConfig
    quotas: Mapping[str, ComputeQuota]

    def __init__(
        self,
        name: str,
        plan: Plan,
        policy: ClusterPolicy,
        *,
        cluster_arn: pulumi.Input[str],
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__(name, opts=opts)
        self.policy = ClusterSchedulerConfig(
            "policy",
            name=plan.policy_name,
            description=policy.description,
            cluster_arn=cluster_arn,
            scheduler_config=_scheduler_config(policy),
            tags=tags_of(plan),
            # For an existing cluster, nothing else tells `hpkit aws destroy` that the file protects the stack.
            opts=self.child(after=after, protect=(plan.spec.protect and plan.spec.cluster.existing) or None),
        )
        self.quotas = {
            team.name: ComputeQuota(
                team.name,
                name=team.quota_name,
                description=team.spec.description,
                cluster_arn=cluster_arn,
                compute_quota_target={"teamName": team.name, "fairShareWeight": team.spec.fair_share_weight},
                compute_quota_config=team.quota_config,
                activation_state=None if team.spec.activation_state == "Enabled" else team.spec.activation_state,
                elastic_instance_types=_types(each for each in team.quota_resources if each.elastic),
                future_instance_types=_types(each for each in team.quota_resources if each.future),
                tags=tags_of(plan),
                # Quotas must be deleted before the policy (SageMaker developer guide, "Delete policies").
                opts=self.child(after=[*after, self.policy]),
            )
            for team in plan.teams
        }
        self.register_outputs({"teams": sorted(self.quotas)})


def _scheduler_config(policy: ClusterPolicy) -> Object:
    config: dict[str, Any] = {"fairShare": policy.fair_share, "idleResourceSharing": policy.idle_resource_sharing}
    classes = sorted(policy.priority_classes, key=lambda each: (-each.weight, each.name))
    if classes:
        config["priorityClasses"] = [{"name": each.name, "weight": each.weight} for each in classes]
    return config


def _types(quota_resources: Iterable[QuotaResource]) -> list[str] | None:
    """Return the instance types of some quota resources; None, which registers nothing, if there aren't any."""
    return sorted({each.instance_type for each in quota_resources}) or None


# Nodes that don't exist yet have no topology: with managed Karpenter, the feature must be off, or every workload waits.
# Both are settings in the add-on's own ConfigMap, which an update of the add-on or of the policy can overwrite, and the
# console edits. So they are read and set again in every run (SageMaker HyperPod developer guide, topology-aware
# scheduling; using gang scheduling).
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
        known = policy.cluster_scheduler_config_arn.apply(lambda _: f"{_NAMESPACE}/{_CONFIG}")
        reading = pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(id=known))
        live = KubernetesObject("kueue-config", "core/v1:ConfigMap", data=None, opts=reading)
        text = live.data.apply(lambda data: _configured((data or {}).get(_FILE, ""), plan))
        # The service changes the file when the policy's fair sharing changes; a preview can only know this.
        share = {"hpkit/fair-share": plan.policy.fair_share if plan.policy else ""}
        config = KubernetesObject(
            "kueue-config",
            "core/v1:ConfigMapPatch",
            metadata={"name": _CONFIG, "namespace": _NAMESPACE, "annotations": {**_FORCE, **share}},
            data={_FILE: text},
            opts=inside,
        )
        digest = text.apply(lambda known: hashlib.sha256(known.encode()).hexdigest()[:16])
        annotations = {"hpkit/kueue-config": digest, **share}
        KubernetesObject(
            "kueue",
            "apps/v1:DeploymentPatch",
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
