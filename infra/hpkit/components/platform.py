"""The whole platform of one environment: every component, in the order that AWS itself forces and no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from hpkit.components.access import Access
from hpkit.components.addons import Addons
from hpkit.components.autoscaling import Autoscaling
from hpkit.components.base import Site, document
from hpkit.components.eks import Eks
from hpkit.components.governance import Governance
from hpkit.components.hyperpod import Dependencies, HyperPod
from hpkit.components.identity import Identity
from hpkit.components.network import Network
from hpkit.components.observability import Observability
from hpkit.components.scheduling import Scheduling
from hpkit.components.storage import Storage
from hpkit.components.untagged import untagged
from hpkit.plan.iam import Place, lustre_policy
from hpkit.plan.model import Plan
from hpkit.plan.replace import guards_of
from hpkit.plan.teams import team_table
from hpkit.resources import ChangeGuard, Provider

__all__ = ["build"]

# Zones where EKS cannot place its control plane (Amazon EKS user guide, VPC and subnet considerations).
_NO_CONTROL_PLANE = ["use1-az3", "usw1-az2", "cac1-az3"]
_FSX_CSI = "aws-fsx-csi-driver"


def build(plan: Plan) -> dict[str, Any]:
    """Register everything that the plan comes to, and return the stack's outputs."""
    tags = aws.ProviderDefaultTagsArgs(tags=dict(plan.tags)) if plan.spec.manage_tags else None
    provider = aws.Provider("aws", region=plan.spec.region, default_tags=tags)
    site, hyperpod_provider = _begun(plan, provider)
    # What is done to the resources of a component is taken from its options: every component gets these.
    opts = pulumi.ResourceOptions(
        providers=[provider, hyperpod_provider], transformations=None if plan.spec.manage_tags else [untagged]
    )
    guards = _guards(plan, opts)
    network = Network("network", plan, site, guard=[guards["vpc"], guards["groups"]], opts=opts)
    storage = Storage("storage", plan, site, network=network, opts=opts)
    identity = Identity("identity", plan, site, network=network, storage=storage, opts=opts)
    eks = Eks("eks", plan, site, network=network, identity=identity, guard=[guards["eks"]], opts=opts)
    before = Addons("addons", plan, site, eks=eks, needing_nodes=False, after=[], opts=opts)
    ready = list(before.installed.values())
    dependencies = Dependencies("dependencies", plan, eks=eks, after=ready, opts=opts)
    platform = HyperPod(
        "hyperpod",
        plan,
        network=network,
        storage=storage,
        identity=identity,
        eks=eks,
        after=[guards["cluster"], *ready, *([dependencies.release] if dependencies.release else [])],
        opts=opts,
    )
    addons = _node_addons(plan, site, eks, storage, after=[platform.cluster], opts=opts)
    if plan.spec.autoscaling is not None:
        Autoscaling(
            "autoscaling",
            plan,
            plan.spec.autoscaling,
            eks=eks,
            after=[platform.cluster],
            groups=platform.autoscaled,
            opts=opts,
        )
    quotas = {}
    if plan.policy is not None:
        kueue = addons.task_governance
        after = [] if kueue is None else [kueue]
        governance = Governance("governance", plan, plan.policy, cluster=platform.cluster, after=after, opts=opts)
        if kueue is not None and plan.manages_topology:
            Scheduling("scheduling", plan, eks=eks, addon=kueue, policy=governance.policy, opts=opts)
        quotas = dict(governance.quotas)
    Access("access", plan, site, eks=eks, quotas=quotas, opts=opts)
    return _outputs(plan, eks, platform)


def _begun(plan: Plan, provider: aws.Provider) -> tuple[Site, Provider]:
    """Ask AWS where this is; raises pulumi.RunError when AWS does not answer, for wrong credentials say.

    The engine starts one plugin after the other, and this program is idle while it waits for the first of them: that is
    when the SDKs are loaded, which takes as long. The second plugin starts while resources are made ready.
    """
    asked = pulumi.InvokeOptions(provider=provider)
    # Left only when all is loaded: modules that load themselves when touched must not be touched from two threads.
    with ThreadPoolExecutor(max_workers=1) as side, _answered():
        loaded = side.submit(_load_sdks)
        zones = _zones(asked)
    loaded.result()
    hyperpod = Provider("hyperpod", region=plan.spec.region)
    with _answered():
        place = Place(
            partition=aws.get_partition(opts=asked).partition,
            region=plan.spec.region,
            account=aws.get_caller_identity(opts=asked).account_id,
        )
    return Site(place, zones=zones), hyperpod


@contextmanager
def _answered() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the SDK raises nothing more particular
        raise pulumi.RunError(f"AWS did not say where this is: {error}") from None


def _guards(plan: Plan, opts: pulumi.ResourceOptions) -> dict[str, ChangeGuard]:
    """Return the guards by key, each after the one before it: the first to refuse is the one that names the cause."""
    made: dict[str, ChangeGuard] = {}
    for guard in guards_of(plan):
        after = pulumi.ResourceOptions(depends_on=list(made.values())[-1:])
        made[guard.key] = ChangeGuard(
            f"keep-{guard.key}",
            subject=guard.subject,
            identity=guard.identity,
            version=guard.version,
            allow_replace=guard.allowed,
            remedy=guard.remedy,
            opts=pulumi.ResourceOptions.merge(opts, after),
        )
    return made


def _zones(asked: pulumi.InvokeOptions) -> list[str]:
    found = aws.get_availability_zones(
        state="available",
        exclude_zone_ids=_NO_CONTROL_PLANE,
        filters=[aws.GetAvailabilityZonesFilterArgs(name="opt-in-status", values=["opt-in-not-required"])],
        opts=asked,
    )
    return sorted(found.names)


def _load_sdks() -> None:
    """Load the modules that every platform needs: the SDKs load each when something of it is first asked for."""
    for module in (aws.ec2, aws.s3, aws.iam, aws.kms, aws.cloudwatch, aws.eks, aws.vpc, k8s.core.v1, k8s.rbac.v1):
        getattr(module, "__all__", None)


def _node_addons(
    plan: Plan,
    site: Site,
    eks: Eks,
    storage: Storage,
    *,
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> Addons:
    policies: dict[str, pulumi.Output[str]] = {}
    values: dict[str, pulumi.Input[Mapping[str, Any]]] = {}
    if plan.spec.observability is not None:
        observed = Observability("observability", plan, plan.spec.observability, site, opts=opts)
        policies.update(observed.policies)
        values.update(observed.values)
    if storage.lustre is not None:
        policies[_FSX_CSI] = document(lustre_policy, file_system_arn=storage.lustre.arn)
    return Addons(
        "node-addons",
        plan,
        site,
        eks=eks,
        needing_nodes=True,
        after=after,
        values=values,
        policies=policies,
        opts=opts,
    )


def _outputs(plan: Plan, eks: Eks, built: HyperPod) -> dict[str, Any]:
    region, stack = plan.spec.region, plan.stack
    kubeconfig = pulumi.Output.concat("aws eks update-kubeconfig --region ", region, " --name ", eks.name)
    steps = [
        f"hpkit quota --stack {stack}    # who has what, and may borrow what",
        "kubectl get clusterqueues      # the same as the scheduler sees it",
    ]
    return {
        "clusterArn": built.cluster.cluster_arn,
        "eksClusterName": eks.name,
        "kubeconfigCommand": kubeconfig,
        "teams": team_table(plan),
        "nextSteps": [kubeconfig, *steps],
    }
