"""Requests that moto accepts and AWS rejects: those that violate their API model, and rules outside the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore import xform_name

from hpkit_local.aws.protocol import service_model
from hpkit_local.aws.service import services
from hpkit_local.aws.services.ec2.rules import ADDRESSES, VPCS
from hpkit_local.aws.services.iam.rules import INLINE_SIZE, MANAGED_SIZE, ROLE_POLICIES, TRUST_SIZE

Refused = Callable[..., str]
Request = Callable[[Any], dict[str, Any]]
ASSUME = {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
READ = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}


def _document(*statements: dict[str, Any], pad: int = 0) -> str:
    return json.dumps({"Version": "2012-10-17", "Id": "x" * pad, "Statement": list(statements)})


def _role(**change: Any) -> Request:
    statement = {name: value for name, value in {**ASSUME, **change}.items() if value is not None}
    return lambda _: {"RoleName": "r", "AssumeRolePolicyDocument": _document(statement)}


def _ingress(**change: Any) -> Request:
    permission = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/8"}], **change}
    return lambda cloud: {"GroupId": cloud.sg, "IpPermissions": [permission]}


def _further(block: str, first: str = "") -> Request:
    """Request an additional range for the existing VPC, or for another VPC that has this range."""
    return lambda cloud: {
        "VpcId": cloud.ec2.create_vpc(CidrBlock=first)["Vpc"]["VpcId"] if first else cloud.vpc,
        "CidrBlock": block,
    }


def _subnet(**change: Any) -> Request:
    return lambda cloud: {"VpcId": cloud.vpc, "CidrBlock": "10.0.9.0/24", **change}


def _group(**change: Any) -> Request:
    return lambda cloud: {"VpcId": cloud.vpc, "GroupName": "g", "Description": "d", **change}


def _tag(key: str, value: str = "") -> Request:
    return lambda cloud: {"Resources": [cloud.vpc], "Tags": [{"Key": key, "Value": value}]}


def _lustre(**change: Any) -> Request:
    return lambda cloud: {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": cloud.subnets[:1],
        "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
        **change,
    }


# Name → service, operation, request that AWS rejects, code, part of the message.
RULES: dict[str, tuple[str, str, Request, str, str]] = {
    "range of a vpc that is too large": (
        "ec2", "associate_vpc_cidr_block", _further("10.8.0.0/14"), "InvalidVpc.Range", "'10.8.0.0/14' is invalid",
    ),
    "range that overlaps one of the vpc": (
        "ec2", "associate_vpc_cidr_block", _further("10.0.128.0/17"), "InvalidVpc.Range", "conflicts with another",
    ),
    "range of another private network": (
        "ec2", "associate_vpc_cidr_block", _further("192.168.0.0/16"), "InvalidVpc.Range", "is restricted",
    ),
    "range that aws keeps": (
        "ec2", "associate_vpc_cidr_block", _further("198.19.0.0/20"), "InvalidVpc.Range", "is restricted",
    ),
    "lowest range beside a low one": (
        "ec2", "associate_vpc_cidr_block", _further("10.0.0.0/24", "10.1.0.0/16"), "InvalidVpc.Range", "is restricted",
    ),
    "range of default vpcs": (
        "ec2", "associate_vpc_cidr_block", _further("172.31.0.0/24", "172.16.0.0/16"), "InvalidVpc.Range",
        "is restricted",
    ),
    "private range beside a shared one": (
        "ec2", "associate_vpc_cidr_block", _further("10.5.0.0/16", "100.64.0.0/16"), "InvalidVpc.Range",
        "is restricted",
    ),
    "loopback of a vpc": ("ec2", "create_vpc", lambda _: {"CidrBlock": "127.0.0.0/16"}, "InvalidVpc.Range", "invalid"),
    "multicast of a vpc": (
        "ec2", "associate_vpc_cidr_block", _further("224.0.0.0/16"), "InvalidVpc.Range", "'224.0.0.0/16' is invalid",
    ),
    "range that is none": (
        "ec2", "associate_vpc_cidr_block", _further("ten"), "InvalidParameterValue", "not a valid CIDR block",
    ),
    "subnet that is too small": (
        "ec2", "create_subnet", _subnet(CidrBlock="10.0.9.0/29"), "InvalidSubnet.Range", "'10.0.9.0/29' is invalid",
    ),
    "zone of another region": (
        "ec2", "create_subnet", _subnet(AvailabilityZone="us-east-1a"), "InvalidParameterValue", "availabilityZone",
    ),
    "name of a security group like an id": (
        "ec2", "create_security_group", _group(GroupName="sg-x"), "InvalidParameterValue", "format sg-*",
    ),
    "letters of a security group": (
        "ec2", "create_security_group", _group(GroupName="gé"), "InvalidParameterValue", "parameter GroupName",
    ),
    "description of a security group that is too long": (
        "ec2", "create_security_group", _group(Description="d" * 256), "InvalidParameterValue", "parameter Description",
    ),
    "port beyond the last": (
        "ec2", "authorize_security_group_ingress", _ingress(ToPort=70000), "InvalidParameterValue", "(443, 70000)",
    ),
    "ports the wrong way round": (
        "ec2", "authorize_security_group_egress", _ingress(ToPort=1), "InvalidParameterValue", "(443, 1)",
    ),
    "description of a rule that is too long": (
        "ec2",
        "authorize_security_group_ingress",
        _ingress(IpRanges=[{"CidrIp": "10.0.0.0/8", "Description": "d" * 256}]),
        "InvalidParameterValue",
        "Invalid rule description",
    ),
    "tag of AWS": ("ec2", "create_tags", _tag("aws:x"), "InvalidParameterValue", "reserved for internal use"),
    "tag that is too long": ("ec2", "create_tags", _tag("k", "v" * 257), "InvalidParameterValue", "'k' is too long"),
    "tag of AWS at creation": (
        "ec2",
        "create_security_group",
        _group(TagSpecifications=[{"ResourceType": "security-group", "Tags": [{"Key": "AWS:x", "Value": ""}]}]),
        "InvalidParameterValue",
        "reserved for internal use",
    ),
    "trust that is no policy": (
        "iam", "create_role", lambda _: {"RoleName": "r", "AssumeRolePolicyDocument": "{}"}, "MalformedPolicyDocument",
        "Syntax errors in policy",
    ),
    "trust in nobody": ("iam", "create_role", _role(Principal=None), "MalformedPolicyDocument", "specify a principal"),
    "trust with a resource": (
        "iam", "create_role", _role(Resource="*"), "MalformedPolicyDocument", "prohibited field Resource",
    ),
    "trust for another action": (
        "iam", "create_role", _role(Action="s3:GetObject"), "MalformedPolicyDocument", "only specify STS AssumeRole",
    ),
    "trust in a service that is none": (
        "iam", "create_role", _role(Principal={"Service": "eks"}), "MalformedPolicyDocument", '"SERVICE":"eks"',
    ),
    "trust that is too long": (
        "iam",
        "create_role",
        lambda _: {"RoleName": "r", "AssumeRolePolicyDocument": _document(ASSUME, pad=TRUST_SIZE)},
        "LimitExceeded",
        "ACLSizePerRole: 2048",
    ),
    "managed policy that is too long": (
        "iam",
        "create_policy",
        lambda _: {"PolicyName": "p", "PolicyDocument": _document(READ, pad=MANAGED_SIZE)},
        "LimitExceeded",
        "PolicySize: 6144",
    ),
    "log group of AWS": (
        "logs", "create_log_group", lambda _: {"logGroupName": "aws/x"}, "InvalidParameterException", "are reserved",
    ),
    "policy of a key that is none": (
        "kms", "create_key", lambda _: {"Policy": "{}"}, "MalformedPolicyDocumentException", "Syntax errors in policy",
    ),
    "capacity that Lustre has not": (
        "fsx", "create_file_system", _lustre(StorageCapacity=3600), "BadRequest", "StorageCapacity 3600 is neither",
    ),
    "throughput that Lustre has not": (
        "fsx",
        "create_file_system",
        _lustre(LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 50}),
        "BadRequest",
        "PerUnitStorageThroughput 50 is not one of 125",
    ),
    "subnet of a file system that is none": (
        "fsx", "create_file_system", _lustre(SubnetIds=["subnet-0a1b2c3d4e5f60718"]), "InvalidNetworkSettings",
        "does not exist",
    ),
    "security group of a file system that is none": (
        "fsx", "create_file_system", _lustre(SecurityGroupIds=["sg-0a1b2c3d4e5f60718"]), "InvalidNetworkSettings",
        "does not exist",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_no_model_says_is_kept(cloud: Any, refused: Refused, name: str) -> None:
    service, operation, request, code, part = RULES[name]
    assert part in refused(code, getattr(cloud.endpoint.client(service), operation), **request(cloud))


def _broken(service: str) -> tuple[str, str, dict[str, Any]]:
    """Return an operation with only text members required, a member with a limit, and a request beyond that limit."""
    model = service_model(service)
    for name in model.operation_names:
        shape = model.operation_model(name).input_shape
        members = shape.members if shape else {}
        if all(members[member_shape].type_name == "string" for member_shape in getattr(shape, "required_members", ())):
            for member, member_shape in members.items():
                if getattr(member_shape, "enum", None) or (
                    member_shape.type_name == "string" and member_shape.metadata.get("max", 9999) < 3000
                ):
                    return name, member, {**dict.fromkeys(shape.required_members, "x" * 50), member: "x" * 3000}
    raise AssertionError(f"{service} has no such operation")


MODELLED = {service.name: service.refuses_with for service in services().values() if service.moto}


# The client sends these unchanged, and AWS rejects them by its model.
@pytest.mark.parametrize("service", [name for name, code in MODELLED.items() if code])
def test_a_request_that_breaks_the_model_of_its_service_is_refused(cloud: Any, refused: Refused, service: str) -> None:
    operation, member, request = _broken(service)
    call = getattr(cloud.endpoint.client(service), xform_name(operation))
    text = refused(MODELLED[service], call, **request)
    assert f"at '{member[:1].lower()}{member[1:]}' failed to satisfy constraint" in text


def test_every_service_of_moto_is_checked_but_two() -> None:
    # CloudWatch uses CBOR; for SNS requests, the model has no limits that clients don't check.
    assert {name for name, code in MODELLED.items() if not code} == {"cloudwatch", "sns"}


def test_a_body_that_is_no_xml_is_refused(cloud: Any, refused: Refused) -> None:
    def send(request: Any, **_: Any) -> None:
        request.data = b"<Versioning"

    s3 = cloud.endpoint.client("s3")
    s3.meta.events.register("before-sign.s3.PutBucketVersioning", send)
    refused("MalformedXML", s3.put_bucket_versioning, Bucket="sagemaker-scripts", VersioningConfiguration={})


def test_a_range_that_was_taken_from_a_vpc_can_be_added_again(cloud: Any) -> None:
    for _ in range(2):
        request = {"VpcId": cloud.vpc, "CidrBlock": "10.9.0.0/16"}
        added = cloud.ec2.associate_vpc_cidr_block(**request)["CidrBlockAssociation"]
        cloud.ec2.disassociate_vpc_cidr_block(AssociationId=added["AssociationId"])


def test_a_region_has_five_vpcs_the_default_one_among_them(cloud: Any, refused: Refused) -> None:
    for _ in range(VPCS - 2):
        cloud.ec2.create_vpc(CidrBlock="10.0.0.0/16")
    refused("VpcLimitExceeded", cloud.ec2.create_vpc, CidrBlock="10.0.0.0/16")


def test_a_region_has_five_addresses(cloud: Any, refused: Refused) -> None:
    for _ in range(ADDRESSES):
        cloud.ec2.allocate_address(Domain="vpc")
    refused("AddressLimitExceeded", cloud.ec2.allocate_address, Domain="vpc")


def test_a_role_has_ten_managed_policies_and_attaching_one_again_is_none_more(cloud: Any, refused: Refused) -> None:
    arns = [
        cloud.iam.create_policy(PolicyName=f"p{number}", PolicyDocument=_document(READ))["Policy"]["Arn"]
        for number in range(ROLE_POLICIES + 1)
    ]
    for arn in arns[:-1]:
        cloud.iam.attach_role_policy(RoleName="node", PolicyArn=arn)
    cloud.iam.attach_role_policy(RoleName="node", PolicyArn=arns[0])
    refused("LimitExceeded", cloud.iam.attach_role_policy, RoleName="node", PolicyArn=arns[-1])


def test_inline_policies_of_a_role_are_limited_together(cloud: Any, refused: Refused) -> None:
    half = _document(READ, pad=INLINE_SIZE // 2)
    cloud.iam.put_role_policy(RoleName="node", PolicyName="a", PolicyDocument=half)
    cloud.iam.put_role_policy(RoleName="node", PolicyName="a", PolicyDocument=half)
    request = {"RoleName": "node", "PolicyName": "b", "PolicyDocument": half}
    assert "10240 bytes exceeded for role node" in refused("LimitExceeded", cloud.iam.put_role_policy, **request)


@pytest.mark.parametrize(
    "name",
    ["a_b", "-abc", "abc-", "a..b", "192.168.5.4", "xn--abc", "sthree-abc", "abc-s3alias", "abc--ol-s3", "a" * 64],
)
def test_a_bucket_has_a_name_that_s3_takes(cloud: Any, refused: Refused, name: str) -> None:
    refused("InvalidBucketName", cloud.s3.create_bucket, Bucket=name)


def test_logs_are_kept_for_as_many_days_as_there_are_choices(cloud: Any, refused: Refused) -> None:
    logs = cloud.endpoint.client("logs")
    logs.create_log_group(logGroupName="g")
    logs.put_retention_policy(logGroupName="g", retentionInDays=30)
    text = refused("InvalidParameterException", logs.put_retention_policy, logGroupName="g", retentionInDays=31)
    assert "retentionInDays 31 is not one of 1, 3, 5" in text


@pytest.mark.parametrize("days", [6, 31])
def test_a_key_waits_a_week_to_a_month_before_it_goes(cloud: Any, refused: Refused, days: int) -> None:
    kms = cloud.endpoint.client("kms")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    refused("ValidationException", kms.schedule_key_deletion, KeyId=key, PendingWindowInDays=days)
