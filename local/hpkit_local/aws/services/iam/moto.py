"""Adds what moto 5.2 lacks in IAM.

- AddClientIDToOpenIDConnectProvider and RemoveClientIDFromOpenIDConnectProvider.
- AWS's own policies (1,500) only in the partition `aws`. moto searches all partitions for an access key, and would fill
  each of them.
- State files contain only the names of those policies.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, IAMBackend
from moto.iam.responses import IamResponse

__all__: list[str] = []

# AWS's own policies, such as AmazonEKSClusterPolicy, must be there to be attached.
os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")

_aws_policies = IAMBackend._init_aws_policies  # noqa: SLF001 - moto has no other seam for it


def _policies_of_partition(backend: Any) -> list[Any]:
    return _aws_policies(backend) if backend.region_name == "aws" else []


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


@cache
def _policies() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(aws_managed_policies_data)
    return found


def _load_policy(name: str, account: str) -> Any:
    return AWSManagedPolicy.from_data(name, account, "aws", _policies()[name])


def _reduce(policy: Any, protocol: int) -> Any:
    return (
        object.__reduce_ex__(policy, protocol)
        if policy.attachment_count
        else (_load_policy, (policy.name, policy.account_id))
    )


_METHODS: tuple[tuple[type, str, Any], ...] = (
    (AWSManagedPolicy, "__reduce_ex__", _reduce),
    (IAMBackend, "_init_aws_policies", _policies_of_partition),
    (IamResponse, "add_client_id_to_open_id_connect_provider", _add_client),
    (IamResponse, "remove_client_id_from_open_id_connect_provider", _remove_client),
)
for _owner, _name, _method in _METHODS:
    setattr(_owner, _name, _method)
