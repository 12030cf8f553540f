"""One supervisor process per local cloud: it starts services in order and restarts those that die."""
