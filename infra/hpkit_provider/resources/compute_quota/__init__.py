"""The ComputeQuota resource."""
