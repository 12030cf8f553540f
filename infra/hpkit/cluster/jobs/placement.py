"""What a job's pods need around them: labels of nodes, claims, shared memory, and nodes that stay.

Sources: SageMaker developer guide, labels of HyperPod nodes; Karpenter, "Disruption", pod-level controls; NVIDIA NCCL,
"Troubleshooting", shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hpkit.catalog import ACCELERATOR_RESOURCES, find_instance_type
from hpkit.cluster.jobs.kinds import WORKLOADS, Path, PodTemplate, Unit, parts
from hpkit.cluster.jobs.limits import Breach
from hpkit.cluster.jobs.pod_security import SHARED_MEMORY
from hpkit.cluster.jobs.resources import requests_of, types_in_queue, types_of
from hpkit.config.models.base import Model
from hpkit.plan.capacity import INSTANCE_TYPE_KEY
from hpkit.plan.lustre import CLAIM, LOCAL_CLAIM, STORAGE_CLASS, has_team_volumes
from hpkit.plan.model import GroupPlan, Plan, TeamPlan
from hpkit.plan.pods import mapping, mappings, may_go_to, selects, tolerates
from hpkit.text.formatting import listing, plural

if TYPE_CHECKING:
    from hpkit.cluster.jobs.server import Server

__all__ = [
    "NOT_DISRUPTED",
    "breaches_of_claims_and_nodes",
    "breaches_of_comfort",
    "breaches_of_spread",
    "is_by_karpenter",
    "untolerated",
]

# Pods with this annotation keep Karpenter from removing their node.
NOT_DISRUPTED: Final = "karpenter.sh/do-not-disrupt"
_FOR_EVER: Final = "its pods hold their quota and never start"
_SCHEDULER: Final = "default-scheduler"
# Without a running platform, nothing tells whether these exist; with one, the API server does.
_CLASSES: Final = {"runtimeClassName": "RuntimeClass", "priorityClassName": "PriorityClass"}
_HOST: Final = "kubernetes.io/hostname"
# Labels with which controllers name the job of a pod.
_NAMES_OF_JOBS: Final = (
    *("job-name", "batch.kubernetes.io/job-name", "training.kubeflow.org/job-name"),
    *("jobset.sigs.k8s.io/jobset-name", "ray.io/cluster"),
)
_GROUP: Final = "sagemaker.amazonaws.com/instance-group-name"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
# Labels of nodes whose values the file doesn't say.
_OTHER: Final = (
    *("kubernetes.io/hostname", "topology.k8s.aws/", "sagemaker.amazonaws.com/", "eks.amazonaws.com/"),
    *("karpenter.sh/", "karpenter.sagemaker.amazonaws.com/", "node.kubernetes.io/", "beta.kubernetes.io/"),
)


def breaches_of_claims_and_nodes(
    pods: PodTemplate, plan: Plan, team: TeamPlan | None, others: Sequence[Any], server: Server | None
) -> Iterator[Breach]:
    """Yield why pods would be admitted, but wait for a node or a claim without end; others: all documents."""
    spec, path = mapping(pods.template.get("spec")), (*pods.path, "spec")
    yield from _nodes(pods, path, plan, team, server)
    yield from _schedulers(spec, path, plan, team, server)
    if server is not None and team is not None:
        yield from _files(spec, path, team, others, server)
    for field, kind in _CLASSES.items() if server is None else ():
        if spec.get(field):
            yield Breach(
                (*path, field),
                f"{plan.stack} creates no {kind} {spec[field]}: unless an administrator does, no pod can be created",
                f"Remove {field}",
                "node",
                "warning",
            )
    storage = plan.spec.storage
    of_stack = {CLAIM: has_team_volumes(plan), LOCAL_CLAIM: bool(storage and storage.local_disk)}
    made = {
        mapping(each.get("metadata")).get("name"): mapping(each.get("spec"))
        for document in others
        if isinstance(document, Mapping)
        for _, each in parts(document)
        if each.get("kind") == "PersistentVolumeClaim"
    }
    for number, volume in enumerate(mappings(spec.get("volumes"))):
        name = mapping(volume.get("persistentVolumeClaim")).get("claimName")
        own = mapping(mapping(volume.get("ephemeral")).get("volumeClaimTemplate")).get("spec")
        if own is None and (not name or of_stack.get(name)):
            continue
        claim = made.get(name) if own is None else mapping(own)
        if claim is not None:
            words = f"the claim {name}" if own is None else f"the claim of the volume {volume.get('name')}"
            yield from _of_class(claim, words, (*path, "volumes", number), plan, team, server)
            continue
        exists = server.has_claim(team.namespace, str(name)) if server is not None and team is not None else None
        if exists:
            continue
        place: Path = (*path, "volumes", number, "persistentVolumeClaim", "claimName")
        known = exists is False or name in of_stack
        key = {CLAIM: "storage.lustre.teams", LOCAL_CLAIM: "storage.localDisk"}.get(str(name))
        yield Breach(
            place,
            f"{plan.stack} has no claim {name}, so {_FOR_EVER}"
            if known
            else f"no file here creates the claim {name}: unless it exists, {_FOR_EVER}",
            f"Set {key} in the organization file, or use another claim" if key else "Create the claim first",
            "claim",
            "error" if known else "warning",
        )


def _of_class(
    claim: Mapping[Any, Any], words: str, place: Path, plan: Plan, team: TeamPlan | None, server: Server | None
) -> Iterator[Breach]:
    """Yield that nothing provides the volume of a new claim."""
    wanted, message = claim.get("storageClassName"), ""
    fix = "Set storageClassName in the claim to that of an existing StorageClass"
    exists = None
    if wanted and wanted != STORAGE_CLASS:
        exists = None if server is None else server.has_class(str(wanted))
        message = f"the cluster has no StorageClass {wanted}, so {_FOR_EVER}"
        if exists is None:
            message = f"{plan.stack} creates no StorageClass {wanted}: unless an administrator does, {_FOR_EVER}"
    elif not {"storageClassName", "volumeName"} & claim.keys():
        exists = server.has_default_class(team.namespace) if server is not None and team is not None else None
        message = f"{words} has no storageClassName, and the cluster has no default StorageClass, so {_FOR_EVER}"
        if exists is None:
            message = (
                f"{words} has no storageClassName, and EKS has no default StorageClass: unless an administrator "
                f"chose one, {_FOR_EVER}"
            )
    if message and not exists:
        yield Breach(place, message, fix, "claim", "warning" if exists is None else "error")


def _schedulers(
    spec: Mapping[str, Any], path: Path, plan: Plan, team: TeamPlan | None, server: Server | None
) -> Iterator[Breach]:
    gates = [str(each.get("name")) for each in mappings(spec.get("schedulingGates"))]
    if gates:
        yield Breach(
            (*path, "schedulingGates"),
            f"nothing removes the scheduling gate {listing(gates)}, so {_FOR_EVER}",
            "Remove schedulingGates: Kueue adds and removes its own",
            "node",
        )
    scheduler = spec.get("schedulerName") or _SCHEDULER
    if scheduler == _SCHEDULER:
        return
    places = server.has_scheduler(team.namespace, str(scheduler)) if server is not None and team is not None else None
    if not places:
        yield Breach(
            (*path, "schedulerName"),
            f"{plan.stack} installs no scheduler {scheduler}: unless an administrator does, {_FOR_EVER}"
            if places is None
            else f"no pod has a node from the scheduler {scheduler}, and no Deployment runs it, so {_FOR_EVER}",
            "Remove schedulerName: Kueue queues the job, and Kubernetes' own scheduler places its pods",
            "node",
            "warning" if places is None else "error",
        )


def breaches_of_spread(
    unit: Unit, templates: Sequence[PodTemplate], plan: Plan, team: TeamPlan | None, server: Server | None
) -> Iterator[Breach]:
    """Yield taints, and rules that keep pods apart, but need labels or more places than nodes have."""
    name = mapping(unit.content.get("metadata")).get("name")
    for pods in templates:
        spec, path = mapping(pods.template.get("spec")), (*pods.path, "spec")
        # The inference operator may add tolerations.
        for taint in untolerated(pods, plan, team)[:1] if unit.kind != "InferenceEndpointConfig" else ():
            written = f"{taint['key']}{'=' if taint['value'] else ''}{taint['value'] or ''}:{taint['effect']}"
            yield Breach(
                path,
                f"each node for its pods has a taint that they don't tolerate, such as {written}, so {_FOR_EVER}",
                f"Add the toleration `{{key: {taint['key']}, operator: Exists}}`",
                "node",
            )
        for number, rule in enumerate(mappings(spec.get("topologySpreadConstraints"))):
            key = str(rule.get("topologyKey"))
            known = key == _HOST or any(key in labels for labels, _ in _open(pods, plan, team))
            if rule.get("whenUnsatisfiable") == "DoNotSchedule" and not known:
                exists = None if server is None else server.has_node(key)
                if exists is False:
                    place: Path = (*path, "topologySpreadConstraints", number)
                    yield Breach(place, f"no node has the label {key}, so {_FOR_EVER}", "Remove the rule", "node")
        rules = mapping(mapping(spec.get("affinity")).get("podAntiAffinity"))
        for rule in mappings(rules.get("requiredDuringSchedulingIgnoredDuringExecution")):
            key, selector = str(rule.get("topologyKey")), mapping(rule.get("labelSelector"))
            matched = mapping(selector.get("matchLabels"))
            of_job = {each: str(name) for each in _NAMES_OF_JOBS if name and matched.get(each) == name}
            # Without a selector, the rule matches no pod.
            apart = [
                each
                for each in templates
                if rule.get("labelSelector") is not None
                and not {"matchLabelKeys", "mismatchLabelKeys"} & rule.keys()
                and selects(selector, {**of_job, **mapping(mapping(each.template.get("metadata")).get("labels"))})
            ]
            nodes = [labels for each in apart for labels, _ in _open(each, plan, team)]
            places = len({labels.get(key) for labels in nodes} - {None}) if key != _HOST else _most_nodes(nodes, plan)
            count = sum(each.count for each in apart)
            if pods in apart and places and count > places:
                types = listing(sorted({labels[INSTANCE_TYPE_KEY] for labels in nodes}))
                yield Breach(
                    (*path, "affinity", "podAntiAffinity"),
                    f"each of its {count} pods needs another {key}, and the nodes of {types} in {plan.stack} have "
                    f"{places}, so {count - places} never start"
                    if key != _HOST
                    else f"each of its {count} pods needs a node of its own, and {plan.stack} has at most {places} of "
                    f"{types}, so {count - places} never start",
                    f"Use at most {plural(places, 'pod')}, or preferredDuringSchedulingIgnoredDuringExecution",
                    "node",
                )


def _most_nodes(nodes: Sequence[Mapping[str, str]], plan: Plan) -> int | None:
    """Return how many nodes the groups with these labels can have; None if nothing limits them."""
    total = 0
    for group in plan.groups:
        if group.spec.name in {labels[_GROUP] for labels in nodes}:
            for most in (
                [plan.capacity[each].maximum for each in group.spec.types]
                if group.autoscaled
                else [group.spec.instance_count]
            ):
                if most is None:
                    return None
                total += most
    return total


def _files(
    spec: Mapping[str, Any], path: Path, team: TeamPlan, others: Sequence[Any], server: Server
) -> Iterator[Breach]:
    """Yield ConfigMaps and Secrets that containers need, but that don't exist."""
    made = {
        (each.get("kind"), mapping(each.get("metadata")).get("name"))
        for document in others
        if isinstance(document, Mapping)
        for _, each in parts(document)
    }
    needed: dict[tuple[str, str], None] = {}
    for source in _sources(spec):
        for key, name in (("configMap", "name"), ("secret", "secretName"), ("secret", "name")):
            for kind in (key, f"{key}Ref", f"{key}KeyRef"):
                found = mapping(source.get(kind))
                if found.get(name) and found.get("optional") is not True:
                    needed[key[:1].upper() + key[1:], str(found[name])] = None
    for kind, name in needed:
        if (kind, name) not in made and server.has_file(team.namespace, kind, name) is False:
            yield Breach(
                path,
                f"the {kind} {name} doesn't exist, so its pods hold quota, and their containers don't start",
                f"Create the {kind} first, or set `optional: true`",
                "claim",
            )


