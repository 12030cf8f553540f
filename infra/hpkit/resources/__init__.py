"""Typed resource classes of the hyperpod package."""

# Written by `hpkit generate` from the schema of the plugin; do not edit.

from hpkit.resources.cluster import Cluster
from hpkit.resources.cluster_scheduler_config import ClusterSchedulerConfig
from hpkit.resources.compute_quota import ComputeQuota
from hpkit.resources.provider import Provider

__all__ = ["Cluster", "ClusterSchedulerConfig", "ComputeQuota", "Provider"]
