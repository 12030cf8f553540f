"""The IAM role that hpkit creates for a team's data scientists, and the principals that can assume it."""

from typing import Annotated

from pydantic import Field

from hpkit.config.models.base import Model

__all__ = ["MemberRole", "OidcTrust"]

# IAM API reference, CreateRole, RoleName, and CreateSAMLProvider, Name. `\w` would match letters beyond ASCII, too.
_NAME = r"[A-Za-z0-9_+=,.@-]"
_PRINCIPAL = rf"^arn:aws[a-z-]*:iam::[0-9]{{12}}:(?:role|user)/(?:{_NAME}+/)*{_NAME}{{1,64}}$"
_Principal = Annotated[str, Field(pattern=_PRINCIPAL)]
# IAM Identity Center API reference, CreatePermissionSet, Name.
_PermissionSet = Annotated[str, Field(pattern=rf"^{_NAME}{{1,32}}$")]
# A subject that begins with a wildcard admits other tenants of a public provider.
_Subject = Annotated[str, Field(pattern=r"^[^*?\s][^\s]*$")]


class OidcTrust(Model):
    """An OpenID Connect provider in IAM."""

    provider: str = Field(
        pattern=r"^[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_./-]+)?$",
        description="Its address without `https://`, such as `token.actions.githubusercontent.com`.",
        examples=["token.actions.githubusercontent.com"],
    )
    audience: str = Field(
        default="sts.amazonaws.com",
        pattern=r"^[^*?\s]+$",
        description="Required `aud`.",
        examples=["sts.amazonaws.com"],
    )
    subjects: tuple[_Subject, ...] = Field(
        min_length=1,
        description="Allowed `sub`, such as `repo:acme/training:ref:refs/heads/main`. `*` matches any text, but can't "
        "come first.",
        examples=["repo:acme/training:ref:refs/heads/main"],
    )


class MemberRole(Model):
    """A role that hpkit creates for a team. Its keys determine who can assume it."""

    permission_sets: tuple[_PermissionSet, ...] = Field(
        default=(),
        description="Permission sets of IAM Identity Center in the account. Each must allow `sts:AssumeRole` on the "
        "role.",
        examples=["DataScientist"],
    )
    principals: tuple[_Principal, ...] = Field(
        default=(), description="Roles and users of any account.", examples=["arn:aws:iam::123456789012:role/ci"]
    )
    saml_provider: str | None = Field(
        default=None, pattern=rf"^{_NAME}{{1,128}}$", description="Name of a SAML provider in IAM.", examples=["Okta"]
    )
    oidc: OidcTrust | None = Field(default=None, description="Tokens that can assume the role.")
