"""Platforms that other tools create, made by the same API calls and without hpkit.

Sources: the console's CloudFormation templates (aws/sagemaker-hyperpod-cluster-setup, eks/cloudformation, and the
function that creates the cluster), and the CLI reference of create-cluster.
"""

import json

from tests.running import bring_dependencies
from tests.running import eventually as until

GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


class Maker:
    """API calls that wait until each resource exists."""

    def __init__(self, live):
        self.live = live
        self.ec2, self.iam, self.s3, self.eks, self.sm = (
            live.client(name) for name in ("ec2", "iam", "s3", "eks", "sagemaker")
        )

    def role(self, name, service, *policies):
        trust = {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}],
        }
        arn = self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
        for policy in policies:
            self.iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::aws:policy/{policy}")
        return arn

    def network(self, cidr, *, secondary=(), subnets=()):
        """Return VPC, subnet IDs in order, and a security group that allows traffic between its members."""
        vpc = self.ec2.create_vpc(CidrBlock=cidr)["Vpc"]["VpcId"]
        for each in secondary:
            self.ec2.associate_vpc_cidr_block(VpcId=vpc, CidrBlock=each)
        made = [
            self.ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone=zone)["Subnet"]["SubnetId"]
            for zone, block in subnets
        ]
        group = self.ec2.create_security_group(GroupName="hyperpod", Description="hyperpod", VpcId=vpc)["GroupId"]
        own = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
        self.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=own)
        self.ec2.authorize_security_group_egress(GroupId=group, IpPermissions=own)
        return vpc, made, group

    def bucket(self, name, *keys):
        self.s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        for key in keys:
            self.s3.put_object(Bucket=name, Key=key, Body=b"#!/bin/bash\nexit 0\n")

    def kubernetes(self, name, role, subnets, *groups, mode="API", addons=()):
        self.eks.create_cluster(
            name=name,
            roleArn=role,
            version="1.35",
            resourcesVpcConfig={"subnetIds": subnets, "securityGroupIds": list(groups)},
            accessConfig={"authenticationMode": mode},
        )
        until(lambda: self.eks.describe_cluster(name=name)["cluster"]["status"] == "ACTIVE", name)
        bring_dependencies(self.live.api)
        for addon in addons:
            self.addon(name, addon)
        return self.eks.describe_cluster(name=name)["cluster"]["arn"]

    def addon(self, cluster, name, **more):
        self.eks.create_addon(clusterName=cluster, addonName=name, resolveConflicts="OVERWRITE", **more)

    def administrator(self, cluster, role):
        arn = self.role(role, "ec2.amazonaws.com")
        self.eks.create_access_entry(clusterName=cluster, principalArn=arn)
        self.eks.associate_access_policy(
            clusterName=cluster, principalArn=arn, policyArn=ADMIN_POLICY, accessScope={"type": "cluster"}
        )

    def hyperpod(self, name, eks, subnets, group, groups, **more):
        arn = self.sm.create_cluster(
            ClusterName=name,
            Orchestrator={"Eks": {"ClusterArn": eks}},
            VpcConfig={"Subnets": subnets, "SecurityGroupIds": [group]},
            InstanceGroups=groups,
            NodeProvisioningMode="Continuous",
            **more,
        )["ClusterArn"]
        until(lambda: self.sm.describe_cluster(ClusterName=arn)["ClusterStatus"] == "InService", name)
        wanted = sum(each["InstanceCount"] for each in groups)
        until(lambda: len(self.sm.list_cluster_nodes(ClusterName=arn)["ClusterNodeSummaries"]) == wanted, "nodes")
        return arn

    def governed(self, arn, kube, quotas, *, policy):
        """Create the add-on, a policy and quotas, as in the console: `{name: (team, count)}`."""
        self.addon(kube, GOVERNANCE)
        until(
            lambda: self.eks.describe_addon(clusterName=kube, addonName=GOVERNANCE)["addon"]["status"] == "ACTIVE",
            GOVERNANCE,
        )
        self.sm.create_cluster_scheduler_config(
            Name=policy,
            ClusterArn=arn,
            SchedulerConfig={
                "PriorityClasses": [{"Name": "inference", "Weight": 100}, {"Name": "training", "Weight": 80}],
                "FairShare": "Enabled",
            },
        )
        for name, (team, count) in quotas.items():
            self.sm.create_compute_quota(
                Name=name,
                ClusterArn=arn,
                Description=f"Compute of {team}",
                ComputeQuotaConfig={
                    "ComputeQuotaResources": [{"InstanceType": "ml.g5.12xlarge", "Count": count}],
                    "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100},
                    "PreemptTeamTasks": "LowerPriority",
                },
                ComputeQuotaTarget={"TeamName": team, "FairShareWeight": 10},
            )
        until(lambda: {each["Status"] for each in self.live.quotas().values()} == {"Created"}, "quotas")
        until(lambda: {each["Status"] for each in self.live.policies()} == {"Created"}, policy)


