"""One module a service: what each type takes, which calls make, read, change and delete it."""
