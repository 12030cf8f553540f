"""ACC: access and permissions."""

import re
from collections import Counter
from collections.abc import Iterator

from hpkit.catalog import PLACEHOLDER_ACCOUNTS
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.models.cluster import InstanceGroup
from hpkit.config.models.member_role import MemberRole
from hpkit.plan.names import partition_of
from hpkit.plan.principals import admits, names_branch, names_subject, principal_of
from hpkit.text.formatting import listing

__all__ = ["RULES"]

_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"
_ARNS = "AWS General Reference, Amazon Resource Names"
_ROLE_ARNS = f"{_ARNS}; Amazon EKS user guide, create access entries: existing principals, with the path of a role"
_ARN = re.compile(
    r"arn:(?P<partition>aws[a-z-]*):(?P<service>[a-z0-9-]+):(?P<region>[a-z0-9-]*):(?P<account>[0-9]{12})?"
)
_PASSED = "AWS IAM user guide, grant a user permissions to pass a role to an AWS service"
_ROLE_LIKE = re.compile(r"(arn:aws[a-z-]*:iam::[0-9]{12}):role")
_NAME = re.compile(r":[0-9]{12}:(role/|).+\Z")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/(?:[^/\s]+/)*[\w+=,.@-]{1,64}\Z")
_BOUNDARY, _PLAN = "permissionsBoundary", "trainingPlanArn"
# Settings of what a service uses in the environment's account, rather than of a role that gets access.
_HANDED_OVER = ("executionRole", "clusterRole", "role", "serviceAccountRoleArn", "executionRoleArn", _BOUNDARY, _PLAN)
# What a principal in another account could do, by the key that lists it.
_HAS_ACCESS = {
    "administrators": "whose owners could control this cluster",
    "viewers": "whose owners could read everything in this cluster except Secrets of teams",
    "deployers": "whose credentials can't deploy here",
}
# Resources of one region can only use these in the same region.
_OF_ONE_REGION = {"acm": "a certificate", "kms": "a key", "sagemaker": "a training plan"}
_EKS_GUIDE = "Amazon EKS user guide, create access entries; access policy permissions"
# An entry of type STANDARD takes a principal of another account, too.
_EKS_ENTRY = "Amazon EKS user guide, create access entries; Pulumi AWS provider, allowedAccountIds"
_TRUST = "AWS IAM user guide, IAM roles (trust policy); hpkit"
_TRUST_POLICY = "iam-trust-limited"
_ACCOUNTS = "Pulumi AWS provider, allowedAccountIds"
_LIFECYCLE = "SageMaker API reference, ClusterLifeCycleConfig: takes neither a digest nor an object's version"
_POD_IDENTITY = "Amazon EKS user guide, EKS Pod Identities; Kubernetes, RBAC good practices (creating workloads)"


def _roles(context: Context) -> Iterator[Issue]:
    administrators = set(context.spec.eks.administrators)
    teams_by_role: dict[str, list[str]] = {}
    for member in context.members:
        if not member.admitted:
            continue
        if member.role in administrators:
            yield Issue(
                member.path,
                f"{member.role} is both a data scientist of team `{member.team}` and an administrator of "
                f"`{context.environment}`",
                "Use two roles: an administrator bypasses every limit of the team.",
                policy="team-access-policies-in-namespace",
            )
        teams = teams_by_role.setdefault(member.role, [])
        if member.team not in teams:
            teams.append(member.team)
            if len(teams) > 1:
                yield Issue(
                    member.path,
                    f"{member.role} is a member of several teams: {listing(sorted(teams))}",
                    "Give each team its own role, so that work counts toward the right quota.",
                    policy="team-bindings-in-namespace",
                )


def _viewers(context: Context) -> Iterator[Issue]:
    administrators = {principal_of(each) for each in context.spec.eks.administrators}
    members = {principal_of(member.role): member for member in context.members if member.admitted}
    for position, viewer in enumerate(context.spec.eks.viewers):
        member = members.get(principal_of(viewer))
        if member is not None and member.role != viewer:
            yield Issue(
                ("environments", context.environment, "eks", "viewers", position),
                f"{viewer} is also a member of team `{member.team}`, there written {member.role}; a role has one "
                "access entry",
                f"Use the same ARN in both places, such as {member.role}.",
            )
        if principal_of(viewer) in administrators:
            yield Issue(
                ("environments", context.environment, "eks", "viewers", position),
                f"{viewer} is a viewer of `{context.environment}`, and also an administrator",
                "Remove it here: administrators can read everything. Or use two roles.",
            )


