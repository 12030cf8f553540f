"""Stand-ins for the resource plugins of other clouds' services, used by the local cloud alone."""
