"""Training plans: SearchTrainingPlanOfferings, CreateTrainingPlan and DescribeTrainingPlan.

A plan is sold from the next 11:30 UTC on (SageMaker developer guide, "Search for training plan offerings": reserved
capacity starts and ends at 11:30 AM UTC), in one zone. Its status follows the clock.

The account's earlier purchases aren't known here: a plan that nobody bought on this endpoint is Active, and its
capacity isn't listed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hpkit.catalog.prices import find_price
from hpkit.catalog.training_plans import training_plan_problem
from hpkit_local.aws.api import operation
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.sagemaker.records import moment, nodes_of
from hpkit_local.aws.services.sagemaker.rules import reject

__all__ = ["check_training_plans"]

_DEFAULT_HOURS = 7 * 24
_TARGET = "hyperpod-cluster"


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_SearchTrainingPlanOfferings.html
@operation("sagemaker", "SearchTrainingPlanOfferings")
def search_training_plan_offerings(ctx: Context, params: Record) -> Record:
    """Offer the request in each of the region's first two zones, from the next start on."""
    if "InstanceType" not in params or "InstanceCount" not in params:
        raise reject("The local AWS endpoint offers instances: InstanceType and InstanceCount must be given")
    hours = params.get("DurationHours", _DEFAULT_HOURS)
    start = _next_start(max(ctx.now, moment(params.get("StartTimeAfter", 0))))
    end = start + hours * 3600.0
    if "EndTimeBefore" in params and end > moment(params["EndTimeBefore"]):
        return {"TrainingPlanOfferings": []}
    price = find_price(params["InstanceType"], ctx.region)
    fee = None if price is None else str(price.hourly * hours * params["InstanceCount"])
    offers = []
    for zone in (f"{ctx.region}a", f"{ctx.region}b"):
        offer = {
            "type": params["InstanceType"],
            "count": params["InstanceCount"],
            "zone": zone,
            "start": start,
            "end": end,
            "fee": fee,
            "targets": params.get("TargetResources", [_TARGET]),
        }
        offer_id = f"tpo-{ctx.token(16)}"
        ctx.table("offerings")[offer_id] = offer
        offers.append(
            {
                "TrainingPlanOfferingId": offer_id,
                **_sold(offer),
                "ReservedCapacityOfferings": [
                    {
                        "InstanceType": offer["type"],
                        "InstanceCount": offer["count"],
                        "AvailabilityZone": zone,
                        **_span(offer),
                    }
                ],
            }
        )
    return {"TrainingPlanOfferings": offers}


# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingPlan.html
@operation("sagemaker", "CreateTrainingPlan")
def create_training_plan(ctx: Context, params: Record) -> Record:
    """Buy an offering; it's paid immediately."""
    name = params["TrainingPlanName"]
    if name in ctx.table("training_plans"):
        raise ServiceError("ResourceInUse", f"Training plan {name} already exists")
    offer = ctx.table("offerings").get(params["TrainingPlanOfferingId"])
    if offer is None:
        raise ServiceError("ResourceNotFound", f"Offering {params['TrainingPlanOfferingId']} does not exist")
    arn = ctx.arn("sagemaker", f"training-plan/{name}")
    capacity = ctx.arn("sagemaker", f"reserved-capacity/{ctx.token(12)}")
    ctx.table("training_plans")[name] = {**offer, "name": name, "arn": arn, "capacity": capacity}
    return {"TrainingPlanArn": arn}


@operation("sagemaker", "DescribeTrainingPlan")
def describe_training_plan(ctx: Context, params: Record) -> Record:
    """Return a plan by name or ARN."""
    name = params["TrainingPlanName"].rpartition("/")[2]
    plan = ctx.table("training_plans").get(name)
    if plan is None:
        return {
            "TrainingPlanArn": ctx.arn("sagemaker", f"training-plan/{name}"),
            "TrainingPlanName": name,
            "Status": "Active",
        }
    return _described(ctx, plan)


# Inferred from: https://docs.aws.amazon.com/sagemaker/latest/dg/reserve-capacity-with-training-plans.html
def check_training_plans(ctx: Context, before: Mapping[str, Record], groups: Iterable[Record]) -> None:
    """Reject groups that take instances of a plan that was bought here and doesn't have them.

    before: the settings of existing groups by name; groups: the request's groups.
    """
    other_groups: defaultdict[str, list[tuple[list[str], int]]] = defaultdict(list)
    for group in groups:
        plan = ctx.table("training_plans").get(group.get("TrainingPlanArn", "").rpartition("/")[2])
        former = before.get(group["InstanceGroupName"], {})
        same = former.get("TrainingPlanArn") == group.get("TrainingPlanArn")
        count = group["InstanceCount"] - (former.get("InstanceCount", 0) if same else 0)
        if plan is not None and count > 0:
            types = (
                [group["InstanceType"]] if "InstanceType" in group else group["InstanceRequirements"]["InstanceTypes"]
            )
            document = _as_answered(_described(ctx, plan))
            problem = training_plan_problem(
                document, instance_types=types, count=count, other_groups=other_groups[plan["arn"]]
            )
            if problem:
                raise reject(f"Instance group '{group['InstanceGroupName']}': training plan {plan['arn']} {problem}")
            other_groups[plan["arn"]].append((types, count))


def _described(ctx: Context, plan: Record) -> Record:
    status = "Scheduled" if ctx.now < plan["start"] else "Active" if ctx.now < plan["end"] else "Expired"
    used = sum(
        len(nodes_of(cluster, name))
        for cluster in ctx.table("clusters").values()
        for name, group in cluster["groups"].items()
        if group["spec"].get("TrainingPlanArn") == plan["arn"]
    )
    return {
        "TrainingPlanArn": plan["arn"],
        "TrainingPlanName": plan["name"],
        "Status": status,
        **_sold(plan),
        **_span(plan),
        "TotalInstanceCount": plan["count"],
        "AvailableInstanceCount": max(plan["count"] - used, 0),
        "InUseInstanceCount": used,
        "ReservedCapacitySummaries": [
            {
                "ReservedCapacityArn": plan["capacity"],
                "InstanceType": plan["type"],
                "TotalInstanceCount": plan["count"],
                "Status": status,
                "AvailabilityZone": plan["zone"],
                **_span(plan),
            }
        ],
    }


def _as_answered(document: Record) -> dict[str, Any]:
    """Return an answer with its moments as clients have them."""
    moments = {key: datetime.fromtimestamp(document[key], UTC) for key in ("StartTime", "EndTime")}
    return {**document, **moments}


def _sold(offer: Record) -> Record:
    return {
        "TargetResources": offer["targets"],
        "DurationHours": round((offer["end"] - offer["start"]) / 3600),
        **({"UpfrontFee": offer["fee"], "CurrencyCode": "USD"} if offer["fee"] else {}),
    }


def _span(offer: Record) -> Record:
    return {
        "DurationHours": round((offer["end"] - offer["start"]) / 3600),
        "StartTime": offer["start"],
        "EndTime": offer["end"],
    }


def _next_start(after: float) -> float:
    day = datetime.fromtimestamp(after, UTC).replace(hour=11, minute=30, second=0, microsecond=0)
    return (day if day.timestamp() >= after else day + timedelta(days=1)).timestamp()
