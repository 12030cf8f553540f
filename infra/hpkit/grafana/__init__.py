"""Grafana: dashboards and alert rules of a stack as code, and how they get into its workspace."""
