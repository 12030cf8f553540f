"""IAM principals: how ARNs identify them, and what the file allows them to do."""

import re
from collections.abc import Mapping
from typing import Final

from hpkit.config.models.governance import Team, TeamOverride
from hpkit.config.models.member_role import MemberRole
from hpkit.config.models.organization import Environment
from hpkit.plan.dependencies import charts_of
from hpkit.plan.model import Plan
from hpkit.plan.names import GROUP_PREFIX, member_role_name, partition_of

__all__ = [
    "ADMINISTRATOR_POLICY",
    "DEPENDENCIES_NAMESPACE",
    "RELEASES_POLICY",
    "TEAM_ROLE",
    "VIEWER_GROUP",
    "VIEWER_ROLE",
    "Principal",
    "access_policies_of",
    "admits",
    "console_policies_of",
    "groups_of",
    "is_administrator",
    "is_deployer",
    "is_viewer",
    "made_role_arn",
    "member_role_of",
    "names_branch",
    "names_subject",
    "principal_of",
    "release_namespaces",
    "teams_of",
    "writers_of",
]

Principal = tuple[str, str]


def principal_of(arn: str) -> Principal:
    """Return account and name of the role in an ARN of a role or a session; a session's ARN lacks the role's path.

    A role's name is unique in its account, regardless of its path (IAM user guide, "IAM identifiers"). For a user or
    the root user, which files don't contain, it's the whole resource part of the ARN.
    """
    account, resource = arn.split(":", 5)[4:]
    parts = resource.split("/")
    return account, parts[1] if parts[0] == "assumed-role" else parts[-1] if parts[0] == "role" else resource


def admits(environment: Environment, role: str) -> bool:
    """Return whether a role can be a member: it's in the environment's account, or the environment declares none."""
    return environment.account is None or principal_of(role)[0] == environment.account


def member_role_of(team: Team, override: TeamOverride) -> MemberRole | None:
    """Return who can assume the role that a team gets; None if an override lists the members instead."""
    return override.member_role or (team.member_role if override.members is None else None)


def made_role_arn(organization: str, environment: str, spec: Environment, team: Team) -> str | None:
    """Return the ARN of the role that the program creates for a team; None if the file doesn't set the account."""
    if spec.account is None:
        return None
    name = member_role_name(f"{organization}-{environment}", spec, team.name)
    return f"arn:{partition_of(spec.region)}:iam::{spec.account}:role/{name}"


def is_administrator(plan: Plan, arn: str) -> bool:
    """Return whether `eks.administrators` in the file lists the principal of an ARN."""
    return principal_of(arn) in {principal_of(each) for each in plan.spec.eks.administrators}


def is_deployer(plan: Plan, arn: str) -> bool:
    """Return whether the file allows the principal of an ARN to deploy: without `deployers`, anyone can."""
    named = {principal_of(each) for each in plan.spec.deployers}
    return not named or principal_of(arn) in named or is_administrator(plan, arn)


def writers_of(plan: Plan, caller: str) -> tuple[str, ...]:
    """Return which roles can write to the lifecycle bucket, as patterns of `aws:PrincipalArn`.

    These are the principals in the file. The caller is added if the file lists no deployer and the caller isn't an
    administrator. Administrators of the cluster are root on its nodes anyway, and can repair a deployer's lockout.
    """
    principals = (*plan.spec.deployers, *plan.spec.eks.administrators)
    if plan.spec.deployers or is_administrator(plan, caller):
        return tuple(sorted(set(principals)))
    return tuple(sorted({*principals, *_patterns(caller)}))


def _patterns(arn: str) -> tuple[str, ...]:
    """Return the possible `aws:PrincipalArn` of an ARN's principal: a session's ARN lacks the role's path.

    Source: IAM user guide, global condition keys, aws:PrincipalArn.
    """
    partition, account = arn.split(":")[1], arn.split(":")[4]
    resource = arn.split(":", 5)[5].split("/")
    if resource[0] != "assumed-role":
        return (arn,)
    role = f"arn:{partition}:iam::{account}:role"
    return (f"{role}/{resource[1]}", f"{role}/*/{resource[1]}")


def is_viewer(plan: Plan, arn: str) -> bool:
    """Return whether `eks.viewers` in the file lists the principal of an ARN."""
    return principal_of(arn) in {principal_of(each) for each in plan.spec.eks.viewers}


def teams_of(plan: Plan, arn: str) -> tuple[str, ...]:
    """Return the teams that the principal of an ARN is a member of."""
    who = principal_of(arn)
    return tuple(team.name for team in plan.teams if who in {principal_of(each) for each in team.spec.members})


