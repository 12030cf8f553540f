"""The current state of a running platform, read from SageMaker, EKS and the Kubernetes API, and its display."""
