"""CLU, the dependencies chart and the images that nodes pull in a closed network."""

import json
from collections.abc import Iterator
from dataclasses import replace

from hpkit.catalog import DevicePlugin, dependencies_chart, find_instance_type
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.reading.document import Path
from hpkit.plan.dependencies import (
    chart_images,
    charts_of,
    is_regional,
    mirror_name,
    unmirrored_images,
    value_at,
    with_registry,
)
from hpkit.plan.lustre import folder_image
from hpkit.plan.registry import is_out_of_reach, region_of_registry
from hpkit.text.formatting import listing
from hpkit.text.spelling import near

__all__ = ["RULES"]

_CONTRACT = "hpkit configuration reference"
_ECR = "Amazon ECR user guide, interface VPC endpoints"


def _chart_is_pinned(context: Context) -> Iterator[Issue]:
    dependencies = context.spec.cluster.dependencies
    if dependencies.chart is None:
        return
    path: Path = (*context.path, "cluster", "dependencies", "chart")
    if not dependencies.is_in_repository:
        unverified = ", and the sha256 next to it isn't verified" if dependencies.sha256 else ""
        yield Issue(
            path,
            f"{dependencies.chart} comes from a registry, where a version can be overwritten{unverified}",
            f"Run `helm pull {dependencies.chart} --version {dependencies.version}`, commit the .tgz to the "
            "repository, and set "
            "`chart` and `sha256` for it.",
            policy="helm-charts-pinned",
        )
    elif dependencies.sha256 is None:
        yield Issue(
            path,
            f"the chart {dependencies.chart} has no sha256, so changes to it would be deployed unnoticed",
            f"Set `sha256: {'f' * 64}`. `hpkit validate` then prints the chart's hash to use instead.",
        )


def _chart_is_stated_whole(context: Context) -> Iterator[Issue]:
    dependencies = context.spec.cluster.dependencies
    path: Path = (*context.path, "cluster", "dependencies")
    of_own = {"chart": dependencies.chart, "version": dependencies.version, "sha256": dependencies.sha256}
    others = [key for key, value in of_own.items() if value is not None]
    if dependencies.installed:
        others += ["imageRegistry"] if dependencies.image_registry is not None else []
        others += ["values"] if dependencies.values else []
        if others:
            yield Issue(
                (*path, "installed"),
                f"`installed` means that the cluster already has the chart, but {listing(others)} applies to a chart "
                "that hpkit installs",
                "Remove `installed`, or remove the other keys.",
            )
    elif others and dependencies.chart is None:
        yield Issue(
            (*path, others[0]),
            f"{listing(others)} applies to your own chart, but no chart is set; hpkit's chart is already pinned",
            "Set `chart`, or remove the other keys.",
        )
    elif dependencies.chart is not None and dependencies.version is None:
        yield Issue(
            (*path, "chart"), f"the chart {dependencies.chart} has no version", "Set `version` to the chart's version."
        )


def _images_are_mirrored(context: Context) -> Iterator[Issue]:
    if context.spec.network.closed:
        for issue in (*_unreachable_images(context), *_warm_pool_images(context), *_folder_image(context)):
            yield replace(issue, other=(*context.path, "network", "closed"), other_name="`closed`")


def _warm_pool_images(context: Context) -> Iterator[Issue]:
    for pool, path in context.node_pools:
        warm = pool.spec.warm_pool
        if warm is not None and is_out_of_reach(warm.image, context.spec.region):
            yield Issue(
                (*path, "warmPool", "image"),
                f"the network is closed, but the placeholder pods of NodePool `{pool.spec.name}` pull {warm.image}",
                "Copy the image to an ECR repository of this account, and set `image` to the copy.",
            )


def _unreachable_images(context: Context) -> Iterator[Issue]:
    dependencies, region = context.spec.cluster.dependencies, context.spec.region
    for chart in charts_of(context.spec):
        place = ("operators",) if chart.name in context.spec.operators else ("autoscaling", chart.name)
        yield Issue(
            (*context.path, *place),
            f"the network is closed, but the images of {chart.name} come from {chart.images[0].partition('/')[0]}",
            f"Remove {chart.name}, and install its chart with images from your own registry.",
        )
    if dependencies.installed:
        return
    path: Path = (*context.path, "cluster", "dependencies")
    if dependencies.image_registry is None:
        sources = [each.source(region) for each in chart_images(context.spec)] if dependencies.is_kits else []
        hosts = sorted({name.partition("/")[0] for name in sources if not is_regional(name, region)})
        yield Issue(
            path,
            "the network is closed, but nodes would pull images of the dependencies chart from "
            f"{listing(hosts) if hosts else 'registries that the chart sets'}",
            f"Run `hpkit aws images --stack {context.plan.stack} --mirror`, then set the registry that they are in: "
            f"`dependencies: {{imageRegistry: ACCOUNT.dkr.ecr.{region}.amazonaws.com}}`.",
        )
        return
    elsewhere = region_of_registry(dependencies.image_registry)
    if elsewhere not in (None, region):
        yield Issue(
            (*path, "imageRegistry"),
            f"the network is closed, and its endpoint only reaches registries in {region}; "
            f"{dependencies.image_registry} "
            f"is in {elsewhere}",
            f"Run `hpkit aws images --stack {context.plan.stack} --mirror` for a registry in {region}, and set "
            "imageRegistry to it.",
        )
    if dependencies.is_kits:
        for image in unmirrored_images(context.spec):
            yield Issue(
                (*path, "imageRegistry"),
                f"nodes need {image.source(region)}, but the network doesn't reach it, and the chart has no value to "
                "change its registry",
                f"Keep a copy of the chart in the repository, use the mirrored image in its part {image.subchart}, "
                "and set `chart` to the copy.",
            )