# Only this module knows the subjects of forges.
# What others than one branch can claim is no identity: an environment, a tag, a pull request, a pattern. Sources:
# GitHub's documentation, "OpenID Connect reference"; GitLab's, "OpenID Connect (OIDC) authentication".
_BRANCHES: Final[Mapping[str, re.Pattern[str]]] = {
    "token.actions.githubusercontent.com": re.compile(
        r"repo:[^/:*?]+/[^/:*?]+(?::environment:[^:*?]+)?:ref:refs/heads/[^:*?]+"
    ),
    "gitlab": re.compile(r"project_path:[^:*?]+:ref_type:branch:ref:[^:*?]+"),
}
# Prefixes of identities in the subjects of known issuers.
_SUBJECT_WORDS: Final = re.compile(r"^(?:system:serviceaccount:|repo:|project_path:)")


def names_subject(value: str) -> bool:
    """Return whether a subject contains an organization or a namespace before its first wildcard."""
    return bool(re.match(r"[^:/*?]+(?:[:/]|$)", _SUBJECT_WORDS.sub("", value)))


def names_branch(issuer: str, subject: str) -> bool:
    """Return whether a forge's subject is limited to one branch; other issuers have no branches."""
    pattern = next((pattern for forge, pattern in _BRANCHES.items() if issuer.startswith(forge)), None)
    return pattern is None or bool(pattern.fullmatch(subject))


# Access policies of EKS. Helm stores its releases in Secrets, which a preview with --refresh reads. Viewers have the
# second policy only in the namespaces of releases.
ADMINISTRATOR_POLICY: Final = "AmazonEKSClusterAdminPolicy"
RELEASES_POLICY: Final = "AmazonEKSAdminViewPolicy"
DEPENDENCIES_NAMESPACE: Final = "kube-system"
# For the console and SageMaker Studio, in a team's namespace by its workloads, and in the cluster. Source: EKS user
# guide, access policy permissions; SageMaker developer guide, "Setting up an Amazon EKS cluster in Studio".
_CONSOLE: Final = {
    "training": "AmazonSagemakerHyperpodTrainingPolicy",
    "inference": "AmazonSagemakerHyperpodInferencePolicy",
    "spaces": "AmazonSagemakerHyperpodSpacePolicy",
}
_CONSOLE_CLUSTER: Final = "AmazonSagemakerHyperpodUserClusterPolicy"
# Lets viewers read everything else in the cluster.
VIEWER_GROUP: Final = "hyperpod:viewers"
VIEWER_ROLE: Final = "hpkit-viewer"
# The Role in each team's namespace, and the ClusterRole of all teams.
TEAM_ROLE: Final = "hpkit-data-scientist"


def groups_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return IAM role → Kubernetes groups: one per team that the role is in, and that of viewers."""
    groups: dict[str, list[str]] = {}
    for team in plan.teams:
        for member in team.spec.members:
            groups.setdefault(member, []).append(f"{GROUP_PREFIX}{team.name}")
    for viewer in plan.spec.eks.viewers:
        groups.setdefault(viewer, []).append(VIEWER_GROUP)
    return {principal: tuple(sorted(set(names))) for principal, names in groups.items()}


def release_namespaces(plan: Plan) -> tuple[str, ...]:
    """Return the namespaces where the program installs Helm charts."""
    charts = (each.namespace for each in charts_of(plan.spec))
    return (*charts, *([DEPENDENCIES_NAMESPACE] if plan.dependencies is not None else []))


def console_policies_of(plan: Plan) -> tuple[str, ...]:
    """Return the access policies that members of some team get for the console and Studio."""
    kinds = {kind for team in plan.teams if team.spec.console_access for kind in team.spec.workloads}
    return tuple(sorted({_CONSOLE[kind] for kind in kinds} | ({_CONSOLE_CLUSTER} if kinds else set())))


def access_policies_of(plan: Plan, principal: str) -> dict[str, tuple[str, ...] | None]:
    """Return the access policies of a principal → their namespaces, None for the whole cluster.

    A viewer who is also a member doesn't get the policy that reads Secrets of Helm releases, which only previews need.
    """
    if principal in plan.spec.eks.administrators:
        return {ADMINISTRATOR_POLICY: None}
    teams = [team for team in plan.teams if principal in team.spec.members]
    namespaces = release_namespaces(plan)
    if not teams:
        return {RELEASES_POLICY: namespaces} if namespaces else {}
    scopes: dict[str, list[str]] = {}
    for team in teams:
        for kind in team.spec.workloads if team.spec.console_access else ():
            scopes.setdefault(_CONSOLE[kind], []).append(team.namespace)
    policies: dict[str, tuple[str, ...] | None] = {name: tuple(sorted(each)) for name, each in sorted(scopes.items())}
    return policies | ({_CONSOLE_CLUSTER: None} if scopes else {})
