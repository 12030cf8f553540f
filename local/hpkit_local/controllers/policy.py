"""The task governance add-on and the cluster policy as Kueue objects: topology, admission policy, priority classes.

It doesn't install Kueue, which is a service of the local cloud and always runs.

Compute quotas as Kueue objects: namespace, flavors, ClusterQueue, and LocalQueue of each team. The service documents
only a part of the mapping (SageMaker developer guide, "Policies"). Not documented:

- the cohort's name
- a lender reclaims regardless of the borrower's priority
- DontLend holds everything back
- the limit on borrowing is rounded down to whole units
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import yaml

from hpkit.catalog import (
    NETWORK_LAYERS,
    QUEUE_RESOURCES,
    Amounts,
    amounts_of_instances,
    amounts_of_part,
    find_instance_type,
    quantity_of,
)
from hpkit.errors import CatalogError
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.controllers.objects import KINDS, SHIPPED_ANNOTATION, Manifest, Manifests
from hpkit_local.kubernetes.control_plane import READY_ANNOTATION
from hpkit_local.kubernetes.kueue import INTEGRATIONS, OUTSIDE, SHIPPED_GATES
from hpkit_local.kubernetes.kueue_run import CONFIG_KEY, CONFIG_MAP, POD_LABELS, digest

__all__ = ["ADDON", "amounts", "governance"]

ADDON = "amazon-sagemaker-hyperpod-taskgovernance"
_ADMISSION = "hyperpod-task-governance-admission-policy"
_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
# Of the namespaces that the add-on's policy is for: a team whose quota is switched off is not among them.
_GOVERNED = {
    "sagemaker.amazonaws.com/activate-quota": "Enabled",
    "sagemaker.amazonaws.com/sagemaker-managed-queue": "true",
}


def amounts(resources: Iterable[Mapping[str, Any]]) -> dict[str, Amounts]:
    """Return the sum of the resources, by instance type."""
    totals: dict[str, Counter[str]] = {}
    for resource in resources:
        totals.setdefault(resource["InstanceType"], Counter()).update(_of_resource(resource))
    return {kind: dict(total) for kind, total in totals.items()}


def _of_resource(resource: Mapping[str, Any]) -> Amounts:
    if "Count" in resource:
        return amounts_of_instances(resource["InstanceType"], int(resource["Count"]))
    partition = resource.get("AcceleratorPartition")
    return amounts_of_part(
        resource["InstanceType"],
        vcpu=Fraction(str(resource.get("VCpu", 0))),
        memory_gib=Fraction(str(resource.get("MemoryInGiB", 0))),
        accelerators=int(resource.get("Accelerators") or 0),
        partition=None if partition is None else (partition["Type"], int(partition["Count"])),
    )


COHORT = "hyperpod-cohort"
TOPOLOGY = "hyperpod-default"
_IDLE = "hyperpod-ns-idle-resource-sharing-cq-1"
_TYPE = "node.kubernetes.io/instance-type"
Document = Mapping[str, Any]


def namespace_of(quota: Document) -> str:
    """Return the namespace of a quota's team."""
    return f"hyperpod-ns-{quota['ComputeQuotaTarget']['TeamName']}"


def queues(snapshot: Snapshot, *, fair: bool, idle: bool) -> Manifests:
    """Return the objects of all quotas; `idle` adds a queue that lends unallocated capacity."""
    manifests = Manifests()
    used: dict[str, set[str]] = {}
    reserved: dict[str, Amounts] = {}
    for quota_id, quota in snapshot.quotas.items():
        owner = f"quota/{quota_id}"
        try:
            mine = amounts(quota["ComputeQuotaConfig"]["ComputeQuotaResources"])
            limits = amounts(_sharing(quota).get("AbsoluteBorrowLimits", []))
        except CatalogError as error:
            manifests += Manifests(rejected={owner: str(error)})
            continue
        for instance_type in (*mine, *limits):
            used.setdefault(instance_type, set()).add(owner)
        for instance_type, reserved_amounts in mine.items():
            _add(reserved.setdefault(instance_type, {}), reserved_amounts)
        manifests += _team(quota, mine, limits, fair=fair)
    free = _free(snapshot, reserved) if idle else {}
    owners = frozenset(f"policy/{policy_id}" for policy_id in snapshot.policies)
    for instance_type in free:
        used.setdefault(instance_type, set())
    return (
        Manifests(tuple(_flavor(kind, frozenset(users)) for kind, users in used.items()))
        + manifests
        + _idle_queue(free, owners)
    )


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _sharing(quota: Document) -> Document:
    found: Document = quota["ComputeQuotaConfig"].get("ResourceSharingConfig", {})
    return found


