"""Task governance, topology-aware and gang scheduling, and Karpenter."""
