"""The AWS endpoint of the local cloud: one loopback server for every service the kit calls.

moto answers for EC2, IAM, S3, KMS, CloudWatch Logs and STS; this package answers for EKS and SageMaker
HyperPod.
"""
