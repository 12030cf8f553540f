"""IAM documents of a team's data scientists: their permissions, and who can assume the role that hpkit creates."""

from hpkit.config.models.member_role import MemberRole
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.registry import repositories_of
from hpkit.program.iam.account import AwsAccount
from hpkit.program.iam.documents import Document, member_trust, scientist_policy

__all__ = ["policy_of_members", "trust_of_members"]

# The address that a browser posts to on each partition's sign-in page.
_SIGN_IN = {"aws-cn": "https://signin.amazonaws.cn/saml", "aws-us-gov": "https://signin.amazonaws-us-gov.com/saml"}


def policy_of_members(plan: Plan, team: TeamPlan, account: AwsAccount) -> Document:
    """Return the policy that the roles of a team's members need, and no more."""
    own = ("hpkit:organization", "hpkit:environment")
    # The cluster of another stack or tool has other tags, or none.
    is_tagged = plan.spec.manage_tags and not plan.spec.cluster.existing
    return scientist_policy(
        account,
        eks=plan.eks_name,
        tags={key: plan.tags[key] for key in own} if is_tagged else {},
        repositories=[repository.name for repository in repositories_of(plan, team)],
    )


def trust_of_members(role: MemberRole, account: AwsAccount) -> Document:
    """Return the trust policy of a team's role: a statement for each key of `memberRole`."""
    folder = f"arn:{account.partition}:iam::{account.id}:role/aws-reserved/sso.amazonaws.com"
    # Identity Center adds its region to the name, except in us-east-1.
    sets = [f"{folder}{way}/AWSReservedSSO_{name}_*" for name in role.permission_sets for way in ("", "/*")]
    parts: dict[str, dict[str, str | list[str]]] = {
        "permission-sets": {"sets": sets} if sets else {},
        "principals": {"principals": list(role.principals)} if role.principals else {},
    }
    if role.saml_provider is not None:
        audience = _SIGN_IN.get(account.partition, "https://signin.aws.amazon.com/saml")
        parts["saml"] = {"provider": role.saml_provider, "audience": audience}
    if (oidc := role.oidc) is not None:
        parts["oidc"] = {"provider": oidc.provider, "audience": oidc.audience, "subjects": list(oidc.subjects)}
    return member_trust(account, {way: values for way, values in parts.items() if values})
