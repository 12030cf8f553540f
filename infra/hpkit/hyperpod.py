"""Resources of the `hyperpod` plugin, for Pulumi programs that want these alone."""

from hpkit.program.sdk import Cluster, ClusterSchedulerConfig, ComputeQuota, Provider

__all__ = ["Cluster", "ClusterSchedulerConfig", "ComputeQuota", "Provider"]
