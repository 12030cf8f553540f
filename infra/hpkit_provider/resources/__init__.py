"""What is done for each resource: create, read, update, delete."""
