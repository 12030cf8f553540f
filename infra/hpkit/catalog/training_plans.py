"""Which training plans can supply an instance group.

Sources:
- SageMaker developer guide, "View training plan details": the statuses, and from which one on a plan can be used;
  "Reserve training plans for your training jobs or HyperPod clusters": a plan is for one target resource.
- SageMaker API reference, DescribeTrainingPlan and ReservedCapacitySummary.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

__all__ = ["ends_soon", "reserved_types", "training_plan_dates", "training_plan_problem"]

_TARGET: Final = "hyperpod-cluster"
_ENDED: Final = ("Expired", "Failed")
_SOON: Final = timedelta(days=7)


def training_plan_problem(
    document: Mapping[str, Any],
    *,
    instance_types: Collection[str],
    count: int,
    other_groups: Iterable[tuple[Collection[str], int]] = (),
    zones: Collection[str] = (),
) -> str | None:
    """Return why a plan can't supply a group, None if it can.

    document: the response of DescribeTrainingPlan. instance_types: the group's types. count: instances that the group
    needs in addition to existing ones. other_groups: the same two for other groups that use the plan. zones:
    availability zones of the group; empty if they are unknown.
    """
    status, dates = document["Status"], training_plan_dates(document)
    if status == "Expired":
        return f"expired ({dates})"
    if status == "Failed":
        return f"wasn't purchased: {document.get('StatusMessage') or 'AWS gives no reason'}"
    if status == "Pending":
        return "isn't paid yet: its status is Pending, and groups can use it from Scheduled on"
    targets = document.get("TargetResources") or [_TARGET]
    if _TARGET not in targets:
        return f"is for {', '.join(targets)}, and a plan can't be used for another target resource"
    other_groups = list(other_groups)
    types = reserved_types(document)
    if types and not types.intersection(instance_types):
        return f"reserves {', '.join(sorted(types))}, not {' or '.join(instance_types)}"
    reserved = [
        summary
        for summary in document.get("ReservedCapacitySummaries", ())
        if summary["Status"] not in _ENDED and summary["InstanceType"] in instance_types
    ]
    places = {each["AvailabilityZone"] for each in reserved if each.get("AvailabilityZone")}
    if places and zones and not places.intersection(zones):
        return f"reserves capacity in {', '.join(sorted(places))}, and the group is in {', '.join(sorted(zones))}"
    needed = count + sum(number for _, number in other_groups)
    free = document.get("AvailableInstanceCount")
    if free is not None and status == "Active" and free < needed:
        return f"has {free} of {document.get('TotalInstanceCount', free)} instances available, and {needed} are needed"
    total = document.get("TotalInstanceCount")
    if total is not None and total < needed:
        return f"reserves {total} instances, and {needed} are needed"
    # Blocks of one type may follow each other in time: their sum is the most that can exist at once.
    total = sum(each["TotalInstanceCount"] for each in reserved)
    needed = count + sum(number for others, number in other_groups if set(others) <= set(instance_types))
    if reserved and total < needed:
        return f"reserves {total} × {' or '.join(instance_types)}, and {needed} are needed"
    return None


def ends_soon(document: Mapping[str, Any], now: datetime) -> str:
    """Return when a plan ends as text, if that is within a week; otherwise ""."""
    end = document.get("EndTime")
    return f"{_moment(end)} UTC" if end is not None and end - now < _SOON else ""


def reserved_types(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the instance types of a plan's reserved capacity; empty if AWS doesn't list it."""
    return frozenset(each["InstanceType"] for each in document.get("ReservedCapacitySummaries", ()))


def training_plan_dates(document: Mapping[str, Any]) -> str:
    """Return the start and end of a plan or of an offering as text, in UTC."""
    start, end = (_moment(document.get(key)) for key in ("StartTime", "EndTime"))
    return f"{start} to {end} UTC"


def _moment(value: datetime | None) -> str:
    return "an unknown time" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"
