"""The stack outputs about each team, and the aws provider that a program gives to `hpkit.Platform`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import pulumi
import pulumi_aws as aws

from hpkit.plan.derive import quotas_of
from hpkit.plan.model import Plan
from hpkit.plan.principals import principal_of
from hpkit.text.document import json_number

__all__ = ["TeamOutputs", "given_provider", "tagged", "team_table"]


class TeamOutputs(TypedDict):
    """A team's resources: namespace, queue, and amounts in instances, by instance type.

    - priorityClasses: labels of the priority classes that its members can use, the highest first.
    - elastic: quota on instances that Karpenter might not have started. Only types with elastic quota are listed.
    - repositories: repository name → URI, for teams with ECR repositories.
    """

    namespace: str
    queue: str
    priorityClasses: list[str]
    quota: dict[str, float]
    elastic: dict[str, float]
    borrowable: dict[str, float]
    repositories: NotRequired[Mapping[str, pulumi.Input[str]]]


def team_table(plan: Plan) -> dict[str, TeamOutputs]:
    """Return each team's resources, by its name."""
    quotas: dict[str, dict[str, float]] = {team.name: {} for team in plan.teams}
    elastic: dict[str, dict[str, float]] = {team.name: {} for team in plan.teams}
    borrowable: dict[str, dict[str, float]] = {team.name: {} for team in plan.teams}
    for quota in quotas_of(plan):
        for share in quota.teams:
            quotas[share.team][quota.instance_type] = json_number(share.reserved)
            if share.elastic:
                elastic[share.team][quota.instance_type] = json_number(share.elastic)
            borrowable[share.team][quota.instance_type] = json_number(share.borrowable)
    ranked = sorted(plan.policy.priority_classes if plan.policy else (), key=lambda each: -each.weight)
    return {
        team.name: {
            "namespace": team.namespace,
            "queue": team.local_queue,
            "priorityClasses": [
                f"{priority_class.name}-priority"
                for priority_class in ranked
                if not team.spec.priority_classes or priority_class.name in team.spec.priority_classes
            ],
            "quota": quotas[team.name],
            "elastic": elastic[team.name],
            "borrowable": borrowable[team.name],
        }
        for team in plan.teams
    }


def given_provider(
    parent: pulumi.Resource | None, plan: Plan, caller: str, zones: Sequence[str], zones_of: Callable[[Any], list[str]]
) -> pulumi.ProviderResource | None:
    """Return the aws provider in the options of `hpkit.Platform`, if there is one.

    caller, zones: what hpkit's own provider answers; zones_of: asks another one. Raises pulumi.RunError for a provider
    of another identity or region: the `hyperpod` plugin and the tokens of Kubernetes use the stack's configuration.
    """
    if parent is None:
        return None
    if parent.get_provider("hyperpod:index:Cluster") is not None:
        raise pulumi.RunError(
            "hpkit.Platform makes the `hyperpod` provider itself, because it holds the stack's guards. Remove it from "
            "the platform's options. To choose credentials, set aws:profile or aws:assumeRoles of the stack"
        )
    provider = parent.get_provider("aws:index:Provider")
    if provider is None:
        return None
    options = pulumi.InvokeOptions(provider=provider)
    other = aws.get_caller_identity(opts=options).arn
    if principal_of(other) != principal_of(caller):
        raise pulumi.RunError(
            f"the aws provider in the options of hpkit.Platform is {other}, but the stack's configuration leads to "
            f"{caller}, which HyperPod and Kubernetes use. Give both the same credentials: set aws:profile "
            f"or aws:assumeRoles of {plan.stack}"
        )
    if zones_of(options) != list(zones):
        raise pulumi.RunError(
            f"the aws provider in the options of hpkit.Platform is for another region than {plan.stack}, which belongs "
            f"to {plan.spec.region}. Set its region to {plan.spec.region}"
        )
    return provider


def tagged(
    tags: Mapping[str, str],
) -> Callable[[pulumi.ResourceTransformationArgs], pulumi.ResourceTransformationResult | None]:
    """Return a transformation that gives the stack's tags to AWS resources, as the default tags of hpkit's provider."""

    def add(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not args.type_.startswith("aws:") or "tags" not in args.props:
            return None
        own = pulumi.Output.from_input(args.props["tags"])
        merged = own.apply(lambda given: {**tags, **(given or {})})
        return pulumi.ResourceTransformationResult({**args.props, "tags": merged}, args.opts)

    return add
