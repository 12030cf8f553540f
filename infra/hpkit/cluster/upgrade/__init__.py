"""Finds outdated parts of a platform, and the upgrade steps, each as a change of the organization file."""
