"""hpkit: Amazon SageMaker HyperPod on EKS as one typed configuration."""