def _service_accounts(context: Context) -> Iterator[Issue]:
    for index, team in enumerate(context.organization.teams):
        for position, name in enumerate(team.service_accounts):
            yield Issue(
                ("teams", index, "serviceAccounts", position),
                f"all members of team `{team.name}` get the permissions of the service account {name}",
                "Grant it only what every member may have, in the cluster and in AWS. Then waive this rule and "
                "state the reason.",
            )


def _arns(context: Context) -> Iterator[Issue]:
    """Compare ARNs of one environment and of the teams with the environment's partition, and with its region."""
    region = context.spec.region
    partition = partition_of(region)
    admitted = {member.path for member in context.members if member.admitted}
    for path, arn in context.texts:
        match = _ARN.match(arn)
        if match is None or not context.knows_region or ("members" in path and path not in admitted):
            continue
        if match["partition"] != partition:
            yield Issue(
                path,
                f"{arn} is in the partition {match['partition']}, but {region} is in {partition}",
                f"Use an ARN in {partition}; resources can't be shared between partitions.",
            )
        elif match["region"] and match["region"] != region and match["service"] in _OF_ONE_REGION:
            yield Issue(
                path,
                f"{arn} is in {match['region']}, but `{context.environment}` is in {region}",
                f"Use {_OF_ONE_REGION[match['service']]} in {region}.",
            )


def _roles_of_others(context: Context) -> Iterator[Issue]:
    account = context.spec.account
    for path, arn in context.texts:
        match = _ARN.match(arn)
        if path[-1] not in _HANDED_OVER or account is None or match is None or match["account"] in (None, account):
            continue
        if path[-1] == _BOUNDARY:
            why, fix = "a permissions boundary must be in the role's account", f"Use a policy in account {account}."
        elif path[-1] == _PLAN:
            why, fix = "only the account that bought a training plan can use it", f"Use a plan of account {account}."
        else:
            why = "a role in another account can't be passed to a service"
            fix = f"Use a role in account {account}. Or remove `{path[-1]}` if hpkit can create the role."
        yield Issue(
            path, f"{arn} is in account {match['account']}, but `{context.environment}` is in {account}; {why}", fix
        )


def _named(arn: str, account: str) -> str:
    """Return the ARN of what the reader chooses in an account: the same name needn't exist there."""
    own = _NAME.sub(f":{account}:\\1NAME", arn)
    return f"`{own}`, with the name of {'a role' if ':role/' in own else 'a resource'} that exists in {account}"


def _other_accounts(context: Context) -> Iterator[Issue]:
    account = context.spec.account
    if account is None:
        return
    for path, arn in context.texts:
        match = _ARN.match(arn)
        if match is None or match["account"] in (None, account) or path[-1] in _HANDED_OVER or "members" in path:
            continue
        foreign, key = match["account"], path[-2] if isinstance(path[-1], int) else path[-1]
        if foreign in PLACEHOLDER_ACCOUNTS:
            account_text = f"account {foreign}, which the examples use and you don't own"
        elif key in _HAS_ACCESS:
            account_text = f"account {foreign}, {_HAS_ACCESS[str(key)]}"
        else:
            continue
        yield Issue(
            path,
            f"{arn} is in {account_text}; `{context.environment}` is in account {account}",
            f"Use {_named(arn, account)}. Or waive this rule and state the reason.",
        )
    yield from _left_out(context, account)