def _group(name, kind, count, role, bucket, script="on_create.sh", **more):
    return {
        "InstanceGroupName": name,
        "InstanceType": kind,
        "InstanceCount": count,
        "ExecutionRole": role,
        "LifeCycleConfig": {"SourceS3Uri": f"s3://{bucket}", "OnCreate": script},
        **more,
    }


def _two_ranges(make):
    """Return two subnets for the control plane, two subnets of a separate range for nodes, and a security group."""
    _, subnets, group = make.network(
        "10.192.0.0/16",
        secondary=["10.1.0.0/16", "10.2.0.0/16"],
        subnets=[
            ("us-west-2a", "10.192.7.0/28"),
            ("us-west-2b", "10.192.8.0/28"),
            ("us-west-2a", "10.1.0.0/16"),
            ("us-west-2b", "10.2.0.0/16"),
        ],
    )
    return subnets, group


def console(make):
    """Create a cluster as the console's quick setup does: nested stacks, a private subnet with a range per zone."""
    prefix = "sagemaker-train-1a2b3c4d"
    subnets, group = _two_ranges(make)
    bucket = f"{prefix}-bucket"
    make.bucket(bucket, "on_create.sh", "on_create_main.sh")
    control = make.role(f"{prefix}-role", "eks.amazonaws.com", "AmazonEKSClusterPolicy")
    nodes = make.role(f"{prefix}ExecRole", "sagemaker.amazonaws.com", "AmazonSageMakerClusterInstanceRolePolicy")
    kube = f"{prefix}-eks"
    base = ("vpc-cni", "kube-proxy", "coredns", "eks-pod-identity-agent")
    eks = make.kubernetes(kube, control, subnets[:2], group, mode="API_AND_CONFIG_MAP", addons=base)
    make.administrator(kube, "Console")
    in_a = {"OverrideVpcConfig": {"SecurityGroupIds": [group], "Subnets": [subnets[2]]}}
    arn = make.hyperpod(
        "train",
        eks,
        subnets[2:],
        group,
        [
            _group("accelerated-worker-group-1", "ml.g5.12xlarge", 4, nodes, bucket, ThreadsPerCore=1, **in_a),
            _group("controller-group", "ml.m5.4xlarge", 2, nodes, bucket, ThreadsPerCore=2, **in_a),
        ],
        NodeRecovery="Automatic",
        Tags=[{"Key": "aws-sagemaker-hyperpod-prerequiste", "Value": prefix}],
    )
    quotas = {"nlp-compute-allocation": ("nlp", 2), "vision-compute-allocation": ("vision", 1)}
    make.governed(arn, kube, quotas, policy="ClusterPolicy")
    return arn


def by_hand(make):
    """Create a cluster with the CLI in two zones, and its quotas later in the console."""
    _, subnets, group = make.network(
        "10.0.0.0/16", subnets=[("us-west-2a", "10.0.0.0/20"), ("us-west-2b", "10.0.16.0/20")]
    )
    make.bucket("sagemaker-our-scripts", "on_create.sh")
    control = make.role("our-eks", "eks.amazonaws.com", "AmazonEKSClusterPolicy")
    nodes = make.role("our-nodes", "sagemaker.amazonaws.com", "AmazonSageMakerClusterInstanceRolePolicy")
    eks = make.kubernetes("ours", control, subnets, group, addons=("vpc-cni", "kube-proxy", "coredns"))
    make.administrator("ours", "Ops")
    spread = _group("workers", "ml.g5.12xlarge", 4, nodes, "sagemaker-our-scripts")
    labelled = _group(
        "system",
        "ml.m5.4xlarge",
        2,
        nodes,
        "sagemaker-our-scripts",
        KubernetesConfig={"Labels": {"ours.example/pool": "system"}},
    )
    arn = make.hyperpod("ours", eks, subnets, group, [spread, labelled], NodeRecovery="None")
    make.governed(arn, "ours", {"Quota-1": ("nlp", 2), "Quota-2": ("vision", 1)}, policy="our-policy")
    return arn
