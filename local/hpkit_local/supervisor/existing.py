"""Creates what an organization file names and its stack doesn't create, so that the file runs as it is.

That is the VPC with subnets and security groups, the EKS cluster, the roles, the buckets of lifecycle scripts, and the
HyperPod cluster that a stack only governs, with the IDs and names of the file. What the local cloud already has stays
as it is.

It doesn't install the dependencies chart of an existing EKS cluster. It is recorded as installed, like a chart
that can't be downloaded.
"""

import ipaddress
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from itertools import cycle
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlparse

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from hpkit.catalog.services import TASK_GOVERNANCE
from hpkit.config.models.network import ExistingNetwork
from hpkit.errors import ToolError
from hpkit.plan.existing import created_groups, given_roles
from hpkit.plan.model import GroupPlan, Plan
from hpkit_local.kubernetes.api import Api
from hpkit_local.plugins.kubernetes.live_release import path_of_release

__all__ = ["create_existing"]

_RANGE: Final = ipaddress.IPv4Network("10.0.0.0/16")
# 32 subnets of 2,043 addresses each.
_SUBNET_PREFIX: Final = 21
_EKS_ZONES: Final = 2
_EVERYTHING: Final = [{"IpProtocol": "-1"}]
_TRUSTED: Final = ("sagemaker.amazonaws.com", "hyperpod.sagemaker.amazonaws.com", "pods.eks.amazonaws.com")
# At most what EKS itself takes, where the local cloud takes as long.
_SECONDS: Final = 900
_WAIT: Final = {"Delay": 1, "MaxAttempts": _SECONDS}


def create_existing(plan: Plan, environment: Mapping[str, str]) -> list[str]:
    """Create what is missing, and return it as people read it; ToolError when the local cloud rejects it.

    environment: the variables that point AWS clients at a running instance.
    """
    try:
        return list(_Existing(plan, environment).create())
    except (BotoCoreError, ClientError, OSError) as error:
        raise ToolError(f"what {plan.stack} uses can't be created on the local cloud: {error}") from None


