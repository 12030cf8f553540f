"""What a team runs: manifests with the right queue, priority, topology and resources, and what is wrong with others."""
