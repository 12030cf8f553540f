"""ACC: who may do what."""

import re
from collections import Counter
from collections.abc import Iterator

from hpkit.checks.rule import Context, Issue, Rule, listing
from hpkit.config.cluster import InstanceGroup
from hpkit.plan.names import partition_of
from hpkit.plan.principals import NOBODYS_ACCOUNT, principal_of

__all__ = ["RULES"]

_GUIDE = "SageMaker HyperPod developer guide, EKS prerequisites"
_ARNS = "AWS General Reference, Amazon Resource Names"
_ARN = re.compile(
    r"arn:(?P<partition>aws[a-z-]*):(?P<service>[a-z0-9-]+):(?P<region>[a-z0-9-]*):(?P<account>[0-9]{12})?"
)
_PASSED = "AWS IAM user guide, grant a user permissions to pass a role to an AWS service (within one account)"
_ROLE_LIKE = re.compile(r"(arn:aws[a-z-]*:iam::[0-9]{12}):role")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/(?:[^/\s]+/)*[\w+=,.@-]{1,64}\Z")
_BOUNDARY = "permissionsBoundary"
# Where a role is handed to a service, and not named as somebody who comes in.
_ALERT_MANAGER = "Amazon Managed Service for Prometheus user guide, alert manager"
_HANDED_OVER = ("executionRole", "clusterRole", "role", "serviceAccountRoleArn", "executionRoleArn", _BOUNDARY)
# What a principal of another account can do there, by the key that names it.
_HAS_ACCESS = {
    "administrators": "whose owners then control this cluster",
    "viewers": "whose owners can then read every object in this cluster",
    "deployers": "whose credentials can't deploy here",
}
# What is used by a resource of one region has to be there itself.
_OF_ONE_REGION = {"kms": "a key", "sagemaker": "a training plan"}
_EKS_GUIDE = "Amazon EKS user guide, create access entries; access policy permissions"
_EKS_ENTRY = (
    "Amazon EKS user guide, create access entries (one existing IAM principal, for STANDARD entries also one of "
    "another account); Pulumi AWS provider, allowedAccountIds"
)
_ACCOUNTS = "Pulumi AWS provider, allowedAccountIds"
_LIFECYCLE = "SageMaker API reference, ClusterLifeCycleConfig: takes neither a digest nor an object's version"
_POD_IDENTITY = "Amazon EKS user guide, EKS Pod Identities; Kubernetes, RBAC good practices (creating workloads)"


def _roles(context: Context) -> Iterator[Issue]:
    administrators = set(context.spec.eks.administrators)
    teams_of: dict[str, list[str]] = {}
    for member in context.members:
        if not member.admitted:
            continue
        if member.role in administrators:
            yield Issue(
                member.path,
                f"{member.role} is a data scientist of {member.team} and an administrator of {context.environment}",
                "Use two roles: an administrator bypasses every limit of the team.",
                policy="team-access-policies-in-namespace",
            )
        teams = teams_of.setdefault(member.role, [])
        if member.team not in teams:
            teams.append(member.team)
            if len(teams) > 1:
                yield Issue(
                    member.path,
                    f"{member.role} is in the teams {listing(sorted(teams))}",
                    "Give each team a role of its own, so that work counts against the right quota.",
                    policy="team-bindings-in-namespace",
                )


def _viewers(context: Context) -> Iterator[Issue]:
    administrators = {principal_of(each) for each in context.spec.eks.administrators}
    teams = {principal_of(member.role): member.team for member in context.members if member.admitted}
    for position, viewer in enumerate(context.spec.eks.viewers):
        who = principal_of(viewer)
        others = [f"a data scientist of {teams[who]}"] if who in teams else []
        others += ["an administrator"] if who in administrators else []
        if others:
            yield Issue(
                ("environments", context.environment, "eks", "viewers", position),
                f"{viewer} is a viewer of {context.environment} and {listing(others)}",
                "Use two roles: a role has one access entry in a cluster, and a viewer reads what no team may.",
                policy="team-access-policies-in-namespace" if who in teams else "",
            )


