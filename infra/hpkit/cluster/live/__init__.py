"""A running platform as it is now: read from SageMaker, EKS and the Kubernetes API, and told in words."""
