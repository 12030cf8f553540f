"""The identity that creates the platform: one for the aws provider, the `hyperpod` plugin and EKS tokens.

Explicit providers ignore a stack's `aws:` configuration, and `aws eks get-token` knows nothing about Pulumi. So each
setting there is passed to all three, or rejected. The environment, which all three read, isn't handled here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi

__all__ = ["Credentials", "configured", "connection"]

# Settings of an assumed role that `aws eks get-token` supports too, and that don't change the identity.
_KNOWN: Final = frozenset({"roleArn", "sessionName", "duration"})
# Settings that could affect only the aws provider.
_ONE_ONLY: Final = (
    "accessKey",
    "secretKey",
    "token",
    "assumeRoleWithWebIdentity",
    "sharedConfigFiles",
    "sharedCredentialsFiles",
)
_SWITCHES: Final = {
    "s3UsePathStyle": "s3_use_path_style",
    "skipCredentialsValidation": "skip_credentials_validation",
    "skipMetadataApiCheck": "skip_metadata_api_check",
    "skipRegionValidation": "skip_region_validation",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """A profile of the shared configuration, and a role to assume from there, as arguments of the aws provider."""

    profile: str | None = None
    roles: Sequence[Mapping[str, Any]] = field(default=())

    @property
    def role_arn(self) -> str | None:
        """The role to assume, if there is one."""
        return str(self.roles[0]["roleArn"]) if self.roles else None

    def token_options(self) -> list[str]:
        """Return the options of `aws eks get-token` that make it ask as the same identity (AWS CLI reference)."""
        profile = ["--profile", self.profile] if self.profile else []
        return [*profile, *(["--role-arn", self.role_arn] if self.role_arn else [])]


def connection() -> dict[str, Any]:
    """Return how the stack's `aws:` settings reach AWS, as arguments of the aws provider.

    The `hyperpod` plugin reads `aws:endpoints` itself.
    """
    aws = pulumi.Config("aws")
    switches = {name: aws.get_bool(setting) for setting, name in _SWITCHES.items()}
    return {"endpoints": aws.get_object("endpoints"), **{name: on for name, on in switches.items() if on is not None}}


def configured() -> Credentials:
    """Return the stack's `aws:profile` and `aws:assumeRoles`. Raises pulumi.RunError for unsupported values."""
    aws = pulumi.Config("aws")
    unusable = [f"aws:{name}" for name in _ONE_ONLY if aws.get(name)]
    if unusable:
        raise _rejected(
            f"only the aws provider would use {', '.join(unusable)}",
            "Put the credentials into a profile and set aws:profile, or use the environment (AWS_ACCESS_KEY_ID, …)",
        )
    try:
        roles = aws.get_object("assumeRoles") or []
    except pulumi.ConfigTypeError:
        roles = None
    if not isinstance(roles, list) or not all(isinstance(each, dict) and each.get("roleArn") for each in roles):
        example = "pulumi config set --path 'aws:assumeRoles[0].roleArn' arn:aws:iam::123456789012:role/deploy"
        raise _rejected("aws:assumeRoles isn't a list of roles with a roleArn", f"Set it with: {example}")
    if len(roles) > 1:
        arns = ", ".join(str(each["roleArn"]) for each in roles)
        raise _rejected(
            f"aws:assumeRoles has {len(roles)} roles ({arns}), but an EKS token can only be requested with one",
            "Keep the last one, and put the others into a profile (role_arn, source_profile)",
        )
    further = sorted({name for each in roles for name in each} - _KNOWN)
    if further:
        raise _rejected(
            f"aws:assumeRoles[0] has {', '.join(further)}, which `aws eks get-token` doesn't support",
            "Put the role into a profile with these settings (role_arn, external_id, …), and set aws:profile",
        )
    return Credentials(aws.get("profile"), tuple(roles))


def _rejected(what: str, fix: str) -> pulumi.RunError:
    return pulumi.RunError(
        f"{what}: the aws provider, the `hyperpod` plugin and kubeconfig would use different identities. Nothing was "
        f"created. {fix}."
    )
