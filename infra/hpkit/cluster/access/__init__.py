"""Access on a running platform: EKS access entries and Kubernetes bindings, compared with the organization file."""
