"""ClusterSchedulerConfig: the only policy of a cluster."""

from __future__ import annotations

from typing import ClassVar

from hpkit_provider.aws.client import Document
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import RefusedError
from hpkit_provider.engine.values import Props
from hpkit_provider.resources.versioned_handler import VersionedHandler

__all__ = ["ClusterSchedulerConfigHandler"]


class ClusterSchedulerConfigHandler(VersionedHandler):
    """Handler of hyperpod:index:ClusterSchedulerConfig."""

    name: ClassVar[str] = "ClusterSchedulerConfig"
    operation: ClassVar[str] = "cluster_scheduler_config"

    def poll(self, call: EngineCall, arn: str, inputs: Props) -> Document | None:
        """Return it; a cluster has only one, so a separate call costs nothing."""
        del inputs
        return self.describe(call, arn)

    def find(self, call: EngineCall, inputs: Props) -> Document | None:
        """Return the cluster's policy; one with another name is a conflict."""
        for entry in self.api.pages(
            call,
            "list_cluster_scheduler_configs",
            member="ClusterSchedulerConfigSummaries",
            ClusterArn=inputs["clusterArn"],
        ):
            if entry["Status"] == "Deleted":
                continue
            if entry["Name"] != inputs["name"]:
                raise RefusedError(
                    f"The cluster already has the policy {entry['Name']!r}, and can only have one. What to do: "
                    "`pulumi import hyperpod:index:ClusterSchedulerConfig NAME "
                    f"{entry['ClusterSchedulerConfigArn']}`, or delete it."
                )
            return entry
        return None