def _flavor(instance_type: str, owners: frozenset[str]) -> Manifest:
    spec: dict[str, Any] = {"nodeLabels": {_TYPE: instance_type}}
    details = find_instance_type(instance_type)
    if details is not None and details.network_layers:
        spec["topologyName"] = TOPOLOGY
    return Manifest(KINDS["ResourceFlavor"], instance_type, {"spec": spec}, owners=owners)


def _team(quota: Document, mine: dict[str, Amounts], limits: dict[str, Amounts], *, fair: bool) -> Manifests:
    namespace = namespace_of(quota)
    owners = frozenset({f"quota/{quota['ComputeQuotaId']}"})
    active = quota.get("ActivationState", "Enabled") == "Enabled"
    labels = {
        "sagemaker.amazonaws.com/activate-quota": "Enabled" if active else "Disabled",
        "sagemaker.amazonaws.com/sagemaker-managed-queue": "true",
        # The HyperPod CLI finds the namespace's ClusterQueue by it (3.12.0, cli/commands/cluster.py).
        "sagemaker.amazonaws.com/quota-allocation-id": quota["ComputeQuotaTarget"]["TeamName"],
    }
    own = {"sagemaker.amazonaws.com/sagemaker-managed-queue": "true"}
    weight = {"fairSharing": {"weight": str(quota["ComputeQuotaTarget"].get("FairShareWeight", 0))}} if fair else {}
    spec = {
        "cohortName": COHORT,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": quota["ComputeQuotaConfig"].get("PreemptTeamTasks", "LowerPriority"),
        },
        "resourceGroups": _groups(quota, mine, limits),
        # What happens to the running tasks of a disabled quota isn't documented: here they stop.
        "stopPolicy": "None" if active else "HoldAndDrain",
        **weight,
    }
    queue = {"clusterQueue": f"{namespace}-clusterqueue"}
    return Manifests(
        (
            Manifest(KINDS["Namespace"], namespace, {}, labels=labels, owners=owners),
            Manifest(KINDS["ClusterQueue"], queue["clusterQueue"], {"spec": spec}, labels=own, owners=owners),
            Manifest(
                KINDS["LocalQueue"],
                f"{namespace}-localqueue",
                {"spec": queue},
                namespace=namespace,
                labels=own,
                owners=owners,
            ),
        )
    )


def _groups(quota: Document, mine: dict[str, Amounts], limits: dict[str, Amounts]) -> list[dict[str, Any]]:
    instance_types = dict.fromkeys([*mine, *limits])
    partitions = sorted({name for found in (*mine.values(), *limits.values()) for name in found} - set(QUEUE_RESOURCES))
    covered = [*QUEUE_RESOURCES, *partitions]
    flavors = [
        {
            "name": instance_type,
            "resources": [
                _resource(
                    quota,
                    name,
                    mine.get(instance_type, {}).get(name, 0),
                    limit=_limit(quota, limits, instance_type, name),
                )
                for name in covered
            ],
        }
        for instance_type in instance_types
    ]
    return [{"coveredResources": covered, "flavors": flavors}] if flavors else []


def _limit(quota: Document, limits: dict[str, Amounts], instance_type: str, resource: str) -> int | None:
    """Return the absolute limit on borrowing of a type; None if the type has no limit."""
    is_absolute = "AbsoluteBorrowLimits" in _sharing(quota)
    return limits[instance_type].get(resource, 0) if is_absolute and instance_type in limits else None


