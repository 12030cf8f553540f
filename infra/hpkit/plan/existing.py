"""Which roles and buckets hpkit creates for an environment, and which exist already; and add-ons' service accounts.

Sources of the service accounts: the add-ons' own pages in the SageMaker HyperPod developer guide and the Amazon EKS
user guide. For KEDA, external-dns, cert-manager and SageMaker Spaces, they are their charts' defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hpkit.catalog import CLOUDWATCH, find_instance_type
from hpkit.config.models.storage import TeamBucket
from hpkit.plan.model import AddonPlan, GroupPlan, Plan

__all__ = [
    "KEDA_ACCOUNT",
    "POD_ACCOUNTS",
    "ROLE_BY_USER",
    "ROUTER_ACCOUNT",
    "MadeRole",
    "PodAccount",
    "cluster_role",
    "created_groups",
    "efa_security_groups",
    "execution_roles",
    "given_roles",
    "is_associated",
    "made_roles",
    "makes_bucket",
    "makes_certificate_bucket",
    "makes_inference_keda",
    "makes_karpenter_role",
    "makes_keda_role",
    "makes_node_role",
    "makes_pod_role",
    "makes_script",
    "names_existing",
    "overridden_places",
    "pod_roles",
    "service_account_roles",
    "team_buckets",
    "verified_scripts",
    "watches_alarms",
]

_HYPERPOD_METRICS: Final = "amazon-sagemaker-hyperpod-observability"
_S3_CSI: Final = "aws-mountpoint-s3-csi-driver"
_FSX_CSI: Final = "aws-fsx-csi-driver"


@dataclass(frozen=True, slots=True)
class PodAccount:
    """The service account of an add-on's pods.

    managed: the managed policies of a role that hpkit creates for it, by name; inline: whether it has an inline one.
    """

    namespace: str
    name: str
    managed: tuple[str, ...] = ()
    inline: bool = False


@dataclass(frozen=True, slots=True)
class MadeRole:
    """The policies of one role that the program creates: AWS managed ones by name, and whether it has an inline one."""

    managed: tuple[str, ...]
    inline: bool


POD_ACCOUNTS: Final[Mapping[str, PodAccount]] = {
    CLOUDWATCH: PodAccount("amazon-cloudwatch", "cloudwatch-agent", managed=("CloudWatchAgentServerPolicy",)),
    _HYPERPOD_METRICS: PodAccount(
        "hyperpod-observability", "hyperpod-observability-operator-otel-collector", inline=True
    ),
    "amazon-sagemaker-hyperpod-training-operator": PodAccount(
        "aws-hyperpod",
        "hp-training-operator-controller-manager",
        managed=("AmazonSageMakerHyperPodTrainingOperatorAccess",),
    ),
    "amazon-sagemaker-spaces": PodAccount(
        "jupyter-k8s-system", "jupyter-k8s-controller-manager", managed=("AmazonSageMakerSpacesControllerPolicy",)
    ),
    # On HyperPod nodes, volumes are attached by SageMaker (developer guide, "Amazon EBS CSI driver").
    "aws-ebs-csi-driver": PodAccount(
        "kube-system", "ebs-csi-controller-sa", managed=("service-role/AmazonEBSCSIDriverPolicy",), inline=True
    ),
    "aws-efs-csi-driver": PodAccount(
        "kube-system", "efs-csi-controller-sa", managed=("service-role/AmazonEFSCSIDriverPolicy",)
    ),
    _FSX_CSI: PodAccount("kube-system", "fsx-csi-controller-sa", inline=True),
    _S3_CSI: PodAccount("kube-system", "s3-csi-driver-sa", inline=True),
    "cert-manager": PodAccount("cert-manager", "cert-manager"),
    "external-dns": PodAccount("external-dns", "external-dns"),
    "vpc-cni": PodAccount("kube-system", "aws-node"),
}
KEDA_ACCOUNT: Final = PodAccount("keda", "keda-operator", inline=True)
# Used by the pods that check access to spaces from a browser.
ROUTER_ACCOUNT: Final = PodAccount("jupyter-k8s-system", "jupyter-k8s-authmiddleware", inline=True)
# Add-ons that require a role whose permissions only the user knows; hpkit creates no role for them.
ROLE_BY_USER: Final[Mapping[str, str]] = {
    _S3_CSI: "the buckets that pods mount",
    "external-dns": "the hosted zones that it manages",
    _FSX_CSI: "the file systems that it mounts or creates",
}


def created_groups(plan: Plan) -> tuple[GroupPlan, ...]:
    """Return the ordinary instance groups that the stack creates: none of an existing cluster."""
    return () if plan.spec.cluster.existing else plan.groups


def makes_node_role(plan: Plan) -> bool:
    """Return whether some group has no execution role in the file."""
    return any(group.spec.execution_role is None for group in created_groups(plan))


def watches_alarms(plan: Plan) -> bool:
    """Return whether alarms roll back updates of some group with hpkit's execution role."""
    return any(group.spec.execution_role is None and group.spec.auto_rollback_alarms for group in created_groups(plan))


