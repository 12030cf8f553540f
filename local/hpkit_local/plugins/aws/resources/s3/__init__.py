"""The types of Pulumi's `aws` plugin for S3."""
