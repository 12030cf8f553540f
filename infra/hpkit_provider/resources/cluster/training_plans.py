"""Checks training plans before CreateCluster and UpdateCluster, which only report missing capacity."""

from collections import defaultdict
from collections.abc import Iterator

from hpkit.catalog.training_plans import training_plan_problem
from hpkit_provider.aws.client import SageMakerApi
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError, RefusedError
from hpkit_provider.engine.values import Props

__all__ = ["require_training_plans"]


def require_training_plans(api: SageMakerApi, call: EngineCall, old: Props, new: Props) -> None:
    """Reject groups that need instances from a training plan that can't supply them.

    Groups without new instances aren't checked: AWS removes the nodes of an expired plan. If the plan can't be read,
    AWS decides.

    Raises RefusedError with the group, the plan and its dates.
    """
    other_groups: defaultdict[str, list[tuple[list[str], int]]] = defaultdict(list)
    for name, arn, instance_types, count in _growing(old, new):
        try:
            document = api.find(call, "describe_training_plan", TrainingPlanName=arn)
        except PluginError as error:
            call.warn(f"Training plan {arn} of instance group {name} isn't checked: {error}")
            continue
        if document is None:
            raise RefusedError(
                f"Instance group {name} uses training plan {arn}, which doesn't exist. What to do: use the ARN of a "
                "plan of this account and region, or remove trainingPlanArn."
            )
        problem = training_plan_problem(
            document,
            instance_types=instance_types,
            count=count,
            other_groups=other_groups[arn],
            zones=_zones(api, call, new, name),
        )
        other_groups[arn].append((instance_types, count))
        if problem is not None:
            raise RefusedError(
                f"Instance group {name} needs {count} × {' or '.join(instance_types)}, and training plan {arn} "
                f"{problem}. What to do: use another plan (`hpkit aws preflight --offerings` lists offers), or change "
                "the group."
            )


def _zones(api: SageMakerApi, call: EngineCall, new: Props, name: str) -> set[str]:
    """Return the zones of a group's subnets, or of the cluster's; empty if they can't be read, which AWS decides."""
    group = next(each for each in _groups(new) if each["instanceGroupName"] == name)
    subnets = (group.get("overrideVpcConfig") or new.get("vpcConfig") or {}).get("subnets")
    if not subnets:
        return set()
    try:
        response = api.find(call, "ec2.describe_subnets", SubnetIds=list(subnets)) or {}
    except PluginError as error:
        call.warn(f"The zone of instance group {name} isn't compared with its training plan: {error}")
        return set()
    return {str(each["AvailabilityZone"]) for each in response.get("Subnets", [])}


def _growing(old: Props, new: Props) -> Iterator[tuple[str, str, list[str], int]]:
    """Yield the name, plan, instance types and number of new instances of each group that takes more from a plan."""
    before = {group["instanceGroupName"]: group for group in _groups(old)}
    for group in _groups(new):
        arn, name = group.get("trainingPlanArn"), str(group["instanceGroupName"])
        former = before.get(name, {})
        same_plan = former.get("trainingPlanArn") == arn
        count = int(group.get("instanceCount", 0)) - (int(former.get("instanceCount", 0)) if same_plan else 0)
        types = [group["instanceType"]] if group.get("instanceType") else group["instanceRequirements"]["instanceTypes"]
        if arn and count > 0:
            yield name, str(arn), types, count


def _groups(inputs: Props) -> list[Props]:
    return [*inputs.get("instanceGroups", []), *inputs.get("restrictedInstanceGroups", [])]
