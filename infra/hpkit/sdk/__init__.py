"""Typed resource classes of the hyperpod package."""

# Written by `hpkit generate` from the schema of the plugin; do not edit.

from hpkit.sdk.autoscaled_group import AutoscaledGroup
from hpkit.sdk.change_guard import ChangeGuard
from hpkit.sdk.cluster import Cluster
from hpkit.sdk.cluster_scheduler_config import ClusterSchedulerConfig
from hpkit.sdk.compute_quota import ComputeQuota
from hpkit.sdk.provider import Provider

__all__ = ["AutoscaledGroup", "ChangeGuard", "Cluster", "ClusterSchedulerConfig", "ComputeQuota", "Provider"]
