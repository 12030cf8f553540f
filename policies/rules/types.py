"""Resource types: only those that the pack can judge, since a type that it doesn't know passes every other policy.

Does not: judge what a program does outside of resources; reviews of the program do that.
"""

from collections.abc import Mapping
from typing import Final

from hpkit.checks.rule import listing
from policies.model import Parameter, Policy, Resource, Results, Settings, Violation
from policies.rules import iam

__all__ = ["POLICIES"]

_PROVIDERS: Final = "pulumi:providers:"
_PACKAGES: Final = frozenset({"aws", "hpkit", "hyperpod", "kubernetes", "pulumi"})
# Each names roles or issuers, and grants nothing: what a role grants and whom it trusts is judged at the role.
_HARMLESS: Final = frozenset(
    {
        "aws:iam/group:Group",
        "aws:iam/instanceProfile:InstanceProfile",
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider",
        "aws:iam/serviceLinkedRole:ServiceLinkedRole",
        "aws:iam/user:User",
    }
)
_JUDGED: Final = frozenset(iam.JUDGED)
# Module of AWS, or one type of it → what its resources do that no other policy sees. Source: AWS's guides of these
# services; each acts with rights of its own, or hands rights to somebody outside of the stack.
_ACTING: Final[Mapping[str, str]] = {
    "cloudcontrol": "makes a resource of any type",
    "cloudformation": "makes whatever its template says",
    "codebuild": "runs commands with a role",
    "codepipeline": "runs commands with a role",
    "eks/capability": "makes resources of AWS from objects of the cluster",
    "eks/identityProviderConfig": "lets identities of another issuer into the cluster",
    "kms/grant": "gives a key away beside its policy",
    "lambda": "runs code with a role",
    "organizations": "changes rights of whole accounts",
    "ram": "shares resources with other accounts",
    "rolesanywhere": "lets holders of certificates assume roles",
    "serverlessrepository": "makes whatever its template says",
    "servicecatalog": "makes whatever its template says",
    "sfn": "calls any service with a role",
    "ssm/association": "runs commands on instances",
    "ssm/document": "holds commands that run on instances",
    "ssoadmin": "gives rights to people of the organization",
}
_TYPES: Final = Parameter(
    "types",
    "Types (aws:lambda/function:Function) and packages (random) that are accepted beside those that the pack knows.",
    {"type": "array", "items": {"type": "string"}},
    [],
)


def _can_be_judged(resource: Resource, settings: Settings) -> Results:
    package = resource.type.removeprefix(_PROVIDERS).partition(":")[0]
    if {resource.type, package} & set(settings[_TYPES.name]):
        return
    reason = _reason(resource.type, package)
    if reason:
        yield Violation(
            f"{resource.name} has the type {resource.type}, which {reason}",
            f"Write what it does as resources that the pack judges, or list the type in {_TYPES.name}.",
        )


def _reason(resource_type: str, package: str) -> str | None:
    if package not in _PACKAGES:
        return f"the pack can't judge: it knows {listing(sorted(_PACKAGES))}"
    if package == "kubernetes":
        return "holds others, which no policy of the pack judges" if resource_type.endswith("List") else None
    if package != "aws":
        return None
    # The token is aws:<module>/<name>:<Name>.
    name = resource_type.split(":")[1]
    module = name.partition("/")[0]
    if module == "iam" and resource_type not in _HARMLESS | _JUDGED:
        return "no policy of the pack judges"
    return _ACTING.get(module) or _ACTING.get(name)


POLICIES = (
    Policy(
        name="resource-types-judged",
        description="Resources have types that the pack can judge: none runs code, makes other resources, or hands out "
        "rights unseen.",
        validate=_can_be_judged,
        parameters=(_TYPES,),
    ),
)
