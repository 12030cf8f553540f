"""Kueue's objects as plain data: queues, quotas, workloads and decisions, and the model of a plan."""
