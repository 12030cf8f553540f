"""The Cluster resource: a HyperPod cluster and its instance groups."""