def volume_keys(plan: Plan) -> list[str]:
    """Return the KMS keys of the volumes of groups with hpkit's execution role, each an ARN or an ID."""
    storage = (
        config.ebs_volume_config
        for group in created_groups(plan)
        if group.spec.execution_role is None
        for config in group.spec.instance_storage_configs
    )
    return sorted({key for volume in storage if (key := volume.volume_kms_key_id) is not None})


def makes_karpenter_role(plan: Plan) -> bool:
    """Return whether Karpenter is on and needs a role."""
    return plan.spec.karpenter is not None and plan.spec.karpenter.cluster_role is None


def makes_keda_role(plan: Plan) -> bool:
    """Return whether KEDA is on and its operator needs a role."""
    keda = plan.spec.autoscaling.keda if plan.spec.autoscaling else None
    return keda is not None and keda.role is None


def makes_inference_keda(plan: Plan) -> bool:
    """Return whether the inference operator installs KEDA: only if hpkit installs none, because one is enough."""
    return plan.spec.inference is not None and not (plan.spec.autoscaling and plan.spec.autoscaling.keda)


def makes_bucket(plan: Plan) -> bool:
    """Return whether lifecycle scripts require a bucket that doesn't exist."""
    there = plan.spec.storage.existing if plan.spec.storage else None
    return there is None and bool(created_groups(plan))


def makes_certificate_bucket(plan: Plan) -> bool:
    """Return whether the inference operator's certificates require a bucket that doesn't exist."""
    return plan.spec.inference is not None and plan.spec.inference.tls_certificate_bucket is None


def makes_script(plan: Plan) -> bool:
    """Return whether hpkit's own script is uploaded: always to hpkit's bucket, otherwise if a group runs it."""
    return makes_bucket(plan) or any(group.spec.runs_kits_script for group in created_groups(plan))


