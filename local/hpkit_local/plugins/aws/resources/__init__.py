"""The resource types and functions of Pulumi's `aws` plugin, one module or folder per AWS service."""
