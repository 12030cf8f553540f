"""Create, read, update and delete for each resource."""
