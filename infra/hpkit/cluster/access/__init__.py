"""Who may do what on a running platform: access entries of EKS and bindings of Kubernetes, and the stack file's."""
