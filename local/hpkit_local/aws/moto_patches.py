"""What moto 5.2 lacks or forgets in services that it answers for, added to its own classes.

- ModifyVpcEndpoint: routes of added and removed route tables (without them the endpoint cannot be deleted), network
  interfaces of added and removed subnets, private DNS.
- DeleteSubnet, DeleteVpc and DeleteSecurityGroup refuse while a VPC endpoint, or for the VPC a security group, is left.
- FSx: the version, status, owner and mount name of a file system.
- AddClientIDToOpenIDConnectProvider and RemoveClientIDFromOpenIDConnectProvider.
- IAM: AWS's own policies (1,500) in the partition `aws` alone. moto looks through all partitions for an access key, and
  would fill every one of them.
"""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models.security_groups import SecurityGroupBackend
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.models.vpcs import VPCBackend
from moto.ec2.responses.vpcs import VPCs
from moto.ec2.utils import random_private_ip
from moto.fsx.models import FileSystem, FSxBackend
from moto.iam.models import IAMBackend
from moto.iam.responses import IamResponse
from moto.sts.models import STSBackend

__all__ = ["CALLER_KEY", "patch_moto"]

# Of the session of callers that moto has no user or session of; no key of moto's own looks like it.
CALLER_KEY = "caller"

_modify_vpc_endpoint = VPCBackend.modify_vpc_endpoint
_delete_subnet = SubnetBackend.delete_subnet
_delete_vpc = VPCBackend.delete_vpc
_delete_security_group = SecurityGroupBackend.delete_security_group
_create_file_system = FSxBackend.create_file_system
_describe_file_system = FileSystem.to_dict
_aws_policies = IAMBackend._init_aws_policies  # noqa: SLF001 - moto has no other seam for it
_caller_identity = STSBackend.get_caller_identity
_answer_modify_vpc_endpoint = VPCs.modify_vpc_endpoint


def patch_moto() -> None:
    """Change moto's classes, once for the process."""
    methods = (
        (VPCBackend, "modify_vpc_endpoint", _with_routes_and_interfaces),
        (VPCs, "modify_vpc_endpoint", _with_private_dns),
        (SubnetBackend, "delete_subnet", _without_endpoints),
        (VPCBackend, "delete_vpc", _empty),
        (SecurityGroupBackend, "delete_security_group", _unused),
        (FSxBackend, "create_file_system", _with_version),
        (FileSystem, "to_dict", _whole_file_system),
        (IAMBackend, "_init_aws_policies", _policies_of_partition),
        (STSBackend, "get_caller_identity", _with_role),
        (IamResponse, "add_client_id_to_open_id_connect_provider", _add_client),
        (IamResponse, "remove_client_id_from_open_id_connect_provider", _remove_client),
    )
    for owner, name, method in methods:
        setattr(owner, name, method)


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


def _without_endpoints(backend: Any, subnet_id: str) -> Any:
    if any(subnet_id in (each.subnet_ids or []) for each in _endpoints(backend)):
        raise DependencyViolationError(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    return _delete_subnet(backend, subnet_id)


def _empty(backend: Any, vpc_id: str) -> Any:
    left = [each for each in backend.groups.get(vpc_id, {}).values() if each.name != "default"]
    if left or any(each.vpc_id == vpc_id for each in _endpoints(backend)):
        raise DependencyViolationError(f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
    return _delete_vpc(backend, vpc_id)


def _unused(backend: Any, name: str | None = None, group_id: str | None = None) -> Any:
    if any(group_id in each.security_group_ids for each in _endpoints(backend)):
        raise DependencyViolationError(f"resource {group_id} has a dependent object")
    return _delete_security_group(backend, name, group_id)


def _with_version(backend: Any, **request: Any) -> Any:
    system: Any = _create_file_system(backend, **request)
    system.version = request.get("file_system_type_version") or "2.10"  # what FSx for Lustre takes by itself
    return system


def _whole_file_system(system: Any) -> dict[str, Any]:
    told = _describe_file_system(system)
    state = {"Lifecycle": "AVAILABLE", "OwnerId": system.backend.account_id, "FileSystemTypeVersion": system.version}
    # Eight characters that FSx chooses (Amazon FSx API reference, LustreFileSystemConfiguration).
    lustre = {**told.get("LustreConfiguration", {}), "MountName": system.file_system_id[-8:]}
    return {**told, **state, "LustreConfiguration": lustre}


def _policies_of_partition(backend: Any) -> list[Any]:
    return _aws_policies(backend) if backend.region_name == "aws" else []


def _with_role(backend: Any, access_key_id: str, region: str) -> tuple[str, str, str]:
    """Answer as the session of `CALLER_KEY`, if there is one, where moto has no user or session of a key."""
    identity: tuple[str, str, str] = _caller_identity(backend, access_key_id, region)
    session = backend.get_assumed_role_from_access_key(CALLER_KEY)
    if session is None or not identity[1].endswith(":user/moto"):
        return identity
    return session.user_id, session.arn, session.account_id


def _clients(response: Any) -> tuple[list[str], str]:
    provider = response.backend.get_open_id_connect_provider(response._get_param("OpenIDConnectProviderArn"))  # noqa: SLF001
    return provider.client_id_list, response._get_param("ClientID")  # noqa: SLF001


def _add_client(response: Any) -> ActionResult:
    clients, client = _clients(response)
    if client not in clients:
        clients.append(client)
    return EmptyResult()


def _remove_client(response: Any) -> ActionResult:
    clients, client = _clients(response)
    if client in clients:
        clients.remove(client)
    return EmptyResult()
