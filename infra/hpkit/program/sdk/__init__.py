"""Typed resource classes of the `hyperpod` package."""

# Written by `make generate` from the schema of the plugin; do not edit.

from hpkit.program.sdk.autoscaled_group import AutoscaledGroup
from hpkit.program.sdk.change_guard import ChangeGuard
from hpkit.program.sdk.cluster import Cluster
from hpkit.program.sdk.cluster_scheduler_config import ClusterSchedulerConfig
from hpkit.program.sdk.compute_quota import ComputeQuota
from hpkit.program.sdk.provider import Provider
from hpkit.program.sdk.readiness import Readiness

__all__ = [
    "AutoscaledGroup",
    "ChangeGuard",
    "Cluster",
    "ClusterSchedulerConfig",
    "ComputeQuota",
    "Provider",
    "Readiness",
]
