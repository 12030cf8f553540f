"""A small Pulumi program, for tests that run the engine often: 20 resources of the three plugins on a live platform."""

import json

import pulumi

__all__ = ["build"]

TAGS = {"hpkit:environment": "small"}


def build(cluster_arn, kubeconfig):
    """Register a network, roles, a key, repositories, Kubernetes roles, and the quota of another team."""
    aws = pulumi.ProviderResource("aws", "aws", {"region": "us-west-2", "defaultTags": json.dumps({"tags": TAGS})})
    kubernetes = pulumi.ProviderResource("kubernetes", "kubernetes", {"kubeconfig": kubeconfig})
    hyperpod = pulumi.ProviderResource("hyperpod", "hyperpod", {"region": "us-west-2"})

    def register(resource_type, name, inputs, provider=aws, after=()):
        opts = pulumi.ResourceOptions(provider=provider, depends_on=[*after])
        return pulumi.CustomResource(resource_type, name, inputs, opts)

    def tagged(name):
        return {"tags": {"Name": f"small-{name}"}}

    vpc = register("aws:ec2/vpc:Vpc", "vpc", {"cidrBlock": "10.9.0.0/16", **tagged("vpc")})
    for number in range(3):
        cidr = f"10.9.{number}.0/24"
        register("aws:ec2/subnet:Subnet", f"{number}", {"vpcId": vpc.id, "cidrBlock": cidr, **tagged(f"{number}")})
    gateway = register("aws:ec2/internetGateway:InternetGateway", "internet", {"vpcId": vpc.id, **tagged("internet")})
    register("aws:ec2/routeTable:RouteTable", "public", {"vpcId": vpc.id, **tagged("public")})
    register("aws:ec2/eip:Eip", "address", {"domain": "vpc", **tagged("address")})
    register("aws:kms/key:Key", "key", {"description": "small", **tagged("key")})
    register("aws:cloudwatch/logGroup:LogGroup", "logs", {"name": "small", **tagged("logs")})
    for name in ("a", "b"):
        register("aws:ecr/repository:Repository", name, {"name": f"small-{name}", **tagged(name)})
    # One after the other, so that `up` takes a while.
    earlier = gateway
    for name in ("one", "two", "three", "four"):
        inputs = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"small-{name}"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        }
        earlier = register("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", name, inputs, kubernetes, [earlier])
    quota = {
        "name": "small",
        "clusterArn": cluster_arn,
        "computeQuotaConfig": {"computeQuotaResources": [{"instanceType": "ml.m5.4xlarge", "count": 1}]},
        "computeQuotaTarget": {"teamName": "small"},
        "tags": [{"key": key, "value": value} for key, value in TAGS.items()],
    }
    register("hyperpod:index:ComputeQuota", "quota", quota, hyperpod, [earlier])
