"""Which dependencies chart an environment gets, with which values; and what its images are called in a mirror."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hpkit.catalog import (
    CHARTS_FOLDER,
    CLOUDWATCH,
    INFERENCE_OPERATOR,
    SPACES,
    TASK_GOVERNANCE,
    Alternative,
    ChartImage,
    PublishedChart,
    addon_pin,
    addons,
    dependencies_chart,
    keda_chart,
    operator_charts,
)
from hpkit.config.models.addons import Addon
from hpkit.config.models.organization import Environment
from hpkit.plan.model import AddonPlan, DependenciesPlan

__all__ = [
    "addons_of",
    "alternatives_brought",
    "chart_images",
    "charts_of",
    "dependencies_of",
    "is_regional",
    "merged",
    "mirror_name",
    "takes_over",
    "unmirrored_images",
    "value_at",
    "with_registry",
]


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return base merged with over, map by map; other values are replaced."""
    result = dict(base)
    for key, value in over.items():
        before = result.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            result[key] = merged(before, value)
        else:
            result[key] = value
    return result


_HEALTH: Final = "health-monitoring-agent"


def dependencies_of(spec: Environment) -> DependenciesPlan | None:
    """Return the chart with all its values; None if the file declares that the cluster has it.

    The region is set explicitly, because without nodes the chart can't find it and would use another region's registry.
    """
    chart = spec.cluster.dependencies
    if chart.installed or spec.cluster.existing:
        return None
    values: dict[str, Any] = {_HEALTH: {"region": spec.region}}
    if chart.is_kits:
        pin = dependencies_chart()
        if chart.image_registry is not None:
            values = merged(values, _mirror_values(spec, chart.image_registry))
        return DependenciesPlan(f"{CHARTS_FOLDER}/{pin.file}", pin.version, merged(values, chart.values))
    return DependenciesPlan(chart.chart or "", chart.version, merged(values, chart.values))


def alternatives_brought(plan: DependenciesPlan | None) -> tuple[Alternative, ...]:
    """Return the EKS add-ons that the chart installs instead, because of its values.

    This includes user-provided charts, whose values are those of the chart that they are derived from.
    """
    if plan is None:
        return ()
    return tuple(each for each in dependencies_chart().alternatives if value_at(plan.values, each.switch) is True)


def is_regional(source: str, region: str) -> bool:
    """Return whether an image is in ECR in the region, which a closed network reaches through its endpoints.

    Source: Amazon ECR user guide, "Amazon ECR interface VPC endpoints": no public repository. AWS PrivateLink guide,
    "Cross-region enabled services": an endpoint serves one region, and the network's serve the network's region.
    """
    return f".dkr.ecr.{region}." in source.partition("/")[0]


def with_registry(image: str) -> str:
    """Return an image's name, with Docker Hub as the default registry, as container runtimes do."""
    host, slash, _ = image.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"


def mirror_name(source: str, registry: str) -> str:
    """Return an image's name in a mirror: its own name, after the source registry.

    A copy's name can't have both a tag and a digest, so only the tag is kept.
    """
    name = source.partition("/")[2]
    tagged = name.partition("@")[0]
    return f"{registry.rstrip('/')}/{tagged if ':' in tagged else name}"


def chart_images(spec: Environment) -> list[ChartImage]:
    """Return the images in hpkit's chart that nodes of an environment can require."""
    cluster = spec.cluster
    groups = (*cluster.instance_groups, *cluster.restricted_instance_groups)
    types = [name for group in groups for name in group.types]
    return [each for each in dependencies_chart().images if _is_needed(each, types)]


def unmirrored_images(spec: Environment) -> tuple[ChartImage, ...]:
    """Return the images in hpkit's chart that nodes require and that no value redirects to a mirror."""
    return tuple(
        image
        for image in chart_images(spec)
        if not image.repository and not image.reference and not is_regional(image.source(spec.region), spec.region)
    )


def _is_needed(image: ChartImage, types: Iterable[str]) -> bool:
    """Return whether nodes with some instance types can require an image."""
    return not image.families or any(name.removeprefix("ml.").partition(".")[0] in image.families for name in types)


def _mirror_values(spec: Environment, registry: str) -> dict[str, Any]:
    """Return the values that make nodes pull from a mirror; a part without such a value that isn't required is off."""
    values: dict[str, Any] = {}
    needed = chart_images(spec)
    for image in dependencies_chart().images:
        name = mirror_name(image.source(spec.region), registry)
        if is_regional(image.source(spec.region), spec.region):
            continue
        if image.reference:
            values = merged(values, _nested(image.reference, name))
        elif image.repository:
            values = merged(values, _nested(image.repository, name.rpartition(":")[0]))
        elif image not in needed:
            values = merged(values, _nested(image.switch, value=False))
    return values


def value_at(values: Mapping[str, Any], path: str) -> object:
    """Return the value at a path, None if it doesn't exist."""
    value: object = values
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _nested(path: str, value: object) -> dict[str, Any]:
    """Return a value as nested mappings, by its path."""
    for step in reversed(path.split(".")):
        value = {step: value}
    return value if isinstance(value, dict) else {}


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
        names.add(CLOUDWATCH)
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


def charts_of(spec: Environment) -> tuple[PublishedChart, ...]:
    """Return the charts that the program installs by their names in the file: KEDA's, and those of operators."""
    keda = spec.autoscaling is not None and spec.autoscaling.keda is not None
    operators = (each for each in operator_charts() if each.name in spec.operators)
    return (*([keda_chart()] if keda else []), *operators)


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
