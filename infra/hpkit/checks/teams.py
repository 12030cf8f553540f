"""TEA: members, repositories, priority classes, and the limits of their pods."""

import re
from collections.abc import Iterator
from fractions import Fraction

from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.models.team_limits import TeamLimits
from hpkit.config.reading.document import Path
from hpkit.plan.capacity import quantity
from hpkit.plan.existing import execution_roles
from hpkit.plan.registry import NEEDED_ENDPOINTS, repositories_of, repository_prefix
from hpkit.plan.team_limits import NOT_READY, is_reserved_taint
from hpkit.text.formatting import listing
from hpkit.text.spelling import did_you_mean

__all__ = ["RULES"]

_BEST_PRACTICES = "AWS Machine Learning Blog, best practices for SageMaker HyperPod task governance"
_ECR = "Amazon ECR user guide, interface VPC endpoints; IAM permissions for pulling an image"
_TAINTS = "Kubernetes, taints and tolerations; SageMaker developer guide, HyperPod node health"
_REQUESTS = "Kubernetes, limit ranges; Kueue, workload: resource requests"
# As the API server validates a toleration's key: a qualified name (Kubernetes, labels: syntax and character set).
_KEY = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")


def _ranks_of_teams(context: Context) -> Iterator[Issue]:
    policy, team_names = context.plan.policy, {team.name for team in context.plan.teams}
    if policy is None:
        return
    class_names = [each.name for each in policy.priority_classes]
    if len(set(class_names)) < len(class_names):
        # The missing name is probably meant for another class (CFG004).
        return
    for index, team in enumerate(context.organization.teams):
        if team.name not in team_names:
            continue
        class_references: list[tuple[Path, str]] = [
            (("priorityClasses", place), name) for place, name in enumerate(team.priority_classes)
        ]
        if team.space_priority_class is not None:
            class_references.append((("spacePriorityClass",), team.space_priority_class))
        for key, name in class_references:
            if name not in class_names:
                yield Issue(
                    ("teams", index, *key),
                    f"team `{team.name}` may use the priority class `{name}`, but the policy of "
                    f"`{context.environment}` doesn't "
                    f"have it ({listing(class_names) or 'it has none'})",
                    did_you_mean(name, class_names, "Use a class of the policy, or remove it."),
                )


def _nobody_works(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    if governance is None:
        return
    # A team whose members are all of another account is ACC011's.
    staffed = {member.team for member in context.members}
    for name, path in context.team_paths.items():
        if governance.allocations.get(name) and name not in staffed:
            yield Issue(
                path,
                f"team `{name}` has quota in `{context.environment}` but no members, so no one can submit work for "
                "it there",
                "Add the team's IAM roles to `members`. If you grant access elsewhere, waive this rule and state "
                "the reason.",
            )


def _reach_of_repositories(context: Context) -> Iterator[Issue]:
    """Note what hpkit does not do for images of teams: in networks and roles that are not its own."""
    repositories = repositories_of(context.plan)
    if not repositories:
        return
    network = context.spec.network
    if network.existing is not None and network.closed:
        yield Issue(
            (*context.path, "network", "closed"),
            f"nodes need VPC endpoints to pull {repositories[0].name}, but hpkit creates none in an existing VPC",
            f"Create {listing(list(NEEDED_ENDPOINTS))} in it ({context.spec.region}). Waive this rule once they exist.",
        )
    for role in execution_roles(context.plan):
        yield Issue(
            (*context.path, "cluster", "instanceGroups"),
            f"nodes use the existing role {role}, which hpkit doesn't change, so it may not be allowed to pull the "
            "teams' images",
            "Allow it ecr:GetAuthorizationToken, and ecr:BatchGetImage and ecr:GetDownloadUrlForLayer on "
            f"repository/{repository_prefix(context.plan)}*. Then waive this rule.",
        )


def _own_repositories(context: Context) -> Iterator[Issue]:
    registry = context.spec.registry
    for index, name in enumerate(registry.pull_from if registry else ()):
        host, _, rest = name.partition("/")
        if ".dkr.ecr." in host:
            yield Issue(
                (*context.path, "registry", "pullFrom", index),
                f"{name} is the address of an image; pullFrom lists names of repositories in this account and region",
                f"Use `{rest}`." if rest else "Use the name of a repository, or `*`.",
            )


def _tolerations(context: Context) -> Iterator[Issue]:
    limits, path = _stated(context)
    for index, key in enumerate(limits.tolerations):
        place: Path = (*path, "tolerations", index)
        if not _KEY.match(key):
            yield Issue(place, f"{key!r} isn't a valid taint key", "Use the key of a taint, such as `team/reserved`.")
        elif is_reserved_taint(key):
            why = (
                "pods already tolerate it for a limited time"
                if key in NOT_READY
                else "it keeps work off nodes that are faulty, under test, or being removed"
            )
            yield Issue(place, f"team members' pods must not tolerate {key}: {why}", "Remove the key.")


def _requests(context: Context) -> Iterator[Issue]:
    limits, path = _stated(context)
    least = {"cpu": Fraction(1, 1000), "memory": Fraction(1024**2)}
    for name, amount in limits.default_requests.model_dump().items():
        if quantity(amount) < least[name]:
            yield Issue(
                (*path, "defaultRequests", name),
                f"`{name}` is {amount}; the minimum is {'1m' if name == 'cpu' else '1Mi'}, or Kueue doesn't count "
                "pods whose containers don't request any",
                f"Set at least {'1m' if name == 'cpu' else '1Mi'}.",
            )


def _stated(context: Context) -> tuple[TeamLimits, Path]:
    governance = context.spec.governance
    limits = governance.team_limits if governance is not None else TeamLimits()
    return limits, (*context.path, "governance", "teamLimits")


RULES = (
    Rule("TEA001", "warning", "Teams with quota have members.", _BEST_PRACTICES, _nobody_works),
    Rule(
        "TEA002",
        "error",
        "A team's priority classes exist in the policy.",
        "hpkit configuration reference",
        _ranks_of_teams,
    ),
    Rule("TEA003", "warning", "Nodes can reach the teams' repositories.", _ECR, _reach_of_repositories),
    Rule("TEA004", "error", "Repositories that nodes pull from have valid ECR names.", _ECR, _own_repositories),
    Rule(
        "TEA006",
        "error",
        "Team members' pods don't tolerate taints of faulty or departing nodes.",
        _TAINTS,
        _tolerations,
        waivable=False,
    ),
    Rule("TEA008", "error", "Containers without requests count toward quota.", _REQUESTS, _requests, waivable=False),
)
