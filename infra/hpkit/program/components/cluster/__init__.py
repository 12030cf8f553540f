"""The network, the EKS cluster, the HyperPod cluster, and the teams' repositories."""
