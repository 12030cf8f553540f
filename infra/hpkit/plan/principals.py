"""Who is who: IAM principals by what names them in every ARN, and what the file lets them do."""

from hpkit.plan.model import Plan

__all__ = ["Principal", "is_administrator", "is_viewer", "principal_of", "teams_of"]

Principal = tuple[str, str]


def principal_of(arn: str) -> Principal:
    """Return account and name of the role of an ARN, be it the role's or that of a session, which lacks its path.

    A name is a role's alone in its account, whatever its path (IAM user guide, "IAM identifiers"). For a user or the
    root, whom no file names, it is the whole resource part of the ARN.
    """
    account, resource = arn.split(":", 5)[4:]
    parts = resource.split("/")
    return account, parts[1] if parts[0] == "assumed-role" else parts[-1] if parts[0] == "role" else resource


def is_administrator(plan: Plan, arn: str) -> bool:
    """Say whether the file names the principal of an ARN among `eks.administrators`."""
    return principal_of(arn) in {principal_of(each) for each in plan.spec.eks.administrators}


def is_viewer(plan: Plan, arn: str) -> bool:
    """Say whether the file names the principal of an ARN among `eks.viewers`."""
    return principal_of(arn) in {principal_of(each) for each in plan.spec.eks.viewers}


def teams_of(plan: Plan, arn: str) -> tuple[str, ...]:
    """Return the teams that the principal of an ARN is a member of."""
    who = principal_of(arn)
    return tuple(team.name for team in plan.teams if who in {principal_of(each) for each in team.members})