def verified_scripts(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return URI and SHA-256 of each script of the user's own that nodes verify before they run it."""
    return tuple(sorted({found for group in created_groups(plan) if (found := group.spec.verified_script) is not None}))


def makes_pod_role(plan: Plan, addon: AddonPlan) -> bool:
    """Return whether hpkit creates a role for an add-on's pods."""
    if addon.role is not None or addon.service_account_role_arn is not None or not addon.pod_identity:
        return False
    observability, storage = plan.spec.observability, plan.spec.storage
    if addon.name == _HYPERPOD_METRICS:
        return observability is not None and observability.prometheus
    if addon.name == _FSX_CSI:
        return storage is not None and storage.lustre is not None
    if addon.name == _S3_CSI:
        return plan.spec.inference is not None and bool(plan.spec.inference.model_buckets)
    account = POD_ACCOUNTS.get(addon.name)
    return account is not None and (account.inline or bool(account.managed))


def made_roles(plan: Plan) -> list[MadeRole]:
    """Return the roles that the program creates, without their names."""
    observability = plan.spec.observability
    roles = []
    if plan.spec.eks.existing is None:
        roles.append(MadeRole(("AmazonEKSClusterPolicy",), inline=True))
    if makes_node_role(plan):
        roles.append(MadeRole(("AmazonSageMakerClusterInstanceRolePolicy",), inline=True))
    if makes_karpenter_role(plan):
        roles.append(MadeRole((), inline=True))
    if observability is not None and observability.grafana:
        roles.append(MadeRole((), inline=True))
    if plan.spec.inference is not None:
        roles.append(MadeRole(("AmazonSageMakerHyperPodInferenceAccess",), inline=True))
        # Of the load balancer controller, and of KEDA.
        roles += [MadeRole((), inline=True)] * (2 if makes_inference_keda(plan) else 1)
    if plan.spec.spaces is not None:
        # Roles for connecting spaces by Systems Manager, and for the router.
        roles += [MadeRole((), inline=True)] * (plan.spec.spaces.remote_access + (plan.spec.spaces.web_ui is not None))
    roles += [MadeRole((), inline=True) for team in plan.teams if team.made_role]
    roles += [MadeRole((), inline=True) for _ in team_buckets(plan)]
    pods = [POD_ACCOUNTS[addon.name] for addon in plan.addons if makes_pod_role(plan, addon)]
    pods += [KEDA_ACCOUNT] if makes_keda_role(plan) else []
    return [*roles, *(MadeRole(account.managed, inline=account.inline) for account in pods)]


def team_buckets(plan: Plan) -> dict[str, tuple[TeamBucket, ...]]:
    """Return the buckets of each team that has a namespace in this environment, by the team's name."""
    stated = plan.spec.storage.team_buckets if plan.spec.storage else {}
    return {team.name: stated[team.name] for team in plan.teams if stated.get(team.name)}


def is_associated(plan: Plan, addon: AddonPlan) -> bool:
    """Return whether hpkit gives an add-on's pods a role through EKS Pod Identity."""
    return makes_pod_role(plan, addon) or (addon.role is not None and addon.name in POD_ACCOUNTS)


def execution_roles(plan: Plan) -> tuple[str, ...]:
    """Return the existing roles of instance groups."""
    return tuple(sorted({role for group in plan.own_groups if (role := group.spec.execution_role)}))


def overridden_places(plan: Plan, *, of_made_role: bool = False) -> tuple[list[str], list[str]]:
    """Return the subnets and security groups of `overrideVpcConfig`; of_made_role: where hpkit creates it."""
    overrides = [
        group.spec.override_vpc_config
        for group in plan.own_groups
        if group.spec.override_vpc_config is not None and not (of_made_role and group.spec.execution_role)
    ]
    subnets = {subnet for each in overrides for subnet in each.subnets}
    return sorted(subnets), sorted({group for each in overrides for group in each.security_group_ids})


def efa_security_groups(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the existing security groups of each created instance group with a type that has EFA, by its name."""
    existing = plan.spec.network.existing
    found = {}
    for group in plan.own_groups if existing else ():
        types = [find_instance_type(name) for name in group.spec.types]
        if existing and any(each is not None and each.efa_interfaces for each in types):
            place = group.spec.override_vpc_config or existing
            found[group.spec.name] = tuple(place.security_group_ids)
    return found


def cluster_role(plan: Plan) -> str | None:
    """Return the existing role of Karpenter."""
    return plan.spec.autoscaling.cluster_role if plan.spec.autoscaling else None


def pod_roles(plan: Plan) -> tuple[str, ...]:
    """Return the existing roles that pods of add-ons and of KEDA take by EKS Pod Identity."""
    keda = plan.spec.autoscaling.keda if plan.spec.autoscaling else None
    given = {keda.role if keda else None, *(addon.role for addon in plan.addons)}
    return tuple(sorted(role for role in given if role is not None))


def service_account_roles(plan: Plan) -> tuple[str, ...]:
    """Return the existing roles that add-ons' pods take by the cluster's OIDC provider."""
    return tuple(sorted({role for addon in plan.addons if (role := addon.service_account_role_arn)}))


def given_roles(plan: Plan) -> dict[str, str]:
    """Return every existing role that the file hands to a service, and what for."""
    karpenter = cluster_role(plan)
    addons = {
        role: f"pods of {addon.name}"
        for addon in plan.addons
        if (role := addon.role or addon.service_account_role_arn) is not None
    }
    keda = plan.spec.autoscaling.keda if plan.spec.autoscaling else None
    return {
        **addons,
        **({keda.role: "pods of KEDA"} if keda is not None and keda.role is not None else {}),
        **({karpenter: "managed Karpenter"} if karpenter is not None else {}),
        **dict.fromkeys(execution_roles(plan), "execution role of instance groups"),
    }


def names_existing(plan: Plan) -> bool:
    """Return whether the stack uses something that it doesn't create."""
    storage, groups = plan.spec.storage, created_groups(plan)
    scripts = any(not each.spec.runs_kits_script for each in groups)
    bucket = storage is not None and storage.existing is not None
    cluster = plan.spec.cluster.existing
    return cluster or plan.spec.network.existing is not None or bucket or scripts or bool(given_roles(plan))
