"""IAM: what roles and policies grant, and which principals a role trusts.

It doesn't check policies of resources (bucket, key), where `*` is the resource itself.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hpkit.plan.principals import names_branch, names_subject
from hpkit.text.formatting import listing
from hpkit_policies.documents import DocumentError, Statement, statements, takes_resource
from hpkit_policies.model import UNKNOWN, Parameter, Policy, Resource, Results, Settings, Undecided, Violation

__all__ = ["CHECKED", "POLICIES"]

_ARN_PARTS: Final = 6
_ROLE: Final = "aws:iam/role:Role"
_DOCUMENTS: Final = (
    "aws:iam/groupPolicy:GroupPolicy",
    "aws:iam/policy:Policy",
    "aws:iam/rolePolicy:RolePolicy",
    "aws:iam/userPolicy:UserPolicy",
    _ROLE,
)
# Service that a role may trust → whether it states on whose behalf it acts, so that the trust can be limited. Sources:
# SageMaker developer guide, "Cross-service confused deputy prevention"; EKS user guide, cluster role and Pod Identity
# role; Managed Grafana and VPC flow logs guides. The page on autoscaling of HyperPod documents no condition.
_SERVICES: Final[Mapping[str, bool]] = {
    "ec2.amazonaws.com": False,
    "eks.amazonaws.com": True,
    "grafana.amazonaws.com": True,
    "hyperpod.sagemaker.amazonaws.com": False,
    "pods.eks.amazonaws.com": True,
    # HyperPod, which assumes execution roles, documents no source.
    "sagemaker.amazonaws.com": False,
    "ssm.amazonaws.com": True,
    "vpc-flow-logs.amazonaws.com": True,
}
# Resources of these services are permissions, secrets and code: all of one type is as good as all.
_SENSITIVE: Final = frozenset({"iam", "kms", "lambda", "secretsmanager", "ssm", "sts"})
_ONLY_WILDCARDS: Final = re.compile(r"[*?:/]*")
_ONE_TYPE: Final = re.compile(r"[\w-]+[:/][*?:/]+")
# Roles and users by name, and roles of permission sets, which only IAM Identity Center creates.
# Source: IAM Identity Center user guide, "Referencing permission sets in resource policies".
_NAMED: Final = re.compile(
    r"arn:aws[a-z-]*:iam::(\d{12}):(?:role/aws-reserved/sso\.amazonaws\.com/(?:\*/)?AWSReservedSSO_[\w+=,.@-]+_\*"
    r"|(?:role|user)/[\w+=,.@/-]+)"
)
_WHOLE_ACCOUNT: Final = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):root")
_SAML: Final = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:saml-provider/[\w+=,.@-]+")
# AWS managed policies that hpkit attaches; each grants only the permissions for its purpose.
_MANAGED: Final = (
    "AmazonEKSClusterPolicy",
    "AmazonSageMakerClusterInstanceRolePolicy",
    "AmazonSageMakerHyperPodInferenceAccess",
    "AmazonSageMakerHyperPodTrainingOperatorAccess",
    "AmazonSageMakerSpacesControllerPolicy",
    "CloudWatchAgentServerPolicy",
    "service-role/AmazonEBSCSIDriverPolicy",
    "service-role/AmazonEFSCSIDriverPolicy",
)
_ATTACHMENTS: Final = (
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
    "aws:iam/policyAttachment:PolicyAttachment",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:iam/userPolicyAttachment:UserPolicyAttachment",
)
# Types of IAM that these policies check.
CHECKED: Final = (*_DOCUMENTS, *_ATTACHMENTS)

_ACTIONS: Final = Parameter("actions", "Accepted actions with a wildcard, such as ec2:Describe*.")
_ANY_RESOURCE: Final = Parameter(
    "actions", "Accepted actions that support resource-level permissions but are granted on any resource."
)
_ATTACHED: Final = Parameter(
    "policies",
    "Policies that may be attached: ARNs, or names of AWS managed policies. Always allowed: "
    + ", ".join(_MANAGED)
    + ".",
)
_TRUSTED: Final = Parameter("services", "Services that roles may trust. Always allowed: " + ", ".join(_SERVICES) + ".")
_PRINCIPALS: Final = Parameter("principals", "Accounts, roles and users that roles may trust (ARNs or account IDs).")


def _no_wildcard_action(resource: Resource, settings: Settings) -> Results:
    for document in _documents(resource):
        for statement in _granting(document):
            if isinstance(statement, Violation | Undecided):
                yield statement
                continue
            accepted = set(settings[_ACTIONS.name])
            wild = [action for action in statement.actions if set("*?") & set(action) and action not in accepted]
            if statement.not_actions:
                yield Violation(
                    f"{_where(resource, statement)} allows all actions except {listing(list(statement.not_actions))}",
                    "List the required actions.",
                )
            if wild:
                yield Violation(f"{_where(resource, statement)} allows {listing(wild)}", "List the required actions.")


def _no_wildcard_resource(resource: Resource, settings: Settings) -> Results:
    for document in _documents(resource):
        for statement in _granting(document):
            if not isinstance(statement, Statement):
                continue  # iam-no-wildcard-action reports what cannot be read
            services = {action.partition(":")[0].lower() for action in statement.actions}
            wide = bool(services & _SENSITIVE) and not statement.binding_conditions()
            anywhere = [each for each in statement.resources if _is_any(each, any_of_type=wide)]
            if statement.not_resources:
                anywhere = [f"all except {listing(list(statement.not_resources))}"]
            accepted = set(settings[_ANY_RESOURCE.name])
            loose = [action for action in statement.actions if takes_resource(action) and action not in accepted]
            if anywhere and loose:
                yield Violation(
                    f"{_where(resource, statement)} allows {listing(loose)} on {anywhere[0]}",
                    "List the resources: these actions support resource-level permissions.",
                )


def _is_any(resource: str, *, any_of_type: bool) -> bool:
    """Return whether a pattern matches all resources of its type: it has no name or, if that counts, only its type."""
    parts = resource.split(":", 5)
    if len(parts) < _ARN_PARTS:
        return set("*?") & set(resource) != set()
    if _ONLY_WILDCARDS.fullmatch(parts[5]):
        return True
    return any_of_type and bool(_ONE_TYPE.fullmatch(parts[5]))


def _named_policies(resource: Resource, settings: Settings) -> Results:
    many = resource.get("managedPolicyArns", []) if resource.type == _ROLE else [resource.get("policyArn")]
    for arn in many:
        name = str(arn).partition(":policy/")[2]
        managed = str(arn).split(":")[4:5] == ["aws"]
        accepted = settings[_ATTACHED.name]
        if not (managed and (name in _MANAGED or name in accepted)) and arn not in accepted:
            yield Violation(
                f"`{resource.name}` attaches {arn}",
                f"Move the required permissions to a policy of the stack, or list this policy in `{_ATTACHED.name}`.",
            )


def _documents(resource: Resource) -> list[Any]:
    if resource.type != _ROLE:
        return [resource.get_or_unknown("policy")]
    inline = resource.get_or_unknown("inlinePolicies", [])
    return [UNKNOWN] if inline is UNKNOWN else [each.get("policy") for each in inline if isinstance(each, Mapping)]


def _granting(document: Any) -> Iterator[Statement | Violation | Undecided]:
    if document is UNKNOWN:
        yield Undecided("what it grants isn't known before the update")
        return
    try:
        yield from (statement for statement in statements(document) if statement.allows)
    except DocumentError as error:
        yield Violation(f"the policy document can't be read: {error}", "Use a JSON policy document.")


def _where(resource: Resource, statement: Statement) -> str:
    return f"`{resource.name}`, statement {statement.sid}," if statement.sid else f"`{resource.name}`"


def _trust_is_limited(role: Resource, settings: Settings) -> Results:
    for statement in _granting(role.get_or_unknown("assumeRolePolicy")):
        if not isinstance(statement, Statement):
            yield statement
            continue
        if statement.not_principals:
            yield Violation(
                f"{_where(role, statement)} trusts all principals except {listing(list(statement.not_principals))}",
                "List who can assume the role in Principal.",
            )
        for kind, names in statement.principals.items():
            for name in names:
                for problem, fix in _problems(kind, name, statement, settings, _own_accounts(role)):
                    yield Violation(f"{_where(role, statement)} {problem}", fix)


def _own_accounts(role: Resource) -> frozenset[str]:
    """Return the accounts to which the role's provider is limited; nested inputs of a provider are JSON text."""
    given = role.provider.get("allowedAccountIds")
    accounts = json.loads(given) if isinstance(given, str) else given
    return frozenset(map(str, accounts)) if isinstance(accounts, Sequence) else frozenset()