def _resource(quota: Document, name: str, nominal: int, *, limit: int | None) -> dict[str, str]:
    sharing = _sharing(quota)
    strategy = sharing.get("Strategy", "LendAndBorrow")
    borrowing = 0
    if strategy == "LendAndBorrow":
        borrowing = nominal * int(sharing.get("BorrowLimit", 0)) // 100 if limit is None else limit
    resource = {
        "name": name,
        "nominalQuota": quantity_of(name, nominal),
        "borrowingLimit": quantity_of(name, borrowing),
    }
    return {**resource, "lendingLimit": "0"} if strategy == "DontLend" else resource


def _free(snapshot: Snapshot, reserved: dict[str, Amounts]) -> dict[str, Amounts]:
    """Return the resources of running nodes beyond all quotas."""
    running: dict[str, int] = {}
    for details in (node for found in snapshot.nodes.values() for node in found):
        if details["InstanceStatus"]["Status"] == "Running":
            running[details["InstanceType"]] = running.get(details["InstanceType"], 0) + 1
    free: dict[str, Amounts] = {}
    for instance_type, count in running.items():
        try:
            amounts = amounts_of_instances(instance_type, count)
        except CatalogError:
            continue
        free[instance_type] = {
            name: max(0, amount - reserved.get(instance_type, {}).get(name, 0)) for name, amount in amounts.items()
        }
    return free


def _idle_queue(free: dict[str, Amounts], owners: frozenset[str]) -> Manifests:
    if not free:
        return Manifests()
    flavors = [
        {
            "name": instance_type,
            "resources": [
                {"name": name, "nominalQuota": quantity_of(name, amounts.get(name, 0)), "borrowingLimit": "0"}
                for name in QUEUE_RESOURCES
            ],
        }
        for instance_type, amounts in free.items()
    ]
    spec = {
        "cohortName": COHORT,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "none-submits-here"}},
        "resourceGroups": [{"coveredResources": list(QUEUE_RESOURCES), "flavors": flavors}],
        "preemption": {"reclaimWithinCohort": "Any"},
    }
    return Manifests((Manifest(KINDS["ClusterQueue"], _IDLE, {"spec": spec}, owners=owners),))


def governance(snapshot: Snapshot) -> Manifests:
    """Return the objects of add-on, policy and quotas."""
    addons = [key for key in snapshot.addons if key.rpartition("|")[2] == ADDON]
    installed = Manifests()
    if addons:
        owners = frozenset(f"addon/{key}" for key in addons)
        policies = frozenset(f"policy/{key}" for key in snapshot.policies)
        installed = Manifests(
            (*_installed(owners), _deployment(owners), _settings(owners | policies, fair=is_fair(snapshot)))
        )
    sharing = any(
        each["SchedulerConfig"].get("IdleResourceSharing") == "Enabled" for each in snapshot.policies.values()
    )
    governed = queues(snapshot, fair=is_fair(snapshot), idle=sharing)
    # Kueue removes a topology only when no flavor uses it, so it can outlive the add-on.
    needed = addons or any("topologyName" in manifest.content.get("spec", {}) for manifest in governed.items)
    topology = Manifests((_topology(),)) if needed else Manifests()
    return topology + installed + _classes(snapshot) + governed


def is_fair(snapshot: Snapshot) -> bool:
    """Return whether idle compute is shared by weight; without a policy it is, the API's default."""
    return all(each["SchedulerConfig"].get("FairShare", "Enabled") == "Enabled" for each in snapshot.policies.values())


def _classes(snapshot: Snapshot) -> Manifests:
    items = []
    for policy_id, policy in snapshot.policies.items():
        owners = frozenset({f"policy/{policy_id}"})
        for each in policy["SchedulerConfig"].get("PriorityClasses", []):
            content = {"value": each["Weight"], "description": f"Priority class {each['Name']} of the cluster policy"}
            items.append(Manifest(KINDS["WorkloadPriorityClass"], f"{each['Name']}-priority", content, owners=owners))
    return Manifests(tuple(items))


def _topology() -> Manifest:
    levels = [{"nodeLabel": label} for label in (*NETWORK_LAYERS, "kubernetes.io/hostname")]
    return Manifest(KINDS["Topology"], TOPOLOGY, {"spec": {"levels": levels}})


