"""Typed resource classes of the `hyperpod` package."""

# Written by `make generate` from the schema of the plugin; do not edit.

from hpkit.program.sdk.resources import (
    AutoscaledGroup,
    ChangeGuard,
    Cluster,
    ClusterSchedulerConfig,
    ComputeQuota,
    Provider,
    Readiness,
)

__all__ = [
    "AutoscaledGroup",
    "ChangeGuard",
    "Cluster",
    "ClusterSchedulerConfig",
    "ComputeQuota",
    "Provider",
    "Readiness",
]