def _left_out(context: Context, account: str) -> Iterator[Issue]:
    """Report the members that an environment doesn't admit because they are in another account.

    A role that no environment admits is reported where it is. Roles of a team that other environments admit are
    reported once for the environment, if it admits none of the team's.
    """
    team_names = {team.name for team in context.plan.teams}
    staffed = {member.team for member in context.members if member.admitted}
    environments = context.organization.environments.values()
    accounts = " or ".join(sorted({each.account for each in environments if each.account is not None}))
    roles: dict[str, list[str]] = {}
    for member in context.members:
        if member.admitted or member.team not in team_names:
            continue
        foreign = principal_of(member.role)[0]
        if member.path[0] != "teams":
            yield Issue(
                member.path,
                f"{member.role} is in account {foreign}, so it gets no access; `{context.environment}` is in account "
                f"{account}",
                f"Use {_named(member.role, account)}.",
            )
        elif context.is_whole and not any(admits(each, member.role) for each in environments):
            yield Issue(
                member.path,
                f"{member.role} is in account {foreign}, which no environment uses, so it gets no access",
                f"Remove it, or use a role in {accounts}. If an environment should be in {foreign}, change its "
                "`account`.",
            )
        # An environment that couldn't be read may be in any account.
        elif member.team not in staffed:
            roles.setdefault(member.team, []).append(member.role)
    if roles:
        totals = Counter(member.team for member in context.members)
        teams = [f"{team} {len(out)} of {totals[team]} ({listing(out, 2)})" for team, out in sorted(roles.items())]
        team = min(roles)
        yield Issue(
            (*context.path, "governance"),
            f"`{context.environment}` is in account {account}, "
            f"{'and members in other accounts get no access' if staffed else 'so no member of any team gets access'}: "
            f"{listing(teams, 4)}",
            f"List roles from {account} in `governance.overrides`, such as `{team}: {{members: "
            f'["arn:{partition_of(context.spec.region)}:iam::{account}:role/NAME"]}}`; '
            "they replace the team's members in this environment.",
        )


def _made_roles(context: Context) -> Iterator[Issue]:
    for team in context.plan.teams:
        if team.spec.member_role is None:
            continue
        path = context.setting_path(team.name, "member_role")
        if team.spec.member_role == MemberRole():
            yield Issue(
                path,
                f"nobody can assume the role of team `{team.name}`",
                'Add a principal, such as `permissionSets: ["DataScientist"]`.',
            )
        if context.spec.account is None:
            yield Issue(
                path,
                f"`{context.environment}` doesn't set its AWS account, so the ARN of team `{team.name}`'s role is "
                "unknown",
                f"Add `account` to `environments.{context.environment}`.",
            )


def _open_trust(context: Context) -> Iterator[Issue]:
    """Report what the trust policies of team roles admit and the policy pack doesn't."""
    account = context.spec.account
    for team in context.plan.teams:
        role = team.spec.member_role
        if role is None:
            continue
        path = context.setting_path(team.name, "member_role")
        for position, principal in enumerate(role.principals):
            foreign = principal_of(principal)[0]
            if account is not None and foreign != account:
                yield Issue(
                    (*path, "principals", position),
                    f"{principal} can assume the role of team `{team.name}`, but is in account {foreign}; "
                    f"`{context.environment}` is in account {account}",
                    f"Use {_named(principal, account)}. If environments differ, set `memberRole` in "
                    "`governance.overrides`. Or waive this rule and state the reason.",
                    policy=_TRUST_POLICY,
                )
        subjects = role.oidc.subjects if role.oidc else ()
        issuer = role.oidc.provider if role.oidc else ""
        for position, subject in enumerate(subjects):
            if names_subject(subject) and names_branch(issuer, subject):
                continue
            yield Issue(
                (*path, "oidc", "subjects", position),
                f"tokens of {'any branch' if names_subject(subject) else 'many identities'} have a subject like "
                f"`{subject}`, and can assume the role of team `{team.name}`",
                "Name one branch, such as `repo:acme/training:ref:refs/heads/main`, or one identity.",
                policy=_TRUST_POLICY,
            )


def _names_of_roles(context: Context) -> Iterator[Issue]:
    for path, arn in context.texts:
        begins, name = _ROLE_LIKE.match(arn), arn.rpartition("/")[2]
        if begins and name.startswith("AWSReservedSSO_") and ":role/aws-reserved/sso.amazonaws.com/" not in arn:
            yield Issue(
                path,
                f"{arn} lacks the path of roles of IAM Identity Center, `aws-reserved/sso.amazonaws.com/`, so AWS "
                "finds no such role",
                f"Use the ARN that `aws iam get-role --role-name {name} --query Role.Arn` prints.",
            )
            continue
        if begins is None or _ROLE.match(arn):
            continue
        if "/" not in arn:
            name = arn.rpartition(":")[2].removeprefix("role")
        yield Issue(
            path,
            f"{arn} isn't the ARN of a role: after the account, it needs `:role/` and a name",
            f"Use `{begins[1]}:role/{name}`." if name else "Add the role's name, as `aws iam list-roles` prints it.",
        )


