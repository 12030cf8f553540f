"""IAM roles, access entries, and RBAC."""
