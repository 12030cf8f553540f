"""The types of Pulumi's `aws` plugin for EC2."""
