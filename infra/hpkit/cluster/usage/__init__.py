"""What instances cost, and which team used them: from Kueue's Workloads and the nodes of the cluster."""
