"""IAM: the documents of the platform's roles, and the least that a deployment needs, with the data they are made of."""
