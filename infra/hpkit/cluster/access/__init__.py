"""Who may do what on a running platform: access entries of EKS and bindings of Kubernetes, beside the stack file."""
