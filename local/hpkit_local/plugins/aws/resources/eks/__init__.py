"""The types of Pulumi's `aws` plugin for EKS."""