def _installed(owners: frozenset[str]) -> tuple[Manifest, ...]:
    return (
        Manifest(KINDS["ValidatingAdmissionPolicy"], _ADMISSION, {"spec": _admission()}, owners=owners),
        Manifest(
            KINDS["ValidatingAdmissionPolicyBinding"],
            f"{_ADMISSION}-binding",
            {
                "spec": {
                    "policyName": _ADMISSION,
                    "validationActions": ["Deny"],
                    "matchResources": {"namespaceSelector": {"matchLabels": _GOVERNED}},
                }
            },
            owners=owners,
        ),
    )


def _deployment(owners: frozenset[str]) -> Manifest:
    """Return the add-on's Deployment, whose pod represents the Kueue that runs next to the API server.

    The pod is ready when that Kueue is, with the settings in the cluster: see `Reconciler`.
    """
    namespace, _, _ = CONFIG_MAP.split("/")[-3:]
    pod = {
        "metadata": {"labels": POD_LABELS, "annotations": {READY_ANNOTATION: "false"}},
        "spec": {"containers": [{"name": "manager", "image": "kueue"}]},
    }
    content = {"spec": {"replicas": 1, "selector": {"matchLabels": POD_LABELS}, "template": pod}}
    return Manifest(
        KINDS["Deployment"], "kueue-controller-manager", content, namespace=namespace, labels=POD_LABELS, owners=owners
    )


def _settings(owners: frozenset[str], *, fair: bool) -> Manifest:
    """Return the configuration that the add-on ships, which `hpkit_local.kubernetes.kueue_run` follows.

    Source: SageMaker developer guide, "Set up for HyperPod task governance". It's written again when it changes; until
    then it can be edited, as on AWS. An annotation records the written text, so that a restart writes nothing.
    """
    config: dict[str, Any] = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "manageJobsWithoutQueueName": False,
        "managedJobsNamespaceSelector": OUTSIDE,
        "integrations": INTEGRATIONS,
        "featureGates": SHIPPED_GATES,
    }
    if fair:
        config["fairSharing"] = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    text = yaml.safe_dump(config, sort_keys=False)
    namespace, _, name = CONFIG_MAP.split("/")[-3:]
    return Manifest(
        KINDS["ConfigMap"],
        name,
        {"data": {CONFIG_KEY: text}},
        namespace=namespace,
        annotations={SHIPPED_ANNOTATION: digest(text)},
        owners=owners,
    )


def _admission() -> dict[str, Any]:
    """Return the add-on's policy: objects in a team's namespace must have a queue, including pods of a controller.

    The kinds, the message, and the namespaces' labels were seen on AWS, and aren't documented. Only the StatefulSets of
    a HyperPodPyTorchJob are exempt, and with them the pods of any StatefulSet, whether or not a HyperPodPyTorchJob
    exists. A pod of a Job or a RayCluster needs the label in its template. That the policy covers Jobs is an assumption
    from Kueue's sample of such a policy, which has the same message and accepts the Jobs of a JobSet.
    """
    rules = [
        ("", "v1", "pods"),
        ("apps", "v1", "deployments"),
        ("apps", "v1", "statefulsets"),
        ("batch", "v1", "jobs"),
        ("ray.io", "v1", "rayclusters"),
    ]
    stateful = _owned("StatefulSet", by="HyperPodPyTorchJob", version="sagemaker.amazonaws.com/v1")
    pods = _owned("Pod", by="StatefulSet", version="apps/v1")
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [group],
                    "apiVersions": [version],
                    "resources": [plural],
                    "operations": ["CREATE", "UPDATE"],
                }
                for group, version, plural in rules
            ]
        },
        "matchConditions": [{"name": "exclude-hpto-owned", "expression": f"!({stateful}) && !({pods})"}],
        "validations": [
            {
                "expression": f"object.metadata.?labels[?'{_QUEUE_LABEL}'].orValue('') != ''",
                "message": f"The label '{_QUEUE_LABEL}' is either missing or does not have a value set.",
            }
        ],
    }


def _owned(kind: str, *, by: str, version: str) -> str:
    owners = "object.metadata.?ownerReferences.orValue([])"
    return f"object.kind == '{kind}' && {owners}.exists(each, each.kind == '{by}' && each.apiVersion == '{version}')"
