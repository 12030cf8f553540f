"""The AWS endpoint of the local cloud: one loopback server for every service the kit calls.

moto answers for EC2, IAM, S3, KMS, FSx, CloudWatch, Prometheus and STS; this package answers for EKS, Managed
Grafana and SageMaker HyperPod.
"""
