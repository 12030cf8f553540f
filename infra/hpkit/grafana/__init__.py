"""Grafana: a stack's dashboards and alert rules as code, and applying them to a workspace."""
