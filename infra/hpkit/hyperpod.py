"""Resources of the `hyperpod` plugin, for Pulumi programs that don't use `hpkit.Platform`."""

from hpkit.program.sdk import Cluster, ClusterSchedulerConfig, ComputeQuota, Provider

__all__ = ["Cluster", "ClusterSchedulerConfig", "ComputeQuota", "Provider"]
