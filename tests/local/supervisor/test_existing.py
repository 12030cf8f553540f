"""Existing resources that an organization file names are created on the local cloud, with its IDs and names."""

import pytest

from hpkit.errors import ToolError
from hpkit.plan.derive import derive
from hpkit_local.aws.testing import running_endpoint
from hpkit_local.supervisor.existing import create_existing
from tests.builders import group, organization, typed

NETWORK = {
    "vpcId": "vpc-0a1b2c3d4e5f60718",
    "subnets": {"us-west-2a": "subnet-0a1b2c3d4e5f60718", "usw2-az2": "subnet-0a1b2c3d4e5f60719"},
    "controlPlaneSubnets": ["subnet-0a1b2c3d4e5f60720", "subnet-0a1b2c3d4e5f60721"],
    "securityGroupIds": ["sg-0a1b2c3d4e5f60718"],
}
ROLE = "arn:aws:iam::123456789012:role/ml/nodes"


def plan_of(**eks):
    groups = [group("gpu", "ml.g5.12xlarge", 2, executionRole=ROLE, lifecycleScript="s3://acme-scripts/on-create.sh")]
    environment = {"network": {"existing": NETWORK}, "eks": {"version": "1.35", "existing": {"name": "corp"}, **eks}}
    return derive(typed(organization(groups=groups, environment=environment)), "dev")


def test_what_the_file_names_is_created_once():
    with running_endpoint() as endpoint:
        environment = {"AWS_ENDPOINT_URL": endpoint.url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        assert create_existing(plan_of(), environment) == [
            "vpc-0a1b2c3d4e5f60718",
            *(f"subnet-0a1b2c3d4e5f607{number}" for number in (18, 19, 20, 21)),
            "sg-0a1b2c3d4e5f60718",
            "role nodes",
            "bucket acme-scripts",
            "EKS cluster corp",
        ]
        assert create_existing(plan_of(), environment) == []
        zones = {
            subnet["SubnetId"][-2:]: subnet["AvailabilityZoneId"]
            for subnet in endpoint.client("ec2").describe_subnets()["Subnets"]
            if subnet["VpcId"] == NETWORK["vpcId"]
        }
        assert (zones["18"], zones["19"]) == ("usw2-az2", "usw2-az2")
        assert endpoint.client("iam").get_role(RoleName="nodes")["Role"]["Arn"] == ROLE
        assert endpoint.client("eks").describe_cluster(name="corp")["cluster"]["status"] == "ACTIVE"


def test_what_the_local_cloud_refuses_is_an_error_of_one_line():
    with running_endpoint() as endpoint, pytest.raises(ToolError, match="acme-dev uses can't be created"):
        create_existing(
            plan_of(version="1.20"),
            {"AWS_ENDPOINT_URL": endpoint.url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
        )
