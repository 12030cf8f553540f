"""Amazon Managed Grafana: workspaces, who may use them, tags; and of their Grafana what its HTTP API keeps."""
