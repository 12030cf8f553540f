"""An instance group that managed Karpenter scales. Its NodeClass releases it before it's deleted."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

import pulumi

__all__ = ["AutoscaledGroup"]


class AutoscaledGroup(pulumi.CustomResource):
    """An instance group that managed Karpenter scales. Its NodeClass releases it before it's deleted."""

    def __init__(
        self,
        resource_name: str,
        *,
        cluster_arn: pulumi.Input[str],
        instance_group_name: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            cluster_arn: ARN of the cluster that has the group. A change replaces the resource.
            instance_group_name: Name of the group, as the Cluster declares it. A change replaces the resource.
            opts: Options of the engine.
        """
        super().__init__(
            "hyperpod:index:AutoscaledGroup",
            resource_name,
            {
                "clusterArn": cluster_arn,
                "instanceGroupName": instance_group_name,
            },
            opts,
        )
