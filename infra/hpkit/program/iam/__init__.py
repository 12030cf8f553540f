"""IAM: the documents of the platform's roles, and the least that a deployment needs. Data beside their readers."""