def _sources(spec: Mapping[str, Any]) -> Iterator[Mapping[Any, Any]]:
    """Yield the parts of a pod's spec that can name a ConfigMap or a Secret."""
    for volume in mappings(spec.get("volumes")):
        yield volume
        yield from mappings(mapping(volume.get("projected")).get("sources"))
    for container in (*mappings(spec.get("initContainers")), *mappings(spec.get("containers"))):
        yield from mappings(container.get("envFrom"))
        yield from (mapping(each.get("valueFrom")) for each in mappings(container.get("env")))


def untolerated(pods: PodTemplate, plan: Plan, team: TeamPlan | None) -> list[dict[str, Any]]:
    """Return the taints that keep pods from a node, if some keep them from each; otherwise none."""
    tolerations, requested = mappings(mapping(pods.template.get("spec")).get("tolerations")), requests_of(pods, plan)
    kept = [
        [each for each in taints if not tolerates(tolerations, each, requested)]
        for _, taints in _open(pods, plan, team)
    ]
    return kept[0] if kept and all(kept) else []


def _open(pods: PodTemplate, plan: Plan, team: TeamPlan | None) -> list[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Return labels and taints of the nodes for pods: with the labels and accelerators, and of a type in the quota."""
    spec, requested, nodes = mapping(pods.template.get("spec")), requests_of(pods, plan), _nodes_of(plan)
    types = types_in_queue(team) if team else ()
    devices = {name for name in ACCELERATOR_RESOURCES.values() if requested.get(name)}
    keys = {key for labels, _ in nodes for key in labels}
    return [
        (labels, taints)
        for labels, taints in nodes
        for details in (find_instance_type(labels[INSTANCE_TYPE_KEY]),)
        if (not types or labels[INSTANCE_TYPE_KEY] in types)
        and (not devices or details is None or details.accelerator_resource in devices)
        and may_go_to(spec, labels, keys)
    ]


def _nodes(pods: PodTemplate, path: Path, plan: Plan, team: TeamPlan | None, server: Server | None) -> Iterator[Breach]:
    spec, known = mapping(pods.template.get("spec")), [labels for labels, _ in _nodes_of(plan)]
    # Kubernetes, pkg/kubelet/lifecycle/predicate.go, rejectPodAdmissionBasedOnOSField.
    if (system := mapping(spec.get("os")).get("name")) not in (None, "linux"):
        yield Breach(
            (*path, "os"), f"its pods need {system}, but all nodes run Linux, so none starts", "Remove os", "node"
        )
    keys = {key for labels in known for key in labels}
    types = types_in_queue(team) if team else ()
    usable = [labels for labels in known if not types or labels[INSTANCE_TYPE_KEY] in types] or known
    # Another check reports types that the stack doesn't have.
    usable = [labels for labels in usable if may_go_to(spec, labels, (INSTANCE_TYPE_KEY,))]
    for key, value in mapping(spec.get("nodeSelector")).items():
        if key in keys and usable and all(labels.get(key) != value for labels in usable):
            found = sorted({labels[key] for labels in usable if key in labels})
            yield Breach(
                (*path, "nodeSelector", key),
                f"no node for its pods has the label {key}: {value}, so {_FOR_EVER}",
                f"Use {' or '.join(found)}" if found else "Remove the selector",
                "node",
            )
            return
        if key not in keys and (not str(key).startswith(_OTHER) or (server is not None and not plan.node_pools)):
            exists = None if server is None else server.has_node(f"{key}={value}")
            if exists:
                continue
            yield Breach(
                (*path, "nodeSelector", key),
                f"no node has the label {key}: {value}, so {_FOR_EVER}"
                if exists is False
                else f"no group of {plan.stack} has the label {key}: unless an add-on sets it, {_FOR_EVER}",
                f"Remove the selector, or set the label on the group. To choose a type, use {INSTANCE_TYPE_KEY}",
                "node",
                "warning" if exists is None else "error",
            )
    if usable and not any(may_go_to(spec, labels, keys) for labels in usable):
        affinity = "affinity" if "affinity" in spec else "nodeSelector"
        yield Breach(
            (*path, affinity),
            f"no node for its pods has all labels that they require, so {_FOR_EVER}",
            f"Require labels of one group: {listing(sorted(map(_described, usable))[:3])}",
            "node",
        )


def _described(labels: Mapping[str, str]) -> str:
    return f"{labels[INSTANCE_TYPE_KEY]} in {labels[_ZONE]}"


def _nodes_of(plan: Plan) -> list[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Return labels and taints of nodes that the file describes, for each group, pool, type, and zone."""
    pools = [
        (pool, group) for pool in plan.node_pools for group in plan.groups if group.node_class == pool.spec.node_class
    ]
    with_pools = {group.spec.name for _, group in pools}
    added: list[tuple[GroupPlan, Sequence[str], Sequence[str], Mapping[str, str], Sequence[Model]]] = [
        (group, group.spec.types, group.zones, {}, ()) for group in plan.groups if group.spec.name not in with_pools
    ]
    for pool, group in pools:
        own = {"karpenter.sh/nodepool": pool.spec.name, **pool.spec.labels}
        added.append((group, pool.instance_types, pool.zones, own, pool.spec.taints))
    return [
        (
            {
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "arm64" if details is not None and details.architecture == "arm64" else "amd64",
                INSTANCE_TYPE_KEY: instance_type,
                _ZONE: zone,
                _REGION: plan.spec.region,
                _GROUP: group.spec.name,
                "sagemaker.amazonaws.com/compute-type": "hyperpod",
                **group.spec.labels,
                **labels,
            },
            [each.model_dump() for each in (*group.spec.taints, *taints)],
        )
        for group, types, zones, labels, taints in added
        for instance_type in types
        for details in (find_instance_type(instance_type),)
        for zone in zones
    ]


def is_by_karpenter(template: Mapping[str, Any], plan: Plan) -> bool:
    """Return whether Karpenter may remove nodes under the pods of a template, because they aren't full."""
    types = types_of(template, plan)
    return any(
        pool.spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
        and set(types) & set(pool.instance_types)
        for pool in plan.node_pools
    )


def breaches_of_comfort(pods: PodTemplate, kind: str, plan: Plan, requested: Mapping[str, int]) -> Iterator[Breach]:
    """Yield what makes running pods fail: little shared memory, and nodes that Karpenter removes.

    KubeRay adds shared memory itself (ray-operator/controllers/ray/common/pod.go), and an endpoint has no field for it.
    Pods that serve move.
    """
    spec = mapping(pods.template.get("spec"))
    containers = mappings(spec.get("containers"))
    mounted = {mount.get("mountPath") for each in containers for mount in mappings(each.get("volumeMounts"))}
    accelerators = sum(amount for name, amount in requested.items() if name in ACCELERATOR_RESOURCES.values())
    if accelerators > 1 and SHARED_MEMORY not in mounted and not kind.startswith(("Ray", "Inference")):
        yield Breach(
            (*pods.path, "spec", "containers"),
            f"its pods use {accelerators} accelerators, but have only 64 MiB of shared memory, which NCCL exceeds",
            f"Mount `emptyDir: {{medium: Memory}}` at {SHARED_MEMORY}; it counts as the pod's memory",
            "shared-memory",
            "warning",
        )
    annotations = mapping(mapping(pods.template.get("metadata")).get("annotations"))
    if (
        WORKLOADS.get(kind) != "inference"
        and str(annotations.get(NOT_DISRUPTED)) != "true"
        and is_by_karpenter(pods.template, plan)
    ):
        yield Breach(
            (*pods.path, "metadata"),
            "Karpenter may remove its node while it runs, to use fewer nodes",
            f'Add the annotation `{NOT_DISRUPTED}: "true"` into the template',
            "disruption",
            "warning",
        )
