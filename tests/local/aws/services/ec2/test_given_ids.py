"""Network resources get the IDs that a caller requests, as existing resources of an organization file require."""

from hpkit_local.aws.testing import running_endpoint


def named(resource_type, id_):
    tags = [{"Key": "_custom_id_", "Value": id_}, {"Key": "team", "Value": "nlp"}]
    return [{"ResourceType": resource_type, "Tags": tags}]


def test_a_network_gets_the_ids_that_its_tags_name_and_the_next_one_its_own():
    with running_endpoint() as endpoint:
        ec2 = endpoint.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=named("vpc", "vpc-0a1b2c3d"))["Vpc"]
        subnet = ec2.create_subnet(
            VpcId="vpc-0a1b2c3d", CidrBlock="10.0.0.0/24", TagSpecifications=named("subnet", "subnet-0a1b2c3d")
        )["Subnet"]
        group = ec2.create_security_group(
            GroupName="nodes",
            Description="nodes",
            VpcId="vpc-0a1b2c3d",
            TagSpecifications=named("security-group", "sg-0a1b2c3d"),
        )
        assert (vpc["VpcId"], subnet["SubnetId"], group["GroupId"]) == (
            "vpc-0a1b2c3d",
            "subnet-0a1b2c3d",
            "sg-0a1b2c3d",
        )
        assert vpc["Tags"] == subnet["Tags"] == [{"Key": "team", "Value": "nlp"}]
        other = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        assert other not in ("vpc-0a1b2c3d", "")
