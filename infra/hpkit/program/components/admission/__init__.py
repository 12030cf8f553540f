"""Admission policies of the teams' namespaces."""
