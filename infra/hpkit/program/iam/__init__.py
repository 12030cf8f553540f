"""IAM: documents of the platform's roles, and the least privileges of a deployment, with their data."""
