"""IAM Identity Center: whether an account has it."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "sso-admin",
        refuses_with="ValidationException",
        signs_as="sso",
        scope=r"(?:Create|Delete|List)Instances?$",
    )
)