def _values_of_parts(context: Context) -> Iterator[Issue]:
    wanted = context.spec.cluster.dependencies
    chart_values = dependencies_chart().values
    for key in wanted.values if wanted.is_kits else ():
        if key in chart_values:
            continue
        likely = near(key, chart_values)
        part_names = listing(sorted(chart_values), len(chart_values))
        yield Issue(
            (*context.path, "cluster", "dependencies", "values", key),
            f"`{key}` isn't a value of {dependencies_chart().name}, so Helm ignores it",
            f"Did you mean `{likely}`?" if likely else f"Remove it. The chart's parts are {part_names}.",
            None if likely else "warning",
        )


def _devices_of_types(context: Context) -> Iterator[Issue]:
    wanted = context.spec.cluster.dependencies
    if wanted.installed or not wanted.is_kits or context.spec.cluster.existing:
        return
    for device in dependencies_chart().devices:
        if value_at(wanted.values, device.switch) is not False:
            yield from _omitted_types(context, device)


def _omitted_types(context: Context, device: DevicePlugin) -> Iterator[Issue]:
    types = dict.fromkeys(name for _, group in context.groups for name in group.types)
    own = [name for name in types if (known := find_instance_type(name)) and known.accelerator_kind == device.kind]
    stated = json.dumps(value_at(context.spec.cluster.dependencies.values, device.affinity)) if device.affinity else ""
    # Helm replaces a list as a whole, so only types in the file's own affinity count.
    omitted = [name for name in own if (f'"{name}"' not in stated if '"ml.' in stated else name in device.omits)]
    if not omitted:
        return
    fix = (
        f"Keep a copy of the chart in the repository, add {listing(omitted)} to the affinity of its part "
        f"{device.subchart}, and set `chart` to the copy."
    )
    if device.affinity:
        expression = f"{{key: node.kubernetes.io/instance-type, operator: In, values: [{', '.join(own)}]}}"
        terms = f"nodeSelectorTerms: [{{matchExpressions: [{expression}]}}]"
        affinity = f"{{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{{terms}}}}}}}"
        fix = f"Set `dependencies: {{values: {{{device.subchart}: {{affinity: {affinity}}}}}}}`."
    yield Issue(
        (*context.path, "cluster", "instanceGroups"),
        f"the dependencies chart runs no {device.subchart} on {listing(omitted)}, so these nodes have no "
        f"{device.resource}, and jobs that request it wait",
        f"{fix} If something else provides the resource, set {device.switch} to false.",
    )


def _folder_image(context: Context) -> Iterator[Issue]:
    lustre = context.spec.storage.lustre if context.spec.storage else None
    image, region = folder_image(context.spec), context.spec.region
    if lustre is None or image is None or not is_out_of_reach(image, region):
        return
    # If the chart's images have no mirror yet, CLU016 requires one, and this image uses it too.
    if lustre.image is None and not context.spec.cluster.dependencies.installed:
        return
    copy = mirror_name(with_registry(image), f"ACCOUNT.dkr.ecr.{region}.amazonaws.com")
    yield Issue(
        (*context.path, "storage", "lustre", *(("image",) if lustre.image else ())),
        "the network is closed, but the Jobs that create the teams' folders pull their image from "
        f"{image.partition('@')[0]}",
        f"Run `hpkit aws images --stack {context.plan.stack} --mirror --account ACCOUNT`, then set `image: {copy}`.",
    )


RULES = (
    Rule(
        "CLU010", "error", "The dependencies chart is in the repository, and has a sha256.", _CONTRACT, _chart_is_pinned
    ),
    Rule(
        "CLU011",
        "error",
        "The file of a dependencies chart in the repository exists, and matches its sha256.",
        _CONTRACT,
        waivable=False,
    ),
    Rule("CLU016", "error", "In a closed network, nodes can pull all images.", _ECR, _images_are_mirrored),
    Rule(
        "CLU017",
        "error",
        "A dependencies chart is hpkit's, is already installed, or has a name and a version.",
        _CONTRACT,
        _chart_is_stated_whole,
        waivable=False,
    ),
    Rule(
        "CLU043",
        "error",
        "Values of the dependencies chart belong to one of its parts.",
        "SageMaker HyperPod CLI, Helm chart: Chart.yaml and values.yaml",
        _values_of_parts,
    ),
    Rule(
        "CLU052",
        "error",
        "The chart's device plugins run on all types with GPUs or Trainium.",
        "SageMaker HyperPod CLI, Helm chart: values.yaml and k8s-neuron-device-plugin.yaml",
        _devices_of_types,
    ),
)
