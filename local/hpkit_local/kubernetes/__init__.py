"""A Kubernetes control plane on loopback, without root: API server on etcd, Kueue, Karpenter's kinds."""
