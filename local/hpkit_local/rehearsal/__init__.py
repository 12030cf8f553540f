"""Runs a scenario on an instance's API server and Kueue: creates teams' objects, submits and ends Jobs."""
