"""Clients of AWS, the Kubernetes API and the Pulumi CLI that several packages share."""