def _scripts_are_objects(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        if isinstance(group, InstanceGroup) and (uri := group.lifecycle_script or "").startswith("s3://"):
            key = uri.removeprefix("s3://").partition("/")[2]
            if not key or key.endswith("/"):
                yield Issue(
                    (*path, "lifecycleScript"),
                    f"{uri} is a {'folder' if key else 'bucket'}; nodes of group `{group.name}` need a script",
                    f"Use the URI of the script, such as {uri.rstrip('/')}/on_create.sh.",
                )
            elif "/" not in key and group.lifecycle_script_sha256 is not None:
                yield Issue(
                    (*path, "lifecycleScript"),
                    f"{uri} is in no folder, so nodes of group `{group.name}` would download and verify the whole "
                    "bucket",
                    f"Put the script and the files that it uses in a folder, such as {uri.removesuffix(key)}v1/{key}.",
                )


def _account(context: Context) -> Iterator[Issue]:
    if context.spec.account is None:
        yield Issue(
            context.path,
            f"`{context.environment}` has no `account`: `pulumi up` deploys to the account of the current credentials, "
            "and `pulumi refresh` with other credentials empties the state",
            "Set `account` to the 12 digits that `aws sts get-caller-identity` prints, in quotes.",
        )


def _scripts(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        if isinstance(group, InstanceGroup) and group.lifecycle_script is not None:
            uri = group.lifecycle_script
            bucket, _, key = uri.partition("://")[2].partition("/")
            # What names no script runs nothing (ACC006).
            if group.lifecycle_script_sha256 is None and key and not key.endswith("/"):
                yield Issue(
                    (*path, "lifecycleScript"),
                    f"every new node of group `{group.name}` runs the current content of {uri} as root, so anyone who "
                    f"can write to the bucket {bucket} controls these nodes",
                    "Set `lifecycleScriptSha256` to the SHA-256 of the files in its folder. Nodes then run only this "
                    "version.",
                )


def _need_a_script(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        if isinstance(group, InstanceGroup):
            uri = group.lifecycle_script or "not set"
            if group.lifecycle_script_sha256 is not None and not uri.startswith("s3://"):
                yield Issue(
                    (*path, "lifecycleScriptSha256"),
                    f"group `{group.name}` has a digest, but lifecycleScript is {uri}; nodes only verify scripts that "
                    "they download from S3",
                    "Set `lifecycleScript` to an s3:// URI. Or remove the digest, because hpkit's own script "
                    "needs none.",
                )


RULES = (
    Rule("ACC001", "warning", "Data scientists' roles belong to one team, and aren't administrators.", _GUIDE, _roles),
    Rule(
        "ACC002",
        "error",
        "Viewers aren't administrators, and have the same ARN as members.",
        _EKS_GUIDE,
        _viewers,
        waivable=False,
    ),
    Rule("ACC003", "warning", "Teams' pods use only the service account `default`.", _POD_IDENTITY, _service_accounts),
    Rule(
        "ACC004",
        "warning",
        "Environments set their own AWS account, not the examples' placeholder.",
        _ACCOUNTS,
        _account,
    ),
    Rule("ACC005", "warning", "Your own lifecycle scripts have a SHA-256.", _LIFECYCLE, _scripts),
    Rule(
        "ACC006",
        "error",
        "Lifecycle scripts are objects in S3; with a SHA-256, they have a folder of their own.",
        _LIFECYCLE,
        _scripts_are_objects,
        _need_a_script,
    ),
    Rule(
        "ACC007",
        "error",
        "Roles for services, their boundaries, and training plans are in the environment's account.",
        _PASSED,
        _roles_of_others,
    ),
    Rule(
        "ACC008",
        "error",
        "ARNs are in the environment's partition; keys, certificates, and training plans are in its region.",
        _ARNS,
        _arns,
    ),
    Rule("ACC009", "error", "Role ARNs are well formed.", _ROLE_ARNS, _names_of_roles, waivable=False),
    Rule("ACC011", "warning", "Roles with access are in the environment's account.", _EKS_ENTRY, _other_accounts),
    Rule(
        "ACC013",
        "error",
        "Team roles that hpkit creates have an account and trusted principals.",
        _TRUST,
        _made_roles,
        waivable=False,
    ),
    Rule(
        "ACC014",
        "warning",
        "Principals of the environment's account, one branch, or one identity assume team roles.",
        _TRUST,
        _open_trust,
    ),
)
