"""Runs a scenario on a local cloud's API server and Kueue: creates teams' objects, submits and ends Jobs."""
