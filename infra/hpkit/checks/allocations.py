"""CAP: what one allocation says of itself."""

from collections.abc import Iterator
from fractions import Fraction

from hpkit.checks.rule import Context, Issue, Rule
from hpkit.plan.model import QuotaResource
from hpkit.text.formatting import amount, listing

__all__ = ["RULES", "amounts"]

_GUIDE = "SageMaker HyperPod developer guide, task governance: compute allocations"


def _reserves_something(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    for name, rows in (governance.allocations if governance else {}).items():
        if not rows:
            path = (*context.path, "governance", "allocations", name)
            message = (
                f"{name} has an empty list of allocations, so it has neither quota nor a queue in this environment"
            )
            yield Issue(path, message, f"Remove {name} from allocations, or add an allocation.")
    for team in context.plan.teams:
        for resource in team.quota_resources:
            if not resource.path or resource.instance_type in team.absolute_borrow_limits or not _is_nothing(resource):
                continue
            if resource.share and not context.is_capacity_certain(resource.instance_type):
                # A share of a misspelt group's type (CLU003) comes to nothing only until that is right.
                continue
            known = context.plan.capacity.get(resource.instance_type)
            of = known.guaranteed if known and not resource.elastic else known.maximum if known else None
            if resource.share and of:
                why = f"{amount(resource.share * 100)} % of {of} × {resource.instance_type} is less than one instance"
            else:
                why = f"{team.name} reserves no {resource.instance_type} here"
            yield Issue(
                resource.path,
                f"{why}, so {team.name} gets none, and a percentage limit lets it borrow none",
                "Set the amount that the team needs, add a limit to sharing.absoluteBorrowLimits (no quota "
                "required), or remove the entry.",
            )


def _fractions_go_together(context: Context) -> Iterator[Issue]:
    for team in context.plan.teams:
        for resource in team.quota_resources:
            instance = context.instances.get(resource.instance_type)
            chips = resource.accelerators
            if instance is None or not chips or not resource.path:
                continue
            short = [
                f"{amount(given)} {what}"
                for what, given in (("vCPU", resource.v_cpu), ("GiB of memory", resource.memory_in_gib))
                if given is not None and given < chips
            ]
            if short and instance.accelerators and instance.vcpu and instance.memory_gib:
                part = Fraction(chips) / instance.accelerators
                yield Issue(
                    resource.path,
                    f"{team.name} reserves {amount(chips)} accelerators of {resource.instance_type} with "
                    f"{listing(short)}, less than one for each accelerator; jobs that request more would wait",
                    "Remove vCpu and memoryInGiB: they default to a proportional share "
                    f"({amount(part * instance.vcpu)} vCPU, {amount(part * instance.memory_gib)} GiB).",
                )


def _is_nothing(resource: QuotaResource) -> bool:
    """Say whether an entry states amounts that are all zero; one that states none is GOV003's."""
    stated = amounts(resource)
    return any(each is not None for each in stated) and not any(stated)


def amounts(resource: QuotaResource) -> list[object]:
    """Return what an entry states in every measure, None where it states nothing."""
    partition = resource.partition.count if resource.partition else None
    return [resource.count, resource.accelerators, resource.v_cpu, resource.memory_in_gib, partition]


RULES = (
    Rule("CAP008", "warning", "Allocations reserve something.", _GUIDE, _reserves_something),
    Rule("CAP010", "warning", "Reserved accelerators come with enough vCPUs and memory.", _GUIDE,
         _fractions_go_together),
)  # fmt: skip
