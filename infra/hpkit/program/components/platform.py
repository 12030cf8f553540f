"""The whole platform of one environment: every component, in the order that AWS itself forces and no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pulumi
import pulumi_aws as aws

from hpkit.catalog import SPACES
from hpkit.plan.existing import team_buckets
from hpkit.plan.model import Plan
from hpkit.plan.names import log_group
from hpkit.plan.principals import is_administrator, is_deployer, is_viewer, teams_of
from hpkit.plan.protected import allowed_in, contents_of, kept, leaving_teams
from hpkit.plan.registry import repositories_of
from hpkit.program.components.access.entries import Access
from hpkit.program.components.access.roles import Identity
from hpkit.program.components.addons.eks_addons import Addons
from hpkit.program.components.addons.inference import Inference
from hpkit.program.components.addons.observability import Observability
from hpkit.program.components.addons.operators import Operators
from hpkit.program.components.addons.spaces import Spaces
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.cluster.existing import existing_cluster
from hpkit.program.components.cluster.hyperpod import Dependencies, HyperPod
from hpkit.program.components.cluster.network import Network
from hpkit.program.components.cluster.registry import Registry
from hpkit.program.components.common.base import DeployContext, document
from hpkit.program.components.common.credentials import Credentials, configured, connection
from hpkit.program.components.common.guards import (
    guard_base,
    guard_cluster,
    guard_groups,
    guard_parts,
    guard_version,
    untagged,
)
from hpkit.program.components.common.outputs import TeamOutputs, given_provider, tagged, team_table
from hpkit.program.components.scheduling.autoscaling import Autoscaling
from hpkit.program.components.scheduling.governance import Governance, Scheduling, kueue_runs
from hpkit.program.components.storage.aws_storage import Storage
from hpkit.program.components.storage.data_repositories import DataRepositories
from hpkit.program.components.storage.local_disk import TeamDisks
from hpkit.program.components.storage.lustre import TeamVolumes
from hpkit.program.components.storage.team_buckets import TeamBuckets
from hpkit.program.iam.live import AwsAccount
from hpkit.program.sdk import Provider

__all__ = ["build"]

# Zones where EKS cannot place its control plane (Amazon EKS user guide, VPC and subnet considerations).
_NO_CONTROL_PLANE = ["use1-az3", "usw1-az2", "cac1-az3"]
_EBS_CSI, _FSX_CSI = "aws-ebs-csi-driver", "aws-fsx-csi-driver"


def build(plan: Plan, *, root: str = "..", parent: pulumi.Resource | None = None) -> dict[str, Any]:
    """Register everything in the plan, and return the stack's outputs.

    root: the project's folder, relative to the program's, which is the working directory of the plugins; parent: the
    parent of all resources, by default the stack.
    """
    own = pulumi.ResourceOptions(parent=parent)
    tags = aws.ProviderDefaultTagsArgs(tags=dict(plan.tags)) if plan.spec.manage_tags else None
    credentials = configured()
    provider = aws.Provider(
        "aws",
        region=plan.spec.region,
        allowed_account_ids=[plan.spec.account] if plan.spec.account else None,
        default_tags=tags,
        profile=credentials.profile,
        assume_roles=[_assumed(role) for role in credentials.roles] or None,
        **connection(),
        opts=own,
    )
    context, hyperpod_provider = _start_providers(plan, provider, credentials, root, own)
    _check_account(plan, context.account.id)
    _check_caller(plan, context.caller)
    given = given_provider(parent, plan, context.caller, context.zones, _zones)
    of_tags = [tagged(plan.tags)] if given else None
    # A component's options apply to its resources, so every component gets these.
    inherited = pulumi.ResourceOptions(
        providers=[given or provider, hyperpod_provider],
        transformations=of_tags if plan.spec.manage_tags else [untagged],
    )
    opts = pulumi.ResourceOptions.merge(own, inherited)
    if plan.spec.cluster.existing:
        return _govern_existing(plan, context, hyperpod_provider, opts=opts)
    network = Network("network", plan, context, guard=[guard_groups(plan, opts=opts)], opts=opts)
    storage = Storage("storage", plan, context, network=network, opts=opts)
    identity = Identity("identity", plan, context, network=network, storage=storage, opts=opts)
    eks = Eks(
        "eks", plan, context, network=network, identity=identity, guard=[guard_version(plan, opts=opts)], opts=opts
    )
    registry = (
        Registry("registry", plan, key_arn=eks.key_arn or storage.key_arn, after=eks.key_usable, opts=opts)
        if repositories_of(plan)
        else None
    )
    access = Access("access", plan, context, eks=eks, after=network.connectivity, opts=opts)
    # EKS takes longer than all of the network: waiting for that here costs an `up` nothing.
    reached = [*network.connectivity, *access.administrators]
    eks.connect(after=reached)
    before = Addons("addons", plan, context, eks=eks, needing_nodes=False, after=reached, opts=opts)
    ready = list(before.installed.values())
    # Nothing of the chart runs before the nodes do, so it is installed alongside the add-ons, which take a minute.
    dependencies = Dependencies("dependencies", plan, context, eks=eks, after=reached, opts=opts)
    guard = guard_base(plan, {**network.kept, **storage.kept, **eks.kept}, opts=opts)
    # After the other guard, whose rejection lists more: it includes what is deleted with the cluster.
    guards = guard_parts(plan, opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[guard])))
    platform = HyperPod(
        "hyperpod",
        plan,
        network=network,
        storage=storage,
        identity=identity,
        eks=eks,
        after=[guard, *reached, *ready, *([dependencies.release] if dependencies.release else [])],
        opts=opts,
    )
    nodes = platform.nodes or [platform.cluster]
    addons, observed = _node_addons(plan, context, eks, storage, platform, after=nodes, opts=opts)
    parts: list[pulumi.Resource] = [guards, network, storage, identity, eks, before, dependencies, platform, addons]
    parts += [each for each in (observed, registry) if each is not None]
    parts += [*_on_the_cluster(plan, context, eks, platform, addons, access, observed, storage, opts=opts), access]
    live = {"cluster": platform.cluster.cluster_arn, **(observed.kept if observed else {})}
    guard_cluster(plan, live, after=parts, opts=opts)
    return _outputs(plan, eks, platform.cluster.cluster_arn, registry)


def _on_the_cluster(
    plan: Plan,
    context: DeployContext,
    eks: Eks,
    platform: HyperPod,
    addons: Addons,
    access: Access,
    observed: Observability | None,
    storage: Storage,
    *,
    opts: pulumi.ResourceOptions,
) -> Sequence[pulumi.Resource]:
    """Return the uses of the cluster: autoscaling, governance, each team's access and its claims."""
    parts: list[pulumi.Resource] = []
    after = [platform.cluster]
    if plan.spec.autoscaling is not None:
        groups = platform.autoscaled
        workspace = observed.workspace if observed else None
        parts.append(
            Autoscaling(
                "autoscaling",
                plan,
                plan.spec.autoscaling,
                context,
                eks=eks,
                workspace_arn=None if workspace is None else workspace.arn,
                after=after,
                nodes=platform.nodes,
                groups=groups,
                opts=opts,
            )
        )
    if plan.spec.operators:
        parts.append(Operators("operators", plan, context, eks=eks, after=[*after, *platform.nodes], opts=opts))
    governed, quotas = _govern(plan, context, eks, addons, access, platform.cluster.cluster_arn, opts=opts)
    parts += governed
    lustre = plan.spec.storage.lustre if plan.spec.storage else None
    volumes: list[pulumi.Resource] = []
    if lustre is not None and lustre.teams and storage.lustre is not None:
        volumes.append(
            TeamVolumes(
                "team-volumes",
                plan,
                lustre,
                eks=eks,
                file_system=storage.lustre,
                driver=[addons.installed[_FSX_CSI]],
                quotas=quotas,
                opts=opts,
            )
        )
    parts += volumes
    if lustre is not None and lustre.data_repositories and storage.lustre is not None:
        parts.append(
            DataRepositories("data-repositories", lustre, file_system=storage.lustre, after=volumes, opts=opts)
        )
    return parts


