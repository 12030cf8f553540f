"""Which EKS add-ons an environment gets, at which version, with which configuration and role."""

from hpkit.catalog import TASK_GOVERNANCE, addon_pin
from hpkit.config.addons import Addon
from hpkit.config.organization import Environment
from hpkit.plan.model import AddonPlan

__all__ = ["addons_of"]

_BASE_ADDONS = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns")


def addons_of(spec: Environment) -> tuple[AddonPlan, ...]:
    """Return the add-ons that the file names, and those that what it asks for needs."""
    # A cluster that is there has its own; what the file names is installed or taken to that version all the same.
    wanted = set(spec.addons) | (set(_BASE_ADDONS) if spec.eks.existing is None else set())
    if spec.governance is not None:
        wanted.add(TASK_GOVERNANCE)
    if spec.observability is not None and spec.observability.cloudwatch:
        wanted.add("amazon-cloudwatch-observability")
    if spec.observability is not None and spec.observability.prometheus:
        wanted.add("amazon-sagemaker-hyperpod-observability")
    if spec.storage is not None and spec.storage.lustre is not None:
        wanted.add("aws-fsx-csi-driver")
    named = {name: spec.addons.get(name, Addon()) for name in sorted(wanted)}
    return tuple(
        AddonPlan(
            name,
            each.version or addon_pin(name, spec.eks.version),
            each.configuration_values,
            role=each.role,
            service_account_role_arn=each.service_account_role_arn,
            pod_identity=each.pod_identity,
        )
        for name, each in named.items()
    )
