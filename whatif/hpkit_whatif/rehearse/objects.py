"""The objects in a cluster, compared field by field with the simulator's model of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hpkit.plan.model import Plan
from hpkit_whatif.admission import ClusterQueue, FlavorQuotas, Model, per_unit

__all__ = ["object_differences"]

Document = Mapping[str, Any]
Quantity = Callable[[str], float]
_TYPE = "node.kubernetes.io/instance-type"


def object_differences(plan: Plan, model: Model, objects: Iterable[Document], *, quantity: Quantity) -> list[str]:
    """Return where ClusterQueues, their cohorts, ResourceFlavors or WorkloadPriorityClasses are not as in the model.

    objects: as the API server has them. quantity: reads an amount such as `192Gi`.
    """
    objects_by_kind: dict[str, dict[str, Document]] = {}
    for document in objects:
        objects_by_kind.setdefault(document["kind"], {})[document["metadata"]["name"]] = document
    queues = {queue.name: _of_model(queue) for queue in model.queues}
    cluster_queues = {
        name: _of_object(document["spec"], quantity)
        for name, document in objects_by_kind.get("ClusterQueue", {}).items()
    }
    flavor_names = sorted(
        {flavor.name for queue in model.queues for group in queue.resource_groups for flavor in group.flavors}
    )
    classes = {document.name: document.weight for document in plan.policy.priority_classes} if plan.policy else {}
    return [
        *_differences("ClusterQueue", cluster_queues, queues),
        *_differences(
            "ResourceFlavor",
            {
                name: document["spec"].get("nodeLabels", {})
                for name, document in objects_by_kind.get("ResourceFlavor", {}).items()
            },
            {kind: {_TYPE: kind} for kind in flavor_names},
        ),
        *_differences(
            "WorkloadPriorityClass",
            {
                name: {"value": document["value"]}
                for name, document in objects_by_kind.get("WorkloadPriorityClass", {}).items()
            },
            {f"{name}-priority": {"value": weight} for name, weight in classes.items()},
        ),
    ]


def _differences(object_kind: str, actual: Mapping[str, Document], expected: Mapping[str, Document]) -> list[str]:
    lines = []
    for name in sorted(actual.keys() | expected.keys()):
        if name not in actual or name not in expected:
            lines.append(f"{object_kind} {name}: {'not in the cluster' if name in expected else 'not in the plan'}")
            continue
        existing, simulated = actual[name], expected[name]
        lines += [
            f"{object_kind} {name}: {field} is {existing.get(field)}, and {simulated.get(field)} in the simulator"
            for field in sorted(existing.keys() | simulated.keys())
            if existing.get(field) != simulated.get(field)
        ]
    return lines


def _of_model(queue: ClusterQueue) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "cohort": queue.cohort,
        "stopPolicy": "None" if queue.active else "HoldAndDrain",
        "queueingStrategy": queue.queueing_strategy,
        "fairSharing.weight": queue.fair_weight,
        "preemption.withinClusterQueue": queue.preemption.within_cluster_queue,
        "preemption.reclaimWithinCohort": queue.preemption.reclaim_within_cohort,
        "preemption.borrowWithinCohort": _policy(queue),
        "flavorFungibility.whenCanBorrow": queue.fungibility.when_can_borrow,
        "flavorFungibility.whenCanPreempt": queue.fungibility.when_can_preempt,
    }
    for number, group in enumerate(queue.resource_groups):
        fields[f"resourceGroups[{number}].coveredResources"] = list(group.covered_resources)
        fields[f"resourceGroups[{number}].flavors"] = [flavor.name for flavor in group.flavors]
        for flavor in group.flavors:
            fields |= _quotas(flavor)
    return fields


def _policy(queue: ClusterQueue) -> str:
    borrow = queue.preemption.borrow_within_cohort
    return "Never" if borrow is None else borrow.policy


def _quotas(flavor: FlavorQuotas) -> dict[str, Any]:
    return {
        f"{flavor.name} {resource}": (quota.nominal, quota.borrowing_limit, quota.lending_limit)
        for resource, quota in flavor.resources.items()
    }


def _of_object(spec: Document, quantity: Quantity) -> dict[str, Any]:
    preemption, fungibility = spec.get("preemption", {}), spec.get("flavorFungibility", {})
    fields: dict[str, Any] = {
        "cohort": spec.get("cohortName"),
        "stopPolicy": spec.get("stopPolicy", "None"),
        "queueingStrategy": spec.get("queueingStrategy", "BestEffortFIFO"),
        "fairSharing.weight": quantity(str(spec.get("fairSharing", {}).get("weight", "1"))),
        "preemption.withinClusterQueue": preemption.get("withinClusterQueue", "Never"),
        "preemption.reclaimWithinCohort": preemption.get("reclaimWithinCohort", "Never"),
        "preemption.borrowWithinCohort": preemption.get("borrowWithinCohort", {}).get("policy", "Never"),
        "flavorFungibility.whenCanBorrow": _of_this_api(fungibility.get("whenCanBorrow", "MayStopSearch")),
        "flavorFungibility.whenCanPreempt": _of_this_api(fungibility.get("whenCanPreempt", "TryNextFlavor")),
    }
    for number, group in enumerate(spec.get("resourceGroups", [])):
        fields[f"resourceGroups[{number}].coveredResources"] = list(group["coveredResources"])
        fields[f"resourceGroups[{number}].flavors"] = [flavor["name"] for flavor in group["flavors"]]
        for flavor in group["flavors"]:
            for resource in flavor["resources"]:
                amounts = (resource.get(name) for name in ("nominalQuota", "borrowingLimit", "lendingLimit"))
                fields[f"{flavor['name']} {resource['name']}"] = tuple(
                    None if text is None else round(quantity(str(text)) * per_unit(resource["name"]))
                    for text in amounts
                )
    return fields


def _of_this_api(value: str) -> str:
    """Return a value by its current name; older objects use Borrow and Preempt."""
    return {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}.get(value, value)
