"""moto's tables of instance types are read on first use."""

import subprocess
import sys
from pathlib import Path

import pytest

from hpkit_local.aws.services.ec2.instance_types import needs_instance_types
from hpkit_local.aws.testing import running_endpoint

ROOT = Path(__file__).parents[5]
START = """
from hpkit_local.aws.testing import running_endpoint
with running_endpoint() as endpoint:
    from moto.ec2.models import instance_types, instances
    ec2 = endpoint.client("ec2")
    ec2.create_vpc(CidrBlock="10.0.0.0/16")
    print(len(instance_types.INSTANCE_TYPES))
    (found,) = ec2.describe_instance_types(InstanceTypes=["g5.12xlarge"])["InstanceTypes"]
    print(found["GpuInfo"]["Gpus"][0]["Count"])
    offered = ec2.describe_instance_type_offerings(Filters=[{"Name": "instance-type", "Values": ["m5.large"]}])
    print(len(offered["InstanceTypeOfferings"]))
"""


def test_an_endpoint_reads_them_with_the_first_question_about_them():
    command = [sys.executable, "-c", START]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert said.stdout.split() == ["0", "4", "1"], said.stderr


@pytest.mark.parametrize(
    ("operation", "needs"),
    [("DescribeInstanceTypes", True), ("RunInstances", True), ("RequestSpotFleet", True), ("DescribeVpcs", False)],
)
def test_what_may_look_into_them_is_told_by_its_name(operation, needs):
    assert needs_instance_types(operation) is needs


def test_an_instance_can_be_run_of_a_type_that_there_is():
    with running_endpoint() as endpoint:
        ec2 = endpoint.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        image = ec2.register_image(Name="mine", RootDeviceName="/dev/xvda")["ImageId"]
        (instance,) = ec2.run_instances(
            ImageId=image, InstanceType="m5.large", SubnetId=subnet, MinCount=1, MaxCount=1
        )["Instances"]
        assert instance["InstanceType"] == "m5.large"