def _govern(
    plan: Plan,
    context: DeployContext,
    eks: Eks,
    addons: Addons,
    access: Access,
    cluster_arn: pulumi.Input[str],
    *,
    opts: pulumi.ResourceOptions,
) -> tuple[list[pulumi.Resource], Mapping[str, pulumi.Resource]]:
    """Return the cluster policy and what Kueue is configured by; and the quotas by team."""
    if plan.policy is None:
        access.grant({})
        return [], {}
    kueue = addons.task_governance
    buckets = TeamBuckets("team-buckets", plan, context, eks=eks, opts=opts) if team_buckets(plan) else None
    governance = Governance(
        "governance",
        plan,
        plan.policy,
        cluster_arn=cluster_arn,
        after=[
            # The teams' first pods start with their roles.
            *([] if buckets is None else buckets.ready),
            *([] if kueue is None else [kueue_runs(eks, kueue, opts=opts)]),
            # Its controller deletes the spaces of a deleted team, so it's deleted after the teams.
            *(each for name, each in addons.installed.items() if name == SPACES),
        ],
        opts=opts,
    )
    parts: list[pulumi.Resource] = [governance, *([] if buckets is None else [buckets])]
    if kueue is not None and plan.gang_scheduling is not None:
        quotas = list(governance.quotas.values())
        parts.append(
            Scheduling("scheduling", plan, eks=eks, addon=kueue, policy=governance.policy, quotas=quotas, opts=opts)
        )
    access.grant(governance.quotas)
    disk = plan.spec.storage.local_disk if plan.spec.storage else None
    if disk is not None:
        parts.append(TeamDisks("team-disks", plan, disk, eks=eks, quotas=governance.quotas, opts=opts))
    return parts, governance.quotas


