"""The service behind the AWS API: what EKS, HyperPod and task governance do in the cluster, on the local API server."""

from local.effects.service import make

__all__ = ["make"]
