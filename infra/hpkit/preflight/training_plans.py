"""Training plans of instance groups: whether they can supply the groups, and which ones AWS offers."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from hpkit.catalog import find_instance_type
from hpkit.catalog.training_plans import ends_soon, training_plan_dates, training_plan_problem
from hpkit.clients.calls import ApiCall, FailedCall, Responses
from hpkit.plan.model import GroupPlan, Plan, RestrictedGroupPlan
from hpkit.preflight.calls import training_plan, zone_name
from hpkit.preflight.model import CheckResult, call_failed, missing, ok, unknown
from hpkit.preflight.usage import without_running
from hpkit.text.formatting import listing

__all__ = ["Offering", "check_training_plans", "offering_calls", "offerings_of"]

_AREA: Final = "capacity"


@dataclass(frozen=True, slots=True)
class Offering:
    """A training plan that AWS sells, for one group; if AWS sells none, `why` is set instead of the id.

    count: instances; dates: start and end in UTC; price: the upfront fee with its currency.
    """

    group: str
    instance_type: str
    count: int
    id: str = ""
    zones: tuple[str, ...] = ()
    dates: str = ""
    price: str = ""
    why: str = ""


def check_training_plans(plan: Plan, responses: Responses, *, now: datetime | None = None) -> Iterator[CheckResult]:
    """Check the training plan of each group that uses one; groups that share a plan share its instances."""
    now = now or datetime.now(tz=UTC)
    other_groups: defaultdict[str, list[tuple[Collection[str], int]]] = defaultdict(list)
    for group in without_running(plan, responses).own_groups:
        arn = group.spec.training_plan_arn
        if arn is not None:
            yield _check(plan, responses, group, arn, other_groups=other_groups[arn], now=now)
            other_groups[arn].append((group.spec.types, group.spec.instance_count))


def offering_calls(plan: Plan) -> dict[str, ApiCall]:
    """Return the search for offerings of each instance group that has accelerators, by the group's name."""
    return {
        group.spec.name: ApiCall(
            "sagemaker",
            "SearchTrainingPlanOfferings",
            {
                "InstanceType": group.spec.types[0],
                "InstanceCount": max(group.spec.instance_count, 1),
                "TargetResources": ["hyperpod-cluster"],
            },
        )
        for group in plan.own_groups
        if not group.spec.is_spot and group.spec.types and _is_accelerated(group.spec.types[0])
    }


def offerings_of(calls: dict[str, ApiCall], responses: Responses) -> tuple[Offering, ...]:
    """Return AWS's offerings for each group, or why there are none."""
    return tuple(offering for name, call in calls.items() for offering in _offered(name, call, responses.of(call)))


def _offered(name: str, call: ApiCall, response: Any) -> Iterator[Offering]:
    instance_type, count = call.params["InstanceType"], call.params["InstanceCount"]
    if isinstance(response, FailedCall):
        yield Offering(name, instance_type, count, why=f"{response.code}: {response.message}")
        return
    if not response["TrainingPlanOfferings"]:
        yield Offering(name, instance_type, count, why="AWS offers no plan of this size at present")
    for offering in response["TrainingPlanOfferings"]:
        reserved = offering.get("ReservedCapacityOfferings", [])
        moments = {
            "StartTime": min((each["StartTime"] for each in reserved if "StartTime" in each), default=None),
            "EndTime": max((each["EndTime"] for each in reserved if "EndTime" in each), default=None),
        }
        yield Offering(
            name,
            instance_type,
            reserved[0]["InstanceCount"] if len(reserved) == 1 else count,
            id=offering["TrainingPlanOfferingId"],
            zones=tuple(sorted({each["AvailabilityZone"] for each in reserved if "AvailabilityZone" in each})),
            dates=training_plan_dates(moments),
            price=f"{offering['UpfrontFee']} {offering.get('CurrencyCode', '')}".strip()
            if "UpfrontFee" in offering
            else "unknown",
        )


def _is_accelerated(name: str) -> bool:
    instance_type = find_instance_type(name)
    return instance_type is not None and bool(instance_type.accelerators)


def _check(
    plan: Plan,
    responses: Responses,
    group: GroupPlan | RestrictedGroupPlan,
    arn: str,
    *,
    other_groups: Iterable[tuple[Collection[str], int]],
    now: datetime,
) -> CheckResult:
    """Check that a training plan has the instances of a group, in addition to those of other groups, and lasts."""
    name, types, count = arn.rpartition("/")[2], group.spec.types, group.spec.instance_count
    subject = f"training plan {name} of {group.spec.name}"
    needed = f"{count} × {' or '.join(types)}" + (f" in {listing(list(group.zones))}" if group.zones else "")
    document = responses.of(training_plan(arn))
    if isinstance(document, FailedCall):
        if document.is_absence:
            fix = "Set `trainingPlanArn` to the ARN of a plan of this account and region, or remove it"
            return missing(_AREA, subject, found="missing", needed=needed, fix=fix)
        return call_failed(_AREA, subject, document, needed=needed)
    status = f"{document['Status']}, {training_plan_dates(document)}"
    zones = [zone_name(responses, zone) for zone in group.zones]
    problem = training_plan_problem(document, instance_types=types, count=count, other_groups=other_groups, zones=zones)
    if problem is not None:
        fix = f"Plan {name} {problem}. Use another plan, or change the group"
        command = f"hpkit aws preflight --stack {plan.stack} --offerings"
        return missing(_AREA, subject, found=status, needed=needed, fix=fix, command=command)
    if document["Status"] == "Scheduled":
        start = training_plan_dates(document).partition(" to ")[0]
        why = f"The plan starts at {start} UTC, and no nodes are created before"
        fix = "Deploy at that time, or expect no nodes in the group until then"
        return unknown(_AREA, subject, why=why, fix=fix, found=status, needed=needed)
    if end := ends_soon(document, now):
        why = f"The plan ends at {end}, and the group then has no nodes"
        fix = "Let jobs save and end before, or set `trainingPlanArn` to a plan that lasts longer (`--offerings`)"
        return unknown(_AREA, subject, why=why, fix=fix, found=status, needed=needed)
    return ok(_AREA, subject, found=status, needed=needed)
