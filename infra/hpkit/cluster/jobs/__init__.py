"""Writes job manifests with the right queue, priority, topology and resources, and checks existing ones."""
