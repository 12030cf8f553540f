"""Adds what moto 5.2 lacks or forgets in EC2.

- DescribeVpcEndpointServices: the services in hpkit's catalog, in the API's form (moto fails on filters, and lists
  zones by the start of their names). `endpoint_gaps` contains the zones where a service has no endpoint.
- ModifyVpcEndpoint: routes of added and removed route tables (without them the endpoint can't be deleted), network
  interfaces of added and removed subnets, private DNS.
- CreateVpc, CreateSubnet and CreateSecurityGroup: the ID in the tag `_custom_id_`, as for moto's other services.
- DeleteNatGateway: the gateway's address can be associated again.
- DeleteSubnet, DeleteVpc and DeleteSecurityGroup fail while a VPC endpoint, or for the VPC a security group, remains.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.exceptions import DependencyViolationError, InvalidServiceName
from moto.ec2.models import security_groups, subnets, vpcs
from moto.ec2.models.nat_gateways import NatGatewayBackend
from moto.ec2.models.security_groups import SecurityGroupBackend
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.models.vpcs import VPCBackend
from moto.ec2.responses.vpcs import VPCs
from moto.ec2.utils import random_private_ip
from moto.utilities.id_generator import TAG_KEY_CUSTOM_ID

from hpkit.catalog import vpc_endpoints

__all__: list[str] = []

# Service, such as `sts`, and the ids of zones that have no interface endpoint of it. Empty unless a test fills it.
endpoint_gaps: Final[dict[str, frozenset[str]]] = {}
# Services of gateway endpoints (AWS PrivateLink guide, "Gateway endpoints"); S3 has interface endpoints too.
_GATEWAYS: Final = ("dynamodb", "s3")
_ONLY_GATEWAY: Final = ("dynamodb",)
# Thousands of public images that HyperPod never uses: without them, saving EC2 is 20 times faster.
os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
_modify_vpc_endpoint = VPCBackend.modify_vpc_endpoint
_delete_subnet = SubnetBackend.delete_subnet
_delete_vpc = VPCBackend.delete_vpc
_delete_security_group = SecurityGroupBackend.delete_security_group
_delete_nat_gateway = NatGatewayBackend.delete_nat_gateway
_answer_modify_vpc_endpoint = VPCs.modify_vpc_endpoint


def _with_routes_and_interfaces(backend: Any, vpc_id: str, **changes: Any) -> None:
    endpoint = backend.describe_vpc_endpoints(vpc_end_point_ids=[vpc_id])[0]
    old_tables, old_subnets = list(endpoint.route_table_ids or []), list(endpoint.subnet_ids or [])
    _modify_vpc_endpoint(backend, vpc_id, **changes)
    if (endpoint.vpc_endpoint_type or "").lower() == "interface":
        _move_interfaces(backend, endpoint, old_subnets)
    else:
        _move_routes(backend, endpoint, old_tables)


def _move_routes(backend: Any, endpoint: Any, before: list[str]) -> None:
    prefix_list = endpoint.destination_prefix_list_id
    for table in set(endpoint.route_table_ids) - set(before):
        backend.create_route(table, None, gateway_id=endpoint.id, destination_prefix_list_id=prefix_list)
    for table in set(before) - set(endpoint.route_table_ids):
        backend.delete_route(table, prefix_list)


def _move_interfaces(backend: Any, endpoint: Any, before: list[str]) -> None:
    kept = [backend.enis[each] for each in endpoint.network_interface_ids if each in backend.enis]
    for interface in kept:
        if interface.subnet.id not in endpoint.subnet_ids:
            backend.enis.pop(interface.id)
    added = [backend.get_subnet(subnet) for subnet in endpoint.subnet_ids if subnet not in before]
    made = [backend.create_network_interface(subnet, random_private_ip()) for subnet in added]
    endpoint.network_interface_ids = [each.id for each in (*kept, *made) if each.id in backend.enis]


def _with_private_dns(response: Any) -> ActionResult:
    answer = _answer_modify_vpc_endpoint(response)
    enabled = response._get_bool_param("PrivateDnsEnabled")  # noqa: SLF001 - moto's own way to read a parameter
    if enabled is not None:
        (endpoint,) = response.ec2_backend.describe_vpc_endpoints([response._get_param("VpcEndpointId")])  # noqa: SLF001
        endpoint.private_dns_enabled = enabled
    return answer


def _endpoints(backend: Any) -> list[Any]:
    return [each for each in backend.vpc_end_points.values() if each.state != "deleted"]


def _services(region: str, zones: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield a ServiceDetail per service and type (Amazon EC2 API reference, ServiceDetail)."""
    zone_ids = sorted((zone.name, zone.zone_id) for zone in zones)
    for service in vpc_endpoints():
        types = ["Gateway"] * (service in _GATEWAYS) + ["Interface"] * (service not in _ONLY_GATEWAY)
        for endpoint_type in types:
            gaps = endpoint_gaps.get(service, frozenset()) if endpoint_type == "Interface" else frozenset()
            inside = [each for each in zone_ids if each[1] not in gaps]
            yield {
                "ServiceName": f"com.amazonaws.{region}.{service}",
                "ServiceType": [{"ServiceType": endpoint_type}],
                "ServiceRegion": region,
                "AvailabilityZones": [name for name, _ in inside],
                "AvailabilityZoneIds": [zone_id for _, zone_id in inside],
                "Owner": "amazon",
                "VpcEndpointPolicySupported": True,
                "AcceptanceRequired": False,
                "ManagesVpcEndpoints": False,
            }


# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
def _describe_services(response: Any) -> ActionResult:
    services = list(_services(response.region, response.ec2_backend.describe_availability_zones()))
    names = response._get_param("ServiceNames", [])  # noqa: SLF001
    if unknown := sorted(set(names) - {each["ServiceName"] for each in services}):
        raise InvalidServiceName(unknown[0])
    filters = {**response._filters_from_querystring(), **({"service-name": names} if names else {})}  # noqa: SLF001
    details = [
        service
        for service in services
        if service["ServiceName"] in filters.get("service-name", (service["ServiceName"],))
        and service["ServiceType"][0]["ServiceType"] in filters.get("service-type", ("Gateway", "Interface"))
        and service["Owner"] in filters.get("owner", ("amazon",))
    ]
    return ActionResult({"ServiceNames": [each["ServiceName"] for each in details], "ServiceDetails": details})


# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteNatGateway.html
def _disassociated(backend: Any, nat_gateway_id: str) -> Any:
    for address in backend.nat_gateways[nat_gateway_id].address_set:
        if address.get("associationId"):
            backend.disassociate_address(association_id=address["associationId"])
    return _delete_nat_gateway(backend, nat_gateway_id)


# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteSubnet.html
def _without_endpoints(backend: Any, subnet_id: str) -> Any:
    if any(subnet_id in (each.subnet_ids or []) for each in _endpoints(backend)):
        raise DependencyViolationError(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    return _delete_subnet(backend, subnet_id)


# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteVpc.html
def _empty(backend: Any, vpc_id: str) -> Any:
    left = [each for each in backend.groups.get(vpc_id, {}).values() if each.name != "default"]
    if left or any(each.vpc_id == vpc_id for each in _endpoints(backend)):
        raise DependencyViolationError(f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
    return _delete_vpc(backend, vpc_id)


# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteSecurityGroup.html
def _unused(backend: Any, name: str | None = None, group_id: str | None = None) -> Any:
    if any(group_id in each.security_group_ids for each in _endpoints(backend)):
        raise DependencyViolationError(f"resource {group_id} has a dependent object")
    return _delete_security_group(backend, name, group_id)


def _take_ids(owner: type, create_name: str, module: ModuleType, draw_name: str) -> None:
    """Have a method that creates a resource give it the id that its tags name, which isn't a tag then."""
    create: Callable[..., Any] = getattr(owner, create_name)
    draw: Callable[[], str] = getattr(module, draw_name)
    given: list[str] = []

    def create_with_id(backend: Any, *args: Any, tags: Any = None, **settings: Any) -> Any:
        # A list of pairs, a map, or a map for each type of resource, as each of moto's methods has it.
        pairs = {each["Key"]: each["Value"] for each in tags} if isinstance(tags, list) else dict(tags or {})
        own = next((each for each in pairs.values() if isinstance(each, dict)), pairs)
        if TAG_KEY_CUSTOM_ID in own:
            given.append(own.pop(TAG_KEY_CUSTOM_ID))
            tags = [{"Key": key, "Value": own[key]} for key in own] if isinstance(tags, list) else pairs
        return create(backend, *args, tags=tags, **settings)

    setattr(owner, create_name, create_with_id)
    setattr(module, draw_name, lambda: given.pop() if given else draw())


_take_ids(VPCBackend, "create_vpc", vpcs, "random_vpc_id")
_take_ids(SubnetBackend, "create_subnet", subnets, "random_subnet_id")
_take_ids(SecurityGroupBackend, "create_security_group", security_groups, "random_security_group_id")
_METHODS: tuple[tuple[type, str, Any], ...] = (
    (VPCBackend, "modify_vpc_endpoint", _with_routes_and_interfaces),
    (VPCs, "modify_vpc_endpoint", _with_private_dns),
    (VPCs, "describe_vpc_endpoint_services", _describe_services),
    (NatGatewayBackend, "delete_nat_gateway", _disassociated),
    (SubnetBackend, "delete_subnet", _without_endpoints),
    (VPCBackend, "delete_vpc", _empty),
    (SecurityGroupBackend, "delete_security_group", _unused),
)
for _owner, _name, _method in _METHODS:
    setattr(_owner, _name, _method)
