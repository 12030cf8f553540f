"""Grafana: a stack's dashboards and alert rules as JSON that Grafana imports."""