class _Existing:
    def __init__(self, plan: Plan, environment: Mapping[str, str]) -> None:
        self._plan, self._environment = plan, environment

    def create(self) -> Iterator[str]:
        network, eks = self._plan.spec.network.existing, self._plan.spec.eks.existing
        if network is not None:
            yield from self._network(network)
        for arn in given_roles(self._plan):
            path, _, name = arn.partition(":role/")[2].rpartition("/")
            yield from self._role(name, f"/{path}/" if path else "/", *_TRUSTED)
        yield from self._buckets()
        if network is not None and eks is not None:
            yield from self._eks(eks.name, network.vpc_id)
            if self._plan.spec.cluster.dependencies.installed:
                yield from self._chart()
        if self._plan.spec.cluster.existing and eks is not None:
            yield from self._cluster(eks.name)

    def _client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self._environment["AWS_ENDPOINT_URL"],
            region_name=self._plan.spec.region,
            aws_access_key_id=self._environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self._environment["AWS_SECRET_ACCESS_KEY"],
        )

    def _network(self, network: ExistingNetwork) -> Iterator[str]:
        ec2, vpc = self._client("ec2"), network.vpc_id
        of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
        if vpc not in {each["VpcId"] for each in ec2.describe_vpcs()["Vpcs"]}:
            ec2.create_vpc(CidrBlock=str(_RANGE), TagSpecifications=_with_id("vpc", vpc))
            yield vpc
        subnets = ec2.describe_subnets(Filters=of_vpc)["Subnets"]
        used = {each["CidrBlock"] for each in subnets}
        free = (each for each in _RANGE.subnets(new_prefix=_SUBNET_PREFIX) if str(each) not in used)
        zones = cycle(each["ZoneName"] for each in ec2.describe_availability_zones()["AvailabilityZones"])
        existing = {each["SubnetId"] for each in subnets}
        for subnet, zone in self._subnets(network).items():
            if subnet not in existing:
                key = "AvailabilityZoneId" if "-az" in zone else "AvailabilityZone"
                ec2.create_subnet(
                    VpcId=vpc,
                    CidrBlock=str(next(free)),
                    TagSpecifications=_with_id("subnet", subnet),
                    **{key: zone or next(zones)},
                )
                yield subnet
        groups = {each["GroupId"] for each in ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"]}
        for group in dict.fromkeys(self._security_groups(network)):
            if group not in groups:
                ec2.create_security_group(
                    GroupName=f"existing-{group}",
                    Description=group,
                    VpcId=vpc,
                    TagSpecifications=_with_id("security-group", group),
                )
                own = [{**each, "UserIdGroupPairs": [{"GroupId": group}]} for each in _EVERYTHING]
                ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=own)
                ec2.authorize_security_group_egress(GroupId=group, IpPermissions=own)
                yield group

    def _subnets(self, network: ExistingNetwork) -> dict[str, str]:
        """Return all subnets, each with its zone where the file names it."""
        zones = {subnet: zone for zone, subnet in network.subnets.items()}
        overrides = [each.spec.override_vpc_config for each in self._plan.own_groups]
        named = [subnet for each in overrides if each is not None for subnet in each.subnets]
        return {subnet: zones.get(subnet, "") for subnet in (*zones, *network.control_plane_subnets, *named)}

    def _security_groups(self, network: ExistingNetwork) -> Iterator[str]:
        yield from network.security_group_ids
        for group in self._plan.own_groups:
            yield from group.spec.override_vpc_config.security_group_ids if group.spec.override_vpc_config else ()

    def _role(self, name: str, path: str, *trusted: str) -> Iterator[str]:
        iam = self._client("iam")
        with suppress(iam.exceptions.NoSuchEntityException):
            iam.get_role(RoleName=name)
            return
        actions = ["sts:AssumeRole", "sts:TagSession"]
        statement = {"Effect": "Allow", "Principal": {"Service": list(trusted)}, "Action": actions}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=trust)
        iam.put_role_policy(
            RoleName=name,
            PolicyName="local",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [everything]}),
        )
        yield f"role {name}"

    def _unnamed_role(self, name: str, *trusted: str) -> str:
        """Return the ARN of a role that something existing needs and the file doesn't name."""
        list(self._role(name, "/", *trusted))
        return str(self._client("iam").get_role(RoleName=name)["Role"]["Arn"])

    def _buckets(self) -> Iterator[str]:
        s3, storage = self._client("s3"), self._plan.spec.storage
        scripts = [each.spec.lifecycle_script for each in created_groups(self._plan)]
        uris = [urlparse(each) for each in scripts if each is not None]
        names = [storage.existing.bucket] if storage is not None and storage.existing is not None else []
        existing = {each["Name"] for each in s3.list_buckets()["Buckets"]}
        for name in dict.fromkeys((*names, *(uri.netloc for uri in uris))):
            if name in existing:
                continue
            where = {"CreateBucketConfiguration": {"LocationConstraint": self._plan.spec.region}}
            s3.create_bucket(Bucket=name, **(where if self._plan.spec.region != "us-east-1" else {}))
            yield f"bucket {name}"
            for uri in uris:
                if uri.netloc == name:
                    s3.put_object(Bucket=name, Key=uri.path.lstrip("/"), Body=b"#!/bin/sh\n")

    def _eks(self, name: str, vpc: str) -> Iterator[str]:
        eks, spec = self._client("eks"), self._plan.spec.eks
        if name in eks.list_clusters()["clusters"]:
            return
        eks.create_cluster(
            name=name,
            version=spec.version,
            roleArn=self._unnamed_role(f"{name}-control-plane", "eks.amazonaws.com"),
            resourcesVpcConfig={"subnetIds": self._in_two_zones(vpc)},
            accessConfig={"authenticationMode": "API_AND_CONFIG_MAP"},
            upgradePolicy={"supportType": spec.support_type},
        )
        eks.get_waiter("cluster_active").wait(name=name, WaiterConfig=_WAIT)
        yield f"EKS cluster {name}"

    def _cluster(self, eks_name: str) -> Iterator[str]:
        """Create the HyperPod cluster with the groups that the file declares, and below it what the file omits."""
        sagemaker, eks, spec = self._client("sagemaker"), self._client("eks"), self._plan.spec
        name = spec.cluster.name
        if name in {each["ClusterName"] for each in sagemaker.list_clusters()["ClusterSummaries"]}:
            return
        if eks_name not in eks.list_clusters()["clusters"]:
            vpc = self._client("ec2").create_vpc(CidrBlock=str(_RANGE))["Vpc"]["VpcId"]
            yield from self._eks(eks_name, vpc)
        yield from self._chart()
        kubernetes = eks.describe_cluster(name=eks_name)["cluster"]
        network = kubernetes["resourcesVpcConfig"]
        role_arn = self._unnamed_role(f"{name}-nodes", *_TRUSTED)
        sagemaker.create_cluster(
            ClusterName=name,
            Orchestrator={"Eks": {"ClusterArn": kubernetes["arn"]}},
            VpcConfig={"SecurityGroupIds": [network["clusterSecurityGroupId"]], "Subnets": network["subnetIds"]},
            InstanceGroups=[_as_stated(group, role_arn) for group in self._plan.groups],
            NodeProvisioningMode="Continuous",
        )
        yield f"HyperPod cluster {name}"
        if spec.governance is not None and spec.governance.installed:
            self._wait_for_nodes(sum(group.spec.instance_count for group in self._plan.groups))
            eks.create_addon(clusterName=eks_name, addonName=TASK_GOVERNANCE)
            waiter = eks.get_waiter("addon_active")
            waiter.wait(clusterName=eks_name, addonName=TASK_GOVERNANCE, WaiterConfig=_WAIT)
            yield TASK_GOVERNANCE

    def _wait_for_nodes(self, count: int) -> None:
        """Wait for the nodes: without them, the add-on fails."""
        with self._kubernetes() as api:
            end = time.monotonic() + _SECONDS
            while len(api.items("/api/v1/nodes")) < count and time.monotonic() < end:
                time.sleep(1)

    def _chart(self) -> Iterator[str]:
        path = path_of_release("kube-system", "hyperpod-dependencies")
        folder, _, name = path.rpartition("/")
        with self._kubernetes() as api:
            if api.find(path) is None:
                api.create(folder, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
                yield "the dependencies chart"

    def _kubernetes(self) -> closing[Api]:
        return closing(Api.of_kubeconfig(Path(self._environment["KUBECONFIG"])))

    def _in_two_zones(self, vpc: str) -> list[str]:
        """Return a subnet in each of two zones, as EKS requires; those that are missing are created."""
        ec2 = self._client("ec2")
        subnets = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]
        by_zone = {each["AvailabilityZone"]: each["SubnetId"] for each in subnets}
        zones = (each["ZoneName"] for each in ec2.describe_availability_zones()["AvailabilityZones"])
        unused = (zone for zone in zones if zone not in by_zone)
        # The last ranges, because the file's subnets use the first.
        ranges = reversed(list(_RANGE.subnets(new_prefix=_SUBNET_PREFIX)))
        while len(by_zone) < _EKS_ZONES:
            zone = next(unused)
            made = ec2.create_subnet(VpcId=vpc, CidrBlock=str(next(ranges)), AvailabilityZone=zone)
            by_zone[zone] = made["Subnet"]["SubnetId"]
        return list(by_zone.values())[:_EKS_ZONES]


def _as_stated(group: GroupPlan, role_arn: str) -> dict[str, Any]:
    types = list(group.spec.types)
    requested = {"InstanceType": types[0]} if len(types) == 1 else {"InstanceRequirements": {"InstanceTypes": types}}
    return {
        "InstanceGroupName": group.spec.name,
        "InstanceCount": group.spec.instance_count,
        "ExecutionRole": role_arn,
        **requested,
    }


def _with_id(resource_type: str, id_: str) -> list[dict[str, Any]]:
    """Return the tag by which the endpoint gives a new resource an ID of its own."""
    return [{"ResourceType": resource_type, "Tags": [{"Key": "_custom_id_", "Value": id_}]}]
