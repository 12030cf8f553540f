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
        node_wait_seconds: pulumi.Input[str] | None = None,
        allow_replace: pulumi.Input[str] | None = None,
        contents: pulumi.Input[str] | None = None,
        leaving_teams: pulumi.Input[str] | None = None,
        capacity_wait_seconds: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine.

        Args:
            resource_name: Name in the program.
            region: AWS region; else aws:region, else the environment's.
            endpoint: URL of the SageMaker API; for a local cloud.
            profile: Named profile; else aws:profile, else the environment's.
            account_id: Account that the credentials must be of: with another one's, nothing is read or changed.
            assume_role_arn: Role to assume for every call.
            node_wait_seconds: How long to wait for nodes once a cluster is InService (1200); then go on with a
                warning.
            allow_replace: `true` lets a change replace clusters.
            contents: What another account or region would lose, as messages say it.
            leaving_teams: Teams, separated by commas, whose quotas this run deletes: they give way to growing
                quotas first.
            capacity_wait_seconds: How long a growing quota waits for capacity that no known change will free
                (20).
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
                "nodeWaitSeconds": node_wait_seconds,
                "allowReplace": allow_replace,
                "contents": contents,
                "leavingTeams": leaving_teams,
                "capacityWaitSeconds": capacity_wait_seconds,
            },
            opts,
        )
