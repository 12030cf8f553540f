"""A valid live platform that tests change in one place."""

import copy

from hpkit.adopt.live_platform import LiveAccessEntry, LiveAddon, LivePlatform

ACCOUNT = "123456789012"
ARN = f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:cluster/abcdefghijkl"
NODES = f"arn:aws:iam::{ACCOUNT}:role/nodes"
ADMIN = f"arn:aws:iam::{ACCOUNT}:role/Admin"
CLUSTER_ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
SUBNETS = {"us-west-2a": "subnet-0aaaaaaaaaaaaaaaa", "us-west-2b": "subnet-0bbbbbbbbbbbbbbbb"}
SG = "sg-0123456789abcdef0"


def group(name="gpu", **more):
    return {
        "InstanceGroupName": name,
        "InstanceType": "ml.g5.12xlarge",
        "CurrentCount": 4,
        "TargetCount": 4,
        "ExecutionRole": NODES,
        "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-scripts", "OnCreate": "on_create.sh"},
        **more,
    }


def cluster(**more):
    return {
        "ClusterArn": ARN,
        "ClusterName": "train",
        "ClusterStatus": "InService",
        "NodeProvisioningMode": "Continuous",
        "NodeRecovery": "Automatic",
        "InstanceGroups": [group(), group("system", InstanceType="ml.m5.4xlarge", TargetCount=2)],
        "VpcConfig": {"Subnets": list(SUBNETS.values()), "SecurityGroupIds": [SG]},
        **more,
    }


def quota(team="nlp", count=3, **more):
    rows = [{"InstanceType": "ml.g5.12xlarge", "Count": count}]
    return {
        "ComputeQuotaArn": f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:compute-quota/{team:x<12.12}",
        "Name": team,
        "Status": "Created",
        "ActivationState": "Enabled",
        "ComputeQuotaConfig": {
            "ComputeQuotaResources": rows,
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100},
            "PreemptTeamTasks": "LowerPriority",
        },
        "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 10},
        **more,
    }


def policy(name="policy"):
    return {
        "ClusterSchedulerConfigArn": f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:cluster-scheduler-config/abcdefghijkl",
        "Name": name,
        "Status": "Created",
        "SchedulerConfig": {
            "PriorityClasses": [{"Name": "training", "Weight": 80}],
            "FairShare": "Enabled",
            "IdleResourceSharing": "Disabled",
        },
    }


def entry(principal=ADMIN, *, groups=(), policies=(CLUSTER_ADMIN,)):
    described = {"principalArn": principal, "kubernetesGroups": list(groups), "type": "STANDARD"}
    return LiveAccessEntry(described, [{"policyArn": each, "accessScope": {"type": "cluster"}} for each in policies])


def addon(name, configuration=None, **more):
    described = {"addonName": name, "addonVersion": "v1.6.0-eksbuild.1", **more}
    return LiveAddon(described, {} if configuration is None else configuration)


def live(**more):
    """Return a platform with two groups, a team, a policy, the governance add-on and an administrator."""
    governance = "amazon-sagemaker-hyperpod-taskgovernance"
    given = {
        "cluster": cluster(),
        "eks": {
            "name": "kube",
            "version": "1.35",
            "arn": f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/kube",
            "endpoint": "https://kube.example",
            "certificateAuthority": {"data": "Q0E="},
            "resourcesVpcConfig": {"vpcId": "vpc-0123456789abcdef0"},
        },
        "zones": {subnet: zone for zone, subnet in SUBNETS.items()},
        "quotas": [quota()],
        "policies": [policy()],
        "addons": {governance: addon(governance)},
        "entries": [entry()],
    }
    return LivePlatform(**{"api_groups": frozenset(), **copy.deepcopy(given), **more})
