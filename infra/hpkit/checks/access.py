"""ACC: who may do what."""

from collections.abc import Iterator

from hpkit.checks.rule import Context, Issue, Rule, listing
from hpkit.config.document import Path

__all__ = ["RULES"]

_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"


def _roles(context: Context) -> Iterator[Issue]:
    administrators = set(context.spec.eks.administrators)
    teams_of: dict[str, list[str]] = {}
    for index, team in enumerate(context.organization.teams):
        for position, member in enumerate(team.members):
            path: Path = ("teams", index, "members", position)
            if member in administrators:
                yield Issue(
                    path,
                    f"{member} is a data scientist of {team.name} and an administrator of {context.environment}",
                    "Use two roles: an administrator passes every limit of the team.",
                )
            teams_of.setdefault(member, []).append(team.name)
            if len(set(teams_of[member])) > 1 and teams_of[member].index(team.name) == len(teams_of[member]) - 1:
                yield Issue(
                    path,
                    f"{member} is in the teams {listing(sorted(set(teams_of[member])))}",
                    "Give each team a role of its own, so that work is counted where it belongs.",
                )


RULES = (
    Rule("ACC001", "warning", "A data scientist's role is in one team, and administers nothing.", _GUIDE, _roles),
)  # fmt: skip