def _problems(
    principal_type: str, name: str, statement: Statement, settings: Settings, own_accounts: frozenset[str]
) -> Iterator[tuple[str, str]]:
    conditions = statement.binding_conditions()
    limited = any(_names_source(key, values) for key, values in conditions.items())
    if name == "*":
        yield "trusts everyone", "Set the principal to the service that assumes the role."
    elif principal_type == "Service":
        known_service = _SERVICES.get(name)
        if known_service is None and name not in settings[_TRUSTED.name]:
            yield f"trusts {name}", f"Trust one of {listing(list(_SERVICES))}, or list it in `{_TRUSTED.name}`."
        elif known_service and not limited:
            yield (f"trusts {name} on behalf of any account", "Add a condition on aws:SourceAccount or aws:SourceArn.")
    elif principal_type == "Federated":
        yield from _federated_problems(name, conditions)
    elif name not in _accepted(settings[_PRINCIPALS.name]) and not _is_named(name, conditions, own_accounts):
        yield f"trusts {name}", "Trust a role or user of the stack's account."


def _federated_problems(name: str, conditions: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    if _SAML.fullmatch(name):
        if "saml:aud" not in conditions:
            yield f"trusts assertions of {name} for any application", "Add a condition on SAML:aud."
        return
    subjects = [(key, values) for key, values in conditions.items() if key.endswith(":sub")]
    if not any(all(map(names_subject, values)) for _, values in subjects):
        yield f"trusts every identity of {name}", "Add a condition on the token's :sub."
    elif not any(all(names_branch(key, value) for value in values) for key, values in subjects):
        yield (
            f"trusts {listing([value for _, values in subjects for value in values])}, which any branch can claim",
            "Add the branch to the condition on :sub, such as `repo:acme/platform:ref:refs/heads/main`.",
        )


def _is_named(principal: str, conditions: Mapping[str, Sequence[str]], own_accounts: frozenset[str]) -> bool:
    """Return whether a principal is a role or user of the stack's account, perhaps by a condition on the account."""
    whole = _WHOLE_ACCOUNT.fullmatch(principal)
    matches = [_NAMED.fullmatch(arn) for arn in (conditions.get("aws:principalarn", ()) if whole else (principal,))]
    accounts = {match[1] if match else "" for match in (*matches, *([whole] if whole else ()))}
    return bool(matches) and accounts <= own_accounts


def _names_source(key: str, values: Sequence[str]) -> bool:
    """Return whether a condition limits to an account or its resources; a value for any account doesn't."""
    if key == "aws:sourceaccount":
        return all(value.isdigit() for value in values)
    if key != "aws:sourcearn":
        return False
    parts = [value.split(":", 5) for value in values]
    return all(len(each) == _ARN_PARTS and (each[4].isdigit() or _is_bucket(each)) for each in parts)


def _is_bucket(parts: Sequence[str]) -> bool:
    """Return whether an ARN is that of one bucket, which contains no account."""
    return parts[2] == "s3" and not set("*?") & set(parts[5].partition("/")[0])


def _accepted(principals: Sequence[str]) -> set[str]:
    """Return principals with the other way to write an account: its id and the ARN of its root are the same."""
    return {*principals, *(f"arn:aws:iam::{each}:root" for each in principals if each.isdigit())}


POLICIES = (
    Policy(
        name="iam-attached-policies-named",
        description="Only listed policies are attached to roles, users and groups.",
        types=(*_ATTACHMENTS, _ROLE),
        validate=_named_policies,
        parameters=(_ATTACHED,),
    ),
    Policy(
        name="iam-no-wildcard-action",
        description="Permissions of roles, users and groups contain no wildcard actions.",
        types=_DOCUMENTS,
        validate=_no_wildcard_action,
        parameters=(_ACTIONS,),
    ),
    Policy(
        name="iam-no-wildcard-resource",
        description="Actions that support resource-level permissions are granted only on specific resources.",
        types=_DOCUMENTS,
        validate=_no_wildcard_resource,
        parameters=(_ANY_RESOURCE,),
    ),
    Policy(
        name="iam-trust-limited",
        description="Roles trust only roles and users of this account and listed services, and services only on behalf "
        "of this account.",
        types=(_ROLE,),
        validate=_trust_is_limited,
        parameters=(_TRUSTED, _PRINCIPALS),
    ),
)
