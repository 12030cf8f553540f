"""The `hyperpod` resource plugin: Amazon SageMaker HyperPod clusters, team quotas and cluster policies."""

VERSION = "0.1.0"