def _service_accounts(context: Context) -> Iterator[Issue]:
    for index, team in enumerate(context.organization.teams):
        for position, name in enumerate(team.service_accounts):
            yield Issue(
                ("teams", index, "serviceAccounts", position),
                f"whoever is in {team.name} has the rights of the service account {name}",
                "Give it no more than the whole team may have, in the cluster and at AWS; waive this with the reason.",
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
                f"{arn} is of the partition {match['partition']}, and {region} is in {partition}",
                f"Name what is in {partition}; partitions share nothing.",
            )
        elif match["region"] and match["region"] != region and match["service"] in _OF_ONE_REGION:
            yield Issue(
                path,
                f"{arn} is in {match['region']}, and {context.environment} in {region}",
                f"Name {_OF_ONE_REGION[match['service']]} in {region}.",
            )


def _roles_of_others(context: Context) -> Iterator[Issue]:
    account = context.spec.account
    for path, arn in context.texts:
        match = _ARN.match(arn)
        if path[-1] not in _HANDED_OVER or account is None or match is None or match["account"] in (None, account):
            continue
        if path[-1] == _BOUNDARY:
            why, fix = "a role takes no boundary of another account", f"Name a policy of {account}."
        else:
            why = "nobody may pass a role of another account to a service"
            fix = f"Name a role of {account}; or leave {path[-1]} out where the kit may make one."
        yield Issue(
            path,
            f"{arn} is of the account {match['account']}, and {context.environment} is in {account}: {why}",
            fix,
        )


def _other_accounts(context: Context) -> Iterator[Issue]:
    account = context.spec.account
    if account is None:
        return
    for path, arn in context.texts:
        match = _ARN.match(arn)
        if match is None or match["account"] in (None, account) or path[-1] in _HANDED_OVER or "members" in path:
            continue
        other, named = match["account"], path[-2] if isinstance(path[-1], int) else path[-1]
        if other == NOBODYS_ACCOUNT:
            whose = f"the examples' account {other}, which you don't own"
        elif named in _HAS_ACCESS:
            whose = f"account {other}, {_HAS_ACCESS[str(named)]}"
        else:
            continue
        yield Issue(
            path,
            f"{arn} is in {whose}; {context.environment} is in account {account}",
            f"Write `{arn.replace(str(other), account)}`, or waive this with the reason.",
        )
    yield from _left_out(context, account)


def _left_out(context: Context, account: str) -> Iterator[Issue]:
    """Report, once for an environment, the members that it doesn't admit because they are of another account."""
    here = {team.name for team in context.plan.teams}
    staffed = {member.team for member in context.members if member.admitted}
    others = {each.account for each in context.organization.environments.values()}
    roles: dict[str, list[str]] = {}
    for member in context.members:
        # A team lists the roles of each environment's account, and every environment admits its own. An environment
        # that couldn't be read may be in any account.
        known = principal_of(member.role)[0] in others or not context.is_whole
        elsewhere = member.path[0] == "teams" and member.team in staffed and known
        if not member.admitted and member.team in here and not elsewhere:
            roles.setdefault(member.team, []).append(member.role)
    if roles:
        totals = Counter(member.team for member in context.members)
        teams = [f"{team} {len(out)} of {totals[team]} ({listing(out, 2)})" for team, out in sorted(roles.items())]
        team, out = min(roles.items())
        meant = out[0].replace(principal_of(out[0])[0], account)
        yield Issue(
            (*context.path, "governance"),
            f"{context.environment} is in account {account} and leaves out members of other accounts: "
            f"{listing(teams, 4)}",
            f'Name roles of {account} in `overrides`, such as `{team}: {{members: ["{meant}"]}}`; they replace '
            "the team's members in this environment.",
        )


def _topics_of_others(context: Context) -> Iterator[Issue]:
    account, observability = context.spec.account, context.spec.observability
    alerts = observability.alerts if observability else None
    match = _ARN.match(alerts.sns_topic_arn) if alerts and alerts.sns_topic_arn else None
    if account is None or match is None or match["account"] in (account, NOBODYS_ACCOUNT):
        return
    yield Issue(
        (*context.path, "observability", "alerts", "snsTopicArn"),
        f"the topic is of the account {match['account']}, and {context.environment} is in {account}: Managed "
        "Prometheus notifies topics of its own account alone",
        f"Name a topic of {account}, which may hand on what it gets.",
    )