def _govern_existing(
    plan: Plan, context: DeployContext, hyperpod_provider: Provider, *, opts: pulumi.ResourceOptions
) -> dict[str, Any]:
    """Register the governance of a cluster that another stack or tool manages, and return the stack's outputs."""
    cluster_arn = existing_cluster(plan, hyperpod_provider)
    eks = Eks("eks", plan, context, opts=opts)
    repositories = Registry("registry", plan, key_arn=None, opts=opts) if repositories_of(plan) else None
    access = Access("access", plan, context, eks=eks, after=[], opts=opts)
    eks.connect(after=access.administrators)
    addons = Addons("node-addons", plan, context, eks=eks, needing_nodes=True, after=access.administrators, opts=opts)
    named = guard_parts(plan, opts=opts)
    governed, quotas = _govern(plan, context, eks, addons, access, cluster_arn, opts=opts)
    lustre = plan.spec.storage.lustre if plan.spec.storage else None
    if lustre is not None and lustre.teams and lustre.existing is not None:
        shared = lustre.existing
        governed.append(
            TeamVolumes("team-volumes", plan, lustre, eks=eks, file_system=shared, driver=[], quotas=quotas, opts=opts)
        )
    guard_cluster(plan, {}, after=[named, eks, addons, *governed, access], opts=opts)
    return _outputs(plan, eks, cluster_arn, repositories)


def _assumed(role: Mapping[str, Any]) -> aws.ProviderAssumeRoleArgs:
    return aws.ProviderAssumeRoleArgs(
        role_arn=role["roleArn"], session_name=role.get("sessionName"), duration=role.get("duration")
    )


