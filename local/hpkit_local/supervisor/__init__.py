"""One supervisor process per instance of the local cloud: it starts services in order and restarts those that die."""
