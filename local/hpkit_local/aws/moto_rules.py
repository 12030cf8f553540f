"""What AWS refuses and moto does not, of the operations that a platform's program calls.

Each rule sees a request that keeps to its API model already. What is still taken stands in docs/local-cloud-limits.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.references import require_security_group, require_subnet

__all__ = ["check_moto_rules"]

Rule = Callable[[Context, Record], None]
_RULES: dict[tuple[str, str], list[Rule]] = {}

# VPC user guide, quotas; EC2 user guide, Elastic IP addresses: what an account has that asked for no more.
VPCS: Final = 5
ADDRESSES: Final = 5
# IAM user guide, quotas: the defaults of an account; characters are counted without white space.
ROLE_POLICIES: Final = 10
TRUST_SIZE: Final = 2048
MANAGED_SIZE: Final = 6144
INLINE_SIZE: Final = 10240
# VPC user guide, "IPv4 CIDR block association restrictions": a VPC stays within the private range of its first block.
_PRIVATE: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_BENCHMARKS, _DEFAULT_VPC = IPv4Network("198.19.0.0/16"), IPv4Network("172.31.0.0/16")
_LOW, _LOWEST = IPv4Network("10.0.0.0/15"), IPv4Network("10.0.0.0/16")
# The same guide, "IPv4 VPC CIDR blocks": what no VPC may have.
_NOWHERE: Final = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4")))
_LARGEST, _SMALLEST = 16, 28
_TAG_KEY, _TAG_VALUE = 128, 256
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_BUCKET_STARTS: Final = ("xn--", "sthree-", "amzn-s3-demo-")
_BUCKET_ENDS: Final = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
_GROUP_TEXT: Final = re.compile(r"[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{0,255}")
_RETENTION: Final = frozenset(
    (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
)
_KEY_WAIT: Final = range(7, 31)
_LUSTRE_THROUGHPUT: Final = frozenset((125, 250, 500, 1000))


def check_moto_rules(ctx: Context, service: str, operation: str, params: Record) -> None:
    """Refuse what AWS refuses by a rule that no API model says."""
    for rule in _RULES.get((service, operation), ()):
        rule(ctx, params)


def _rule(service: str, *operations: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for operation in operations:
            _RULES.setdefault((service, operation), []).append(rule)
        return rule

    return register


@_rule("ec2", "CreateVpc")
def _number_of_vpcs(ctx: Context, _: Record) -> None:
    if len(ctx.backend.moto.backend("ec2", ctx.region).vpcs) >= VPCS:
        raise ServiceError("VpcLimitExceeded", "The maximum number of VPCs has been reached.")


@_rule("ec2", "CreateVpc")
def _first_range(_: Context, params: Record) -> None:
    if "CidrBlock" in params:
        _check_block(_network(params["CidrBlock"]))


def _check_block(block: IPv4Network) -> None:
    """Refuse sizes and addresses that no VPC may have."""
    if not _LARGEST <= block.prefixlen <= _SMALLEST or any(block.overlaps(each) for each in _NOWHERE):
        raise ServiceError("InvalidVpc.Range", f"The CIDR '{block}' is invalid.")


@_rule("ec2", "AllocateAddress")
def _number_of_addresses(ctx: Context, _: Record) -> None:
    if len(ctx.backend.moto.backend("ec2", ctx.region).addresses) >= ADDRESSES:
        raise ServiceError("AddressLimitExceeded", "The maximum number of addresses has been reached.")


@_rule("ec2", "AssociateVpcCidrBlock")
def _further_range(ctx: Context, params: Record) -> None:
    vpc = ctx.backend.moto.backend("ec2", ctx.region).vpcs.get(params["VpcId"])
    if vpc is None or "CidrBlock" not in params:
        return
    block = _network(params["CidrBlock"])
    _check_block(block)
    present = [_network(each["cidr_block"]) for each in vpc.get_cidr_block_association_set()]
    if any(block.overlaps(each) for each in present):
        raise ServiceError("InvalidVpc.Range", f"The CIDR '{block}' conflicts with another block of the VPC.")
    if any(block.overlaps(each) for each in _restricted(present)):
        raise ServiceError(
            "InvalidVpc.Range",
            f"The CIDR '{block}' is restricted. Use a CIDR from the same private address range as the current VPC CIDR,"
            " or use a publicly-routable CIDR.",
        )


def _restricted(present: Iterable[IPv4Network]) -> Iterator[IPv4Network]:
    """Yield the ranges that a VPC takes none of, by those that it has; the first one says which private network it is.

    Source: VPC user guide, "IPv4 CIDR block association restrictions".
    """
    first, *others = present
    yield from (each for each in _PRIVATE if not first.subnet_of(each))
    if not first.subnet_of(_BENCHMARKS):
        yield _BENCHMARKS
    if first.subnet_of(_PRIVATE[1]):
        yield _DEFAULT_VPC
    if any(each.overlaps(_LOW) for each in (first, *others)):
        yield _LOWEST


@_rule("ec2", "CreateSubnet")
def _subnet(ctx: Context, params: Record) -> None:
    block = _network(params.get("CidrBlock", "10.0.0.0/24"), code="InvalidParameterValue")
    if not _LARGEST <= block.prefixlen <= _SMALLEST:
        raise ServiceError("InvalidSubnet.Range", f"The CIDR '{block}' is invalid.")
    zone = params.get("AvailabilityZone")
    zones = [each.name for each in ctx.backend.moto.backend("ec2", ctx.region).describe_availability_zones()]
    if zone is not None and zone not in zones:
        raise ServiceError(
            "InvalidParameterValue",
            f"Value ({zone}) for parameter availabilityZone is invalid. Subnets can currently only be created in the "
            f"following availability zones: {', '.join(zones)}.",
        )


@_rule("ec2", "CreateSecurityGroup")
def _group(_: Context, params: Record) -> None:
    name = params["GroupName"]
    if name.startswith("sg-"):
        raise ServiceError("InvalidParameterValue", f"Group names may not be in the format sg-*: '{name}'")
    for member in ("GroupName", "Description"):
        if not _GROUP_TEXT.fullmatch(params[member]):
            raise ServiceError("InvalidParameterValue", f"Value ({params[member]}) for parameter {member} is invalid.")


@_rule("ec2", "AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress")
def _permissions(_: Context, params: Record) -> None:
    for each in params.get("IpPermissions", ()):
        if each.get("IpProtocol") in ("tcp", "udp", "6", "17"):
            first, last = each.get("FromPort", -1), each.get("ToPort", -1)
            if not 0 <= first <= last <= 65535:
                raise ServiceError("InvalidParameterValue", f"Invalid TCP/UDP port range ({first}, {last})")
        ranges = [*each.get("IpRanges", ()), *each.get("UserIdGroupPairs", ()), *each.get("PrefixListIds", ())]
        for text in (found["Description"] for found in ranges if "Description" in found):
            if not _GROUP_TEXT.fullmatch(text):
                raise ServiceError("InvalidParameterValue", f"Invalid rule description: {text}")


@_rule(
    "ec2",
    *("AllocateAddress", "CreateInternetGateway", "CreateNatGateway", "CreateRouteTable", "CreateSecurityGroup"),
    *("CreateSubnet", "CreateTags", "CreateVpc", "CreateVpcEndpoint"),
)
def _tags(_: Context, params: Record) -> None:
    specified = [tag for each in params.get("TagSpecifications", ()) for tag in each.get("Tags", ())]
    for tag in (*params.get("Tags", ()), *specified):
        key, value = tag["Key"], tag.get("Value", "")
        if key.lower().startswith("aws:"):
            raise ServiceError(
                "InvalidParameterValue",
                f"Value ({key}) for parameter key is invalid. "
                "Tag keys starting with 'aws:' are reserved for internal use",
            )
        if len(key) > _TAG_KEY or len(value) > _TAG_VALUE:
            raise ServiceError(
                "InvalidParameterValue",
                f"Tag '{key}' is too long: a key has at most {_TAG_KEY} characters, a value {_TAG_VALUE}",
            )


@_rule("iam", "CreateRole", "UpdateAssumeRolePolicy")
def _trust(_: Context, params: Record) -> None:
    text = params.get("AssumeRolePolicyDocument") or params.get("PolicyDocument", "")
    statements = _statements(text, code="MalformedPolicyDocument")
    for statement in statements:
        if "Principal" not in statement and "NotPrincipal" not in statement:
            raise ServiceError("MalformedPolicyDocument", "AssumeRole policy must specify a principal")
        if "Resource" in statement:
            raise ServiceError("MalformedPolicyDocument", "Has prohibited field Resource")
        actions = _listed(statement.get("Action", ()))
        if not actions or any(not action.lower().startswith("sts:") for action in actions):
            raise ServiceError("MalformedPolicyDocument", "AssumeRole policy may only specify STS AssumeRole actions.")
        for service in _services(statement.get("Principal")):
            if not service.endswith((".amazonaws.com", ".amazonaws.com.cn")):
                raise ServiceError("MalformedPolicyDocument", f'Invalid principal in policy: "SERVICE":"{service}"')
    if _size(text) > TRUST_SIZE:
        raise ServiceError("LimitExceeded", f"Cannot exceed quota for ACLSizePerRole: {TRUST_SIZE}", status=409)


@_rule("iam", "PutRolePolicy")
def _inline(ctx: Context, params: Record) -> None:
    role = ctx.backend.moto.backend("iam", ctx.region).roles
    found = next((each for each in role.values() if each.name == params["RoleName"]), None)
    if found is None:
        return
    present = {**found.policies, params["PolicyName"]: params["PolicyDocument"]}
    if sum(_size(each) for each in present.values()) > INLINE_SIZE:
        message = f"Maximum policy size of {INLINE_SIZE} bytes exceeded for role {found.name}"
        raise ServiceError("LimitExceeded", message, status=409)


@_rule("iam", "CreatePolicy", "CreatePolicyVersion")
def _managed(_: Context, params: Record) -> None:
    if _size(params["PolicyDocument"]) > MANAGED_SIZE:
        raise ServiceError("LimitExceeded", f"Cannot exceed quota for PolicySize: {MANAGED_SIZE}", status=409)


@_rule("iam", "AttachRolePolicy")
def _attached(ctx: Context, params: Record) -> None:
    roles = ctx.backend.moto.backend("iam", ctx.region).roles.values()
    found = next((each for each in roles if each.name == params["RoleName"]), None)
    attached = set() if found is None else set(found.managed_policies)
    if params["PolicyArn"] not in attached and len(attached) >= ROLE_POLICIES:
        raise ServiceError("LimitExceeded", f"Cannot exceed quota for PoliciesPerRole: {ROLE_POLICIES}", status=409)


@_rule("s3", "CreateBucket")
def _bucket(_: Context, params: Record) -> None:
    name = params["Bucket"]
    labels = name.split(".")
    wrong = (
        not _BUCKET.fullmatch(name)
        or "" in labels
        or (len(labels) == 4 and all(each.isdecimal() for each in labels))
        or name.startswith(_BUCKET_STARTS)
        or name.endswith(_BUCKET_ENDS)
    )
    if wrong:
        raise ServiceError("InvalidBucketName", "The specified bucket is not valid.")


@_rule("logs", "CreateLogGroup")
def _log_group(_: Context, params: Record) -> None:
    if params["logGroupName"].startswith("aws/"):
        raise ServiceError("InvalidParameterException", "Log groups starting with aws/ are reserved for AWS.")


@_rule("logs", "PutRetentionPolicy")
def _retention(_: Context, params: Record) -> None:
    days = params["retentionInDays"]
    if days not in _RETENTION:
        allowed = ", ".join(map(str, sorted(_RETENTION)))
        raise ServiceError("InvalidParameterException", f"retentionInDays {days} is not one of {allowed}")


@_rule("kms", "CreateKey", "PutKeyPolicy")
def _key_policy(_: Context, params: Record) -> None:
    if "Policy" in params:
        _statements(params["Policy"], code="MalformedPolicyDocumentException")


@_rule("kms", "ScheduleKeyDeletion")
def _key_wait(_: Context, params: Record) -> None:
    days = params.get("PendingWindowInDays", _KEY_WAIT[-1])
    if days not in _KEY_WAIT:
        raise ServiceError(
            "ValidationException", f"PendingWindowInDays {days} is not from {_KEY_WAIT[0]} to {_KEY_WAIT[-1]}"
        )


@_rule("fsx", "CreateFileSystem")
def _lustre(ctx: Context, params: Record) -> None:
    if params["FileSystemType"] != "LUSTRE":
        return
    subnets = [require_subnet(ctx, each, code="InvalidNetworkSettings") for each in params["SubnetIds"]]
    for group in params.get("SecurityGroupIds", ()):
        require_security_group(ctx, group, vpc_id=subnets[0].vpc_id, code="InvalidNetworkSettings")
    capacity, options = params.get("StorageCapacity", 1200), params.get("LustreConfiguration", {})
    if capacity != 1200 and (capacity < 2400 or capacity % 2400):
        raise ServiceError("BadRequest", f"StorageCapacity {capacity} is neither 1200 nor a multiple of 2400")
    throughput = options.get("PerUnitStorageThroughput")
    if options.get("DeploymentType") == "PERSISTENT_2" and throughput not in _LUSTRE_THROUGHPUT:
        allowed = ", ".join(map(str, sorted(_LUSTRE_THROUGHPUT)))
        raise ServiceError("BadRequest", f"PerUnitStorageThroughput {throughput} is not one of {allowed}")


def _network(text: str, *, code: str = "InvalidParameterValue") -> IPv4Network:
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        found = None
    if not isinstance(found, IPv4Network):
        raise ServiceError(code, f"Value ({text}) for parameter cidrBlock is invalid. This is not a valid CIDR block.")
    return found


def _statements(text: str, *, code: str) -> list[Record]:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    statements = document.get("Statement") if isinstance(document, dict) else None
    found: list[Any] = statements if isinstance(statements, list) else [statements]
    if not found or not all(isinstance(each, dict) and each.get("Effect") in ("Allow", "Deny") for each in found):
        raise ServiceError(code, "Syntax errors in policy.")
    return found


def _services(principal: Any) -> Iterator[str]:
    if isinstance(principal, dict):
        yield from _listed(principal.get("Service", ()))


def _listed(value: str | Iterable[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _size(document: str) -> int:
    return len(re.sub(r"\s", "", document))
