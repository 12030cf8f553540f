"""IAM: what roles and policies grant, and which principals a role trusts.

It doesn't check policies of resources (bucket, key), where `*` is the resource itself.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hpkit.text.formatting import listing
from hpkit_policies.actions import takes_resource
from hpkit_policies.documents import DocumentError, Statement, statements
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
# Resources of these services are rights, secrets and code: all of one type is as good as all.
_SENSITIVE: Final = frozenset({"iam", "kms", "lambda", "secretsmanager", "ssm", "sts"})
_ONLY_WILDCARDS: Final = re.compile(r"[*?:/]*")
_ONE_TYPE: Final = re.compile(r"[\w-]+[:/][*?:/]+")
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

_ACTIONS: Final = Parameter(
    "actions",
    "Accepted actions with a wildcard, such as ec2:Describe*.",
    {"type": "array", "items": {"type": "string"}},
    [],
)
_ANY_RESOURCE: Final = Parameter(
    "actions",
    "Accepted actions that support resource-level permissions but are granted on any resource.",
    {"type": "array", "items": {"type": "string"}},
    [],
)
_ATTACHED: Final = Parameter(
    "policies",
    "Policies that may be attached: ARNs, or names of AWS managed policies. Always allowed: "
    + ", ".join(_MANAGED)
    + ".",
    {"type": "array", "items": {"type": "string"}},
    [],
)
_TRUSTED: Final = Parameter(
    "services",
    "Services that roles may trust. Always allowed: " + ", ".join(_SERVICES) + ".",
    {"type": "array", "items": {"type": "string"}},
    [],
)
_PRINCIPALS: Final = Parameter(
    "principals",
    "Accounts, roles and users that roles may trust (ARNs or account IDs).",
    {"type": "array", "items": {"type": "string"}},
    [],
)


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
                f"{resource.name} attaches {arn}",
                f"Move the required permissions to a policy of the stack, or list this policy in {_ATTACHED.name}.",
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
    return f"{resource.name}, statement {statement.sid}," if statement.sid else resource.name


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
                for problem, fix in _problems(kind, name, statement, settings):
                    yield Violation(f"{_where(role, statement)} {problem}", fix)


def _problems(principal_type: str, name: str, statement: Statement, settings: Settings) -> Iterator[tuple[str, str]]:
    conditions = statement.binding_conditions()
    limited = any(_names_source(key, values) for key, values in conditions.items())
    if name == "*":
        yield "trusts everyone", "Set the principal to the service that assumes the role."
    elif principal_type == "Service":
        known_service = _SERVICES.get(name)
        if known_service is None and name not in settings[_TRUSTED.name]:
            yield f"trusts {name}", f"Trust one of {listing(list(_SERVICES))}, or list it in {_TRUSTED.name}."
        elif known_service and not limited:
            yield (
                f"trusts {name} on behalf of any account",
                "Add a condition on aws:SourceAccount or aws:SourceArn.",
            )
    elif principal_type == "Federated":
        subjects = [(key, values) for key, values in conditions.items() if key.endswith(":sub")]
        if not any(all(map(_names_subject, values)) for _, values in subjects):
            yield f"trusts every identity of {name}", "Add a condition on the token's :sub."
        elif not any(all(_names_branch(key, value) for value in values) for key, values in subjects):
            yield (
                f"trusts {listing([value for _, values in subjects for value in values])}, which any branch can claim",
                "Add the branch to the condition on :sub, such as `repo:acme/platform:ref:refs/heads/main`.",
            )
    elif name not in _accepted(settings[_PRINCIPALS.name]):
        yield f"trusts {name}", f"Trust a service, or list the principal in {_PRINCIPALS.name}."


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


def _names_subject(value: str) -> bool:
    """Return whether a subject contains an organization or a namespace before its first wildcard."""
    return bool(re.match(r"[^:/*?]+(?:[:/]|$)", _SUBJECT_WORDS.sub("", value)))


def _names_branch(key: str, subject: str) -> bool:
    """Return whether a forge's subject is limited to one branch; other issuers have no branches."""
    pattern = next((pattern for issuer, pattern in _BRANCHES.items() if key.startswith(issuer)), None)
    return pattern is None or bool(pattern.fullmatch(subject))


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
        description="Roles trust only listed services, and only on behalf of this account if the service acts for "
        "others.",
        types=(_ROLE,),
        validate=_trust_is_limited,
        parameters=(_TRUSTED, _PRINCIPALS),
    ),
)
