"""SageMaker HyperPod on EKS: clusters, nodes, compute quotas and cluster policies."""