def _start_providers(
    plan: Plan, provider: aws.Provider, credentials: Credentials, root: str, own: pulumi.ResourceOptions
) -> tuple[DeployContext, Provider]:
    """Query the account and region from AWS.

    Raises pulumi.RunError if AWS doesn't respond, such as for invalid credentials.

    The engine starts one plugin after the other, and this program is idle while it waits for the first one. Loading the
    SDKs takes as long, so it happens then. The second plugin starts while resources are prepared.
    """
    invoke_options = pulumi.InvokeOptions(provider=provider)
    # Left only when all is loaded: modules that load themselves when touched must not be touched from two threads.
    with ThreadPoolExecutor(max_workers=1) as side, _answered(plan):
        loaded = side.submit(_load_sdks)
        zones = _zones(invoke_options)
    loaded.result()
    # These are set on the provider. If another resource is replaced, the engine calls the cluster's Diff with its old
    # inputs; for another region, it doesn't call it at all.
    hyperpod = Provider(
        "hyperpod",
        region=plan.spec.region,
        account_id=plan.spec.account,
        profile=credentials.profile,
        assume_role_arn=credentials.role_arn,
        allow_replace=None if kept(plan, "cluster") else "true",
        leaving_teams=",".join(leaving_teams(plan)) or None,
        contents="; ".join(contents_of(plan).values()),
        where=allowed_in(plan),
        opts=own,
    )
    with _answered(plan):
        caller = aws.get_caller_identity(opts=invoke_options)
        account = AwsAccount(
            partition=aws.get_partition(opts=invoke_options).partition, region=plan.spec.region, id=caller.account_id
        )
        has_log_group = _has_log_group(plan, invoke_options)
    context = DeployContext(
        account, caller=caller.arn, credentials=credentials, zones=zones, has_log_group=has_log_group, root=root
    )
    return context, hyperpod


def _check_caller(plan: Plan, caller: str) -> None:
    """Reject an `up` by a caller who couldn't finish it. Raises pulumi.RunError.

    A role has one access entry in an EKS cluster, and a viewer's or a team member's doesn't allow creating anything.
    """
    if pulumi.runtime.is_dry_run() or is_administrator(plan, caller):
        return
    if not is_deployer(plan, caller):
        raise pulumi.RunError(
            f"{caller} isn't listed in `deployers` of {plan.stack} ({', '.join(plan.spec.deployers)}), so it can't "
            "write to the lifecycle bucket. Nothing was created. Deploy with one of these. Or add this role's ARN "
            "to `deployers`, and have one of them run `pulumi up`."
        )
    teams = teams_of(plan, caller)
    if is_viewer(plan, caller):
        raise pulumi.RunError(
            f"{caller} is listed in eks.viewers of {plan.stack}, so it can preview but not change anything. Nothing "
            "was created. Deploy with another role, or list this one in eks.administrators instead."
        )
    if teams and plan.spec.eks.existing is None:
        raise pulumi.RunError(
            f"{caller} is a data scientist of {', '.join(teams)} and not an administrator of {plan.stack}, so it "
            "can't create anything inside the EKS cluster. Nothing was created. Deploy with another role, or also "
            "list this one in eks.administrators."
        )


def _check_account(plan: Plan, account: str) -> None:
    """Reject credentials of another account; raises pulumi.RunError.

    Both plugins reject them as well, since `pulumi refresh` and `pulumi destroy` do not run this program.
    """
    expected = plan.spec.account
    if expected is not None and account != expected:
        raise pulumi.RunError(
            f"these credentials belong to account {account}, but {plan.stack} belongs to account {expected}, according "
            f"to `account` of its environment. Nothing was created. Use credentials of {expected} (AWS_PROFILE, aws "
            "sso login, aws:profile of the stack), or correct `account`."
        )


@contextmanager
def _answered(plan: Plan) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the SDK raises nothing more particular
        expected = f" ({plan.stack} belongs to account {plan.spec.account})" if plan.spec.account else ""
        raise pulumi.RunError(f"AWS didn't identify the account: {error}{expected}") from None


def _zones(invoke_options: pulumi.InvokeOptions) -> list[str]:
    zones = aws.get_availability_zones(
        state="available",
        exclude_zone_ids=_NO_CONTROL_PLANE,
        filters=[aws.GetAvailabilityZonesFilterArgs(name="opt-in-status", values=["opt-in-not-required"])],
        opts=invoke_options,
    )
    return sorted(zones.names)


