"""The caller's identity, the region, and whether the roles that the file names exist."""

from collections.abc import Iterator, Mapping
from typing import Final

from hpkit.catalog import find_region, regions
from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.existing import given_roles
from hpkit.plan.model import Plan
from hpkit.plan.principals import is_administrator, is_viewer, teams_of
from hpkit.preflight.calls import CALLER, SERVICE_ROLE, role, role_arns
from hpkit.preflight.model import CheckResult, call_failed, missing, ok, unknown

__all__ = ["check_account", "check_roles"]

_AREA: Final = "account"
_ROLES: Final = "roles"


def check_account(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check the caller's identity and what the region offers."""
    caller = responses.of(CALLER)
    if isinstance(caller, FailedCall):
        yield call_failed(_AREA, "identity", caller)
    else:
        yield _account(plan, caller)
        yield _access_of_caller(plan, caller["Arn"])
    yield from _check_region(plan)


def check_roles(plan: Plan, responses: Responses, *, on_local_cloud: bool = False) -> Iterator[CheckResult]:
    """Check the roles that the file names, and the service-linked role.

    on_local_cloud: its IAM has only what was created there.
    """
    caller = responses.of(CALLER)
    account = None if isinstance(caller, FailedCall) else caller["Account"]
    for arn in role_arns(plan):
        yield _role(plan, responses, arn, account=account)
    service_role = responses.of(role(SERVICE_ROLE))
    if not isinstance(service_role, FailedCall):
        yield ok(_ROLES, SERVICE_ROLE, found="exists")
    elif service_role.is_absence:
        why = "The service creates it with the first cluster, if the deployer is allowed to"
        if on_local_cloud:
            why = f"The local cloud doesn't create it. On AWS: {why[0].lower()}{why[1:]}"
        fix = "Allow the deployer iam:CreateServiceLinkedRole for hyperpod.sagemaker.amazonaws.com"
        yield unknown(_ROLES, SERVICE_ROLE, why=why, fix=fix, found="missing", needed="created by the service")
    else:
        yield call_failed(_ROLES, SERVICE_ROLE, service_role)


def _account(plan: Plan, caller: Mapping[str, str]) -> CheckResult:
    """Check whether the identity is one of the account that the environment names."""
    expected, identity = plan.spec.account, f"{caller['Arn']} in account {caller['Account']}"
    if expected is None:
        return ok(_AREA, "identity", found=identity, needed="any account: the environment has no `account`")
    needed = f"account {expected}"
    if caller["Account"] == expected:
        return ok(_AREA, "identity", found=identity, needed=needed)
    fix = f"Use credentials of {expected} (--profile, AWS_PROFILE), or correct `account` of the environment"
    return missing(_AREA, "identity", found=identity, needed=needed, fix=fix)


def _access_of_caller(plan: Plan, arn: str) -> CheckResult:
    """Check whether the caller is an administrator or a team member of the environment."""
    subject = "permissions of the identity"
    if is_administrator(plan, arn):
        return ok(_AREA, subject, found="administrator", needed="administrator")
    teams = teams_of(plan, arn)
    relation = f"member of {', '.join(teams)}" if teams else "neither administrator nor member"
    if is_viewer(plan, arn):
        return ok(_AREA, subject, found="viewer", needed="viewer for previews; any other role to deploy")
    if plan.spec.eks.existing is None and teams:
        fix = "Deploy with a role that isn't in a team, or also add this one to `eks.administrators`"
        return missing(_AREA, subject, found=relation, needed="administrator, or in no team", fix=fix)
    if plan.spec.eks.existing is None:
        return ok(_AREA, subject, found=relation, needed="any; the creator of the EKS cluster administers it")
    why = "The file doesn't show whether the existing EKS cluster lets it administer Kubernetes"
    fix = "Deploy with a role that `eks.administrators` lists, or add this identity's role to it"
    return unknown(_AREA, subject, why=why, fix=fix, found=relation, needed="administrator")


def _check_region(plan: Plan) -> Iterator[CheckResult]:
    name = plan.spec.region
    region = find_region(name)
    subject = "HyperPod on EKS in the region"
    if region is not None and region.hyperpod_eks:
        yield ok(_AREA, subject, found=name, needed=name)
    else:
        offered = [each.name for each in regions() if each.hyperpod_eks]
        fix = f"Choose one of {', '.join(offered)}"
        yield missing(_AREA, subject, found="not on AWS's list", needed=name, fix=fix)
    if plan.policy is None:
        return
    subject = "task governance in the region"
    if region is not None and region.task_governance:
        yield ok(_AREA, subject, found=name, needed=name)
    else:
        offered = [each.name for each in regions() if each.task_governance]
        fix = f"Choose one of {', '.join(offered)}, or remove `governance`"
        yield missing(_AREA, subject, found="not on AWS's list", needed=name, fix=fix)


def _role(plan: Plan, responses: Responses, arn: str, *, account: str | None) -> CheckResult:
    name = arn.rpartition("/")[2]
    subject = f"role {arn}"
    role_account = arn.split(":")[4]
    if account is not None and role_account != account:
        why = f"It belongs to account {role_account}, but the credentials are for {account}, so it can't be checked"
        fix = "Check that this is the right account (--profile), and the account number in the ARN"
        return unknown(_ROLES, subject, why=why, fix=fix, needed=_purpose(plan, arn))
    response = responses.of(role(name))
    if isinstance(response, FailedCall) and not response.is_absence:
        return call_failed(_ROLES, subject, response, needed=_purpose(plan, arn))
    if isinstance(response, FailedCall):
        fix = "Create it, or use another role: neither EKS nor HyperPod accepts a role that doesn't exist"
        return missing(_ROLES, subject, found="missing", needed=_purpose(plan, arn), fix=fix)
    live_arn = response["Role"]["Arn"]
    if live_arn != arn:
        fix = f"Use the ARN with its path: {live_arn}"
        return missing(_ROLES, subject, found=live_arn, needed=_purpose(plan, arn), fix=fix)
    return ok(_ROLES, subject, found="exists", needed=_purpose(plan, arn))


def _purpose(plan: Plan, arn: str) -> str:
    teams = [f"member of {team.name}" for team in plan.teams if arn in team.spec.members]
    services = [purpose for purpose in (given_roles(plan).get(arn),) if purpose]
    readers = ["viewer"] if arn in plan.spec.eks.viewers else []
    administers = ["administrator"] if arn in plan.spec.eks.administrators else []
    return ", ".join(administers + readers + teams + services)
