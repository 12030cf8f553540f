"""The ComputeQuota resource, and the order in which quotas of a cluster change."""
