"""ClusterSchedulerConfig: the one policy of a cluster."""

from __future__ import annotations

from typing import ClassVar

from provider.errors import RefusedError
from provider.governed import Document, Governed
from provider.task import Task
from provider.values import Props

__all__ = ["ClusterSchedulerConfig"]


class ClusterSchedulerConfig(Governed):
    """Handler of hyperpod:index:ClusterSchedulerConfig."""

    name: ClassVar[str] = "ClusterSchedulerConfig"
    title: ClassVar[str] = "ClusterSchedulerConfig"
    snake: ClassVar[str] = "cluster_scheduler_config"

    def look(self, task: Task, arn: str, inputs: Props) -> Document | None:
        """Return it; there is one a cluster, so a call of its own costs nothing."""
        del inputs
        return self.describe(task, arn)

    def find(self, task: Task, inputs: Props) -> Document | None:
        """Return the policy of the cluster; one of another name is in the way."""
        for entry in self.api.pages(
            task,
            "list_cluster_scheduler_configs",
            member="ClusterSchedulerConfigSummaries",
            ClusterArn=inputs["clusterArn"],
        ):
            if entry["Status"] == "Deleted":
                continue
            if entry["Name"] != inputs["name"]:
                raise RefusedError(
                    f"The cluster already has the policy {entry['Name']!r}, and can have one. What to do: "
                    f"`pulumi import hyperpod:index:ClusterSchedulerConfig NAME {entry['ClusterSchedulerConfigArn']}`, "
                    "or delete it."
                )
            return dict(entry)
        return None

    def complete(self, inputs: Props) -> Props:
        """Write the defaults out: API reference of CreateClusterSchedulerConfig."""
        return {
            **inputs,
            "description": inputs.get("description", ""),
            "schedulerConfig": {
                "fairShare": "Enabled",
                "idleResourceSharing": "Disabled",
                "priorityClasses": [],
                **inputs["schedulerConfig"],
            },
        }
