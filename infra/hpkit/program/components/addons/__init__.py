"""EKS add-ons, and what some of them need."""
