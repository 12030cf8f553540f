"""The `hyperpod` resource plugin: Amazon SageMaker HyperPod clusters, team quotas and cluster policies."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
