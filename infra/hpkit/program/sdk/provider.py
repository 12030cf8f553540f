"""The provider of the `hyperpod` package."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

import pulumi

__all__ = ["Provider"]


class Provider(pulumi.ProviderResource):
    """Explicit settings of the `hyperpod` plugin."""

    def __init__(
        self,
        resource_name: str,
        *,
        region: pulumi.Input[str] | None = None,
        endpoint: pulumi.Input[str] | None = None,
        profile: pulumi.Input[str] | None = None,
        account_id: pulumi.Input[str] | None = None,
        assume_role_arn: pulumi.Input[str] | None = None,
        allow_replace: pulumi.Input[str] | None = None,
        contents: pulumi.Input[str] | None = None,
        leaving_teams: pulumi.Input[str] | None = None,
        capacity_wait_seconds: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine.

        Args:
            resource_name: Name in the program.
            region: AWS region. Default: aws:region, or the region in the environment variables.
            endpoint: URL of the SageMaker API, for a local cloud.
            profile: Named profile. Default: aws:profile, or the profile in the environment variables.
            account_id: Required account of the credentials. With credentials of another account, nothing is
                read or changed.
            assume_role_arn: Role to assume for each call.
            allow_replace: `true` allows changes that replace clusters.
            contents: What a move to another account or region would delete, for messages.
            leaving_teams: Comma-separated teams whose quotas this run deletes. They are set to 0 if the service
                rejects an increase of another quota.
            capacity_wait_seconds: Seconds during which an increase that the service rejects is tried again
                (300).
            opts: Options of the engine.
        """
        super().__init__(
            "hyperpod",
            resource_name,
            {
                "region": region,
                "endpoint": endpoint,
                "profile": profile,
                "accountId": account_id,
                "assumeRoleArn": assume_role_arn,
                "allowReplace": allow_replace,
                "contents": contents,
                "leavingTeams": leaving_teams,
                "capacityWaitSeconds": capacity_wait_seconds,
            },
            opts,
        )