def _names_of_roles(context: Context) -> Iterator[Issue]:
    for path, arn in context.texts:
        begins = _ROLE_LIKE.match(arn)
        if begins is None or _ROLE.match(arn):
            continue
        name = arn.rpartition("/")[2]
        yield Issue(
            path,
            f"{arn} is the ARN of no role: behind the account it has `:role/` and a name",
            f"Write `{begins[1]}:role/{name}`." if name else "Add the role's name, as `aws iam list-roles` has it.",
        )


def _scripts_are_objects(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        uri = group.lifecycle_script if isinstance(group, InstanceGroup) else None
        if uri is not None and uri.startswith("s3://"):
            key = uri.removeprefix("s3://").partition("/")[2]
            if not key or key.endswith("/"):
                yield Issue(
                    (*path, "lifecycleScript"),
                    f"{uri} is a {'folder' if key else 'bucket'}, and nodes of {group.name} run a script",
                    f"Name the script in it, such as {uri.rstrip('/')}/on_create.sh.",
                )


def _account(context: Context) -> Iterator[Issue]:
    if context.spec.account is None:
        yield Issue(
            context.path,
            f"{context.environment} names no account: `pulumi up` makes it in whichever the credentials are of, and "
            "`pulumi refresh` with those of another one empties its state",
            "Write account with its 12 digits in quotes: what aws sts get-caller-identity says.",
        )


def _scripts(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        if isinstance(group, InstanceGroup) and group.lifecycle_script is not None and group.has_lifecycle:
            uri = group.lifecycle_script
            bucket, _, key = uri.partition("://")[2].partition("/")
            # What names no script runs nothing (ACC010).
            if group.lifecycle_script_sha256 is None and key and not key.endswith("/"):
                yield Issue(
                    (*path, "lifecycleScript"),
                    f"every new node of {group.name} runs {uri} as root, whatever it says by then: who may write to "
                    f"the bucket {bucket} is root there",
                    "Write lifecycleScriptSha256 with what `sha256sum` prints of it; the nodes then run nothing else.",
                )


def _digests(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        if isinstance(group, InstanceGroup) and group.lifecycle_script_sha256 is not None:
            uri = group.lifecycle_script or "not there"
            if not uri.startswith("s3://"):
                yield Issue(
                    (*path, "lifecycleScriptSha256"),
                    f"{group.name} has the digest of a script, and lifecycleScript is {uri}: nodes verify what they "
                    "fetch from S3",
                    "Name a script at s3://… in lifecycleScript; or remove the digest: what is the kit's needs none.",
                )


RULES = (
    Rule("ACC008", "error", "ARNs are of the region's partition; keys and training plans of the region.", _ARNS, _arns),
    Rule("ACC007", "error", "A role for a service, and its boundary, is of the account.", _PASSED, _roles_of_others),
    Rule("ACC009", "error", "The ARN of a role is one.", _ARNS, _names_of_roles, waivable=False),
    Rule("ACC010", "error", "A lifecycle script is an object of its bucket.", _LIFECYCLE, _scripts_are_objects),
    Rule("ACC011", "warning", "Roles with access belong to the environment's account.", _EKS_ENTRY, _other_accounts),
    Rule("ACC012", "error", "Alerts of Managed Prometheus go to a topic of the account.", _ALERT_MANAGER,
         _topics_of_others),
    Rule("ACC004", "warning", "An environment names its AWS account.", _ACCOUNTS, _account),
    Rule("ACC005", "warning", "A lifecycle script of one's own is named with its SHA-256.", _LIFECYCLE, _scripts),
    Rule("ACC006", "error", "A SHA-256 is that of a lifecycle script of one's own in S3.", _LIFECYCLE, _digests),
    Rule("ACC001", "warning", "A data scientist's role is in one team, and administers nothing.", _GUIDE, _roles),
    Rule("ACC002", "error", "A viewer is neither an administrator nor a data scientist.", _EKS_GUIDE, _viewers),
    Rule(
        "ACC003", "warning", "A team's pods run as no service account but `default`.", _POD_IDENTITY, _service_accounts
    ),
)  # fmt: skip
