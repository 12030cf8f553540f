"""A running platform: read, explained, and operated on."""