def _has_log_group(plan: Plan, invoke_options: pulumi.InvokeOptions) -> bool:
    if plan.spec.eks.existing is not None:
        return False
    name = log_group(plan)
    return name in aws.cloudwatch.get_log_groups(log_group_name_prefix=name, opts=invoke_options).log_group_names


def _load_sdks() -> tuple[type[pulumi.Resource], ...]:
    """Load the largest modules that every platform needs, because the SDKs load a resource's module on first use."""
    return (
        *(aws.ec2.Vpc, aws.ec2.Subnet, aws.ec2.RouteTable, aws.ec2.SecurityGroup, aws.ec2.VpcEndpoint),
        *(aws.s3.Bucket, aws.s3.BucketLifecycleConfiguration, aws.s3.BucketServerSideEncryptionConfiguration),
        *(aws.iam.Role, aws.kms.Key, aws.cloudwatch.LogGroup, aws.eks.Cluster, aws.vpc.SecurityGroupEgressRule),
    )


def _node_addons(
    plan: Plan,
    context: DeployContext,
    eks: Eks,
    storage: Storage,
    platform: HyperPod,
    *,
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> tuple[Addons, Observability | None]:
    """Return the add-ons that need nodes, and the targets of their reports."""
    observed = None
    policies = {_EBS_CSI: document("volumes", nodes=platform.cluster.cluster_arn, cluster=eks.arn)}
    values: dict[str, pulumi.Input[Mapping[str, Any]]] = {}
    if plan.spec.observability is not None:
        observed = Observability("observability", plan, plan.spec.observability, context, opts=opts)
        policies.update(observed.policies)
        values.update(observed.values)
    if storage.lustre is not None:
        policies[_FSX_CSI] = document("lustre", file_system=storage.lustre.arn)
    rights: dict[str, Sequence[pulumi.Resource]] = {}
    if plan.spec.inference is not None:
        workspace = observed.workspace if observed else None
        inference = Inference(
            "inference",
            plan,
            plan.spec.inference,
            context,
            eks=eks,
            cluster_arn=platform.cluster.cluster_arn,
            workspace_arn=None if workspace is None else workspace.arn,
            opts=opts,
        )
        policies.update(inference.policies)
        values.update(inference.values)
        rights.update(inference.rights)
    if plan.spec.spaces is not None:
        spaces = Spaces("spaces", plan, plan.spec.spaces, context, eks=eks, opts=opts)
        values.update(spaces.values)
        rights.update(spaces.rights)
    addons = Addons(
        "node-addons",
        plan,
        context,
        eks=eks,
        needing_nodes=True,
        after=after,
        values=values,
        policies=policies,
        rights=rights,
        opts=opts,
    )
    return addons, observed


def _outputs(plan: Plan, eks: Eks, cluster_arn: pulumi.Input[str], registry: Registry | None) -> dict[str, Any]:
    region, stack = plan.spec.region, plan.stack
    kubeconfig = pulumi.Output.concat("aws eks update-kubeconfig --region ", region, " --name ", eks.name)
    steps = [
        f"hpkit quota --stack {stack}    # each team's quota, and what it may borrow",
        "kubectl get clusterqueues      # the same as the scheduler sees it",
    ]
    return {
        "clusterArn": cluster_arn,
        "eksClusterName": eks.name,
        "kubeconfigCommand": kubeconfig,
        "teams": _with_repositories(team_table(plan), registry),
        "nextSteps": [kubeconfig, *steps],
    }


def _with_repositories(teams: dict[str, TeamOutputs], registry: Registry | None) -> dict[str, TeamOutputs]:
    """Return each team's resources, with the repositories of teams that have any."""
    uris = registry.uris if registry is not None else {}
    return {name: {**row, "repositories": uris[name]} if name in uris else row for name, row in teams.items()}
