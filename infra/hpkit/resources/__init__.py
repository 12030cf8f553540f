"""Typed resource classes of the hyperpod package."""

# Written by `hpkit generate` from the schema of the plugin; do not edit.

from hpkit.resources.autoscaled_group import AutoscaledGroup
from hpkit.resources.change_guard import ChangeGuard
from hpkit.resources.cluster import Cluster
from hpkit.resources.cluster_scheduler_config import ClusterSchedulerConfig
from hpkit.resources.compute_quota import ComputeQuota
from hpkit.resources.provider import Provider

__all__ = ["AutoscaledGroup", "ChangeGuard", "Cluster", "ClusterSchedulerConfig", "ComputeQuota", "Provider"]
