"""Which EKS add-ons an environment gets, at which version, with which configuration and role."""

from collections.abc import Sequence

from hpkit.catalog import INFERENCE_OPERATOR, SPACES, TASK_GOVERNANCE, addon_pin, addons
from hpkit.config.models.addons import Addon
from hpkit.config.models.organization import Environment
from hpkit.plan.dependencies import alternatives_brought, dependencies_of
from hpkit.plan.model import AddonPlan

__all__ = ["addons_of", "takes_over"]

_BASE_ADDONS = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns")
# A new EKS cluster has these without EKS add-ons, unless its creator says otherwise (EKS API reference, CreateCluster,
# bootstrapSelfManagedAddons). hpkit's clusters have none.
_SELF_MANAGED = ("vpc-cni", "kube-proxy", "coredns")


def addons_of(spec: Environment) -> tuple[AddonPlan, ...]:
    """Return the add-ons in the file, and those that its other settings require."""
    # An existing cluster has its own add-ons; those in the file are still installed or updated.
    names = set(spec.addons) | (set(_BASE_ADDONS) if spec.eks.existing is None else set())
    if spec.governance is not None and not spec.governance.installed:
        names.add(TASK_GOVERNANCE)
    if spec.observability is not None and spec.observability.cloudwatch:
        names.add("amazon-cloudwatch-observability")
    if spec.observability is not None and spec.observability.prometheus:
        names.add("amazon-sagemaker-hyperpod-observability")
    if spec.storage is not None and spec.storage.lustre is not None and spec.storage.lustre.existing is None:
        names.add("aws-fsx-csi-driver")
    if spec.inference is not None:
        names |= _with_requirements(spec, INFERENCE_OPERATOR, spec.inference.installed)
    if spec.spaces is not None:
        names |= _with_requirements(spec, SPACES)
    addons = {name: spec.addons.get(name, Addon()) for name in sorted(names)}
    return tuple(
        AddonPlan(
            name,
            addon.version or addon_pin(name, spec.eks.version),
            addon.configuration_values,
            role=addon.role,
            service_account_role_arn=addon.service_account_role_arn,
            pod_identity=addon.pod_identity,
        )
        for name, addon in addons.items()
    )


def _with_requirements(spec: Environment, name: str, installed: Sequence[str] = ()) -> set[str]:
    """Return an add-on and the add-ons that it requires, except for installed ones; an existing cluster has its own."""
    if spec.eks.existing is not None:
        return {name}
    needed = {each for addon in addons() if addon.name == name for each in addon.requires}
    brought = {each.addon for each in alternatives_brought(dependencies_of(spec))}
    return {name} | (needed - brought - set(installed))


def takes_over(spec: Environment, addon: str) -> str | None:
    """Return what happens when an add-on is created on an existing EKS cluster that may run it without EKS add-ons."""
    if spec.eks.existing is None or addon not in _SELF_MANAGED:
        return None
    example = ", such as CoreDNS's Corefile," if addon == "coredns" else ""
    return f"it replaces a self-managed {addon}, and overwrites its settings{example} with configurationValues"
