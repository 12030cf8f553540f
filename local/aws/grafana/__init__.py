"""Amazon Managed Grafana: workspaces, who may use them, tags."""
