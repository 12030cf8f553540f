"""EKS: clusters, add-ons, access entries and pod identity associations."""
