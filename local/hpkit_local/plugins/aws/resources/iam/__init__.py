"""The types of Pulumi's `aws` plugin for IAM."""
