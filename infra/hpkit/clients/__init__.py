"""Clients of AWS and of the Kubernetes API that several packages share."""
