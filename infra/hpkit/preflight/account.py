"""Who asks, in which region, and whether the roles that the file names are there."""

from collections.abc import Iterator
from typing import Final

from hpkit.catalog import find_region, regions
from hpkit.plan.existing import given_roles
from hpkit.plan.model import Plan
from hpkit.preflight.calls import CALLER, SERVICE_ROLE, role, role_arns
from hpkit.preflight.model import Answers, Failure, Row, missing, ok, unanswered, unknown

__all__ = ["account_rows", "role_rows"]

_AREA: Final = "account"
_ROLES: Final = "roles"


def account_rows(plan: Plan, answers: Answers) -> Iterator[Row]:
    """Yield who asks and what the region has."""
    caller = answers.of(CALLER)
    if isinstance(caller, Failure):
        yield unanswered(_AREA, "identity", caller)
    else:
        yield ok(_AREA, "identity", found=f"{caller['Arn']} in account {caller['Account']}")
        yield _place_of_caller(plan, caller["Arn"])
    yield from _region_rows(plan)


def role_rows(plan: Plan, answers: Answers) -> Iterator[Row]:
    """Yield the roles that the file names, and the service's own."""
    caller = answers.of(CALLER)
    account = None if isinstance(caller, Failure) else caller["Account"]
    for arn in role_arns(plan):
        yield _role(plan, answers, arn, account=account)
    found = answers.of(role(SERVICE_ROLE))
    if not isinstance(found, Failure):
        yield ok(_ROLES, SERVICE_ROLE, found="there")
    elif found.is_absence:
        why = "It is not there yet; the service makes it with the first cluster, if whoever deploys may have it made"
        fix = "Allow iam:CreateServiceLinkedRole for hyperpod.sagemaker.amazonaws.com to whoever deploys"
        yield unknown(_ROLES, SERVICE_ROLE, why=why, fix=fix, found="not there", needed="made by the service")
    else:
        yield unanswered(_ROLES, SERVICE_ROLE, found)


def _place_of_caller(plan: Plan, arn: str) -> Row:
    """Say whether whoever asks is a role of the environment."""
    what, caller = "place of the identity", _role_of(arn)
    if caller in {_role_of(each) for each in plan.spec.eks.administrators}:
        return ok(_AREA, what, found="administrator", needed="administrator")
    teams = [team.name for team in plan.teams if caller in {_role_of(each) for each in team.members}]
    found = f"member of {', '.join(teams)}" if teams else "neither administrator nor member"
    if plan.spec.eks.existing is None:
        return ok(_AREA, what, found=found, needed="any: who creates the EKS cluster administers it")
    why = "Whether the existing EKS cluster lets it administer Kubernetes cannot be read from the file"
    fix = "Deploy with a role that eks.administrators names, or add the role of this identity to it"
    return unknown(_AREA, what, why=why, fix=fix, found=found, needed="administrator")


def _role_of(arn: str) -> tuple[str, str]:
    """Return account and role of a role's ARN, or of a session's, which leaves out the role's path.

    Of a user, whom no file names, the resource stands for the role.
    """
    account, resource = arn.split(":", 5)[4:]
    parts = resource.split("/")
    return account, parts[1] if parts[0] == "assumed-role" else parts[-1] if parts[0] == "role" else resource


def _region_rows(plan: Plan) -> Iterator[Row]:
    name = plan.spec.region
    region = find_region(name)
    what = "HyperPod on EKS in the region"
    if region is not None and region.hyperpod_eks:
        yield ok(_AREA, what, found=name, needed=name)
    else:
        offered = [each.name for each in regions() if each.hyperpod_eks]
        fix = f"Choose one of {', '.join(offered)}"
        yield missing(_AREA, what, found="not on AWS's list", needed=name, fix=fix)
    if plan.policy is None:
        return
    what = "task governance in the region"
    if region is not None and region.task_governance:
        yield ok(_AREA, what, found=name, needed=name)
    else:
        offered = [each.name for each in regions() if each.task_governance]
        fix = f"Choose one of {', '.join(offered)}, or leave out `governance`"
        yield missing(_AREA, what, found="not on AWS's list", needed=name, fix=fix)


def _role(plan: Plan, answers: Answers, arn: str, *, account: str | None) -> Row:
    name = arn.rpartition("/")[2]
    what = f"role {arn}"
    home = arn.split(":")[4]
    if account is not None and home != account:
        why = f"It belongs to account {home}, and this is {account}; another account's roles cannot be looked up"
        fix = "Check that this is the account you mean (--profile), and the ARN's account number"
        return unknown(_ROLES, what, why=why, fix=fix, needed=_purpose(plan, arn))
    answer = answers.of(role(name))
    if isinstance(answer, Failure) and not answer.is_absence:
        return unanswered(_ROLES, what, answer, needed=_purpose(plan, arn))
    if isinstance(answer, Failure):
        fix = "Create it, or name another one: neither EKS nor HyperPod accepts a role that is not there"
        return missing(_ROLES, what, found="not there", needed=_purpose(plan, arn), fix=fix)
    found = answer["Role"]["Arn"]
    if found != arn:
        fix = f"Write the ARN with its path: {found}"
        return missing(_ROLES, what, found=found, needed=_purpose(plan, arn), fix=fix)
    return ok(_ROLES, what, found="there", needed=_purpose(plan, arn))


def _purpose(plan: Plan, arn: str) -> str:
    teams = [f"member of {team.name}" for team in plan.teams if arn in team.members]
    services = [purpose for purpose in (given_roles(plan).get(arn),) if purpose]
    return ", ".join((["administrator"] if arn in plan.spec.eks.administrators else []) + teams + services)
