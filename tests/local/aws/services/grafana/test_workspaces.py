"""Managed Grafana: workspaces, and which requests are rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Refused = Callable[..., str]
WORKSPACE = {"accountAccessType": "CURRENT_ACCOUNT", "permissionType": "CUSTOMER_MANAGED"}


def test_a_grafana_workspace_is_there_and_done_before_it_changes(slow_cloud: Any, refused: Refused) -> None:
    grafana = slow_cloud.endpoint.client("grafana")
    unknown = "arn:aws:grafana:us-west-2:123456789012:/workspaces/g-0123456789"
    refused("ResourceNotFoundException", grafana.tag_resource, resourceArn=unknown, tags={"a": "b"})
    refused("ResourceNotFoundException", grafana.describe_workspace, workspaceId="g-0123456789")
    wanted = {
        "accountAccessType": "CURRENT_ACCOUNT",
        "permissionType": "SERVICE_MANAGED",
        "authenticationProviders": ["AWS_SSO"],
    }
    assert "1.0 is not one of" in refused(
        "ValidationException", grafana.create_workspace, **wanted, grafanaVersion="1.0"
    )
    workspace = grafana.create_workspace(**wanted)["workspace"]["id"]
    text = refused("ConflictException", grafana.update_workspace, workspaceId=workspace, workspaceDescription="d")
    assert "is in status CREATING" in text


def test_grafana_with_identity_center_needs_that_the_account_has_it(cloud: Any, refused: Callable[..., str]) -> None:
    grafana, sso = cloud.endpoint.client("grafana"), cloud.endpoint.client("sso-admin")
    (instance,) = sso.list_instances()["Instances"]
    sso.delete_instance(InstanceArn=instance["InstanceArn"])
    wanted = {**WORKSPACE, "authenticationProviders": ["AWS_SSO"]}
    assert refused("ValidationException", grafana.create_workspace, **wanted) == "SSO is not enabled in any region."
    grafana.create_workspace(**WORKSPACE, authenticationProviders=["SAML"])
    sso.create_instance()
    grafana.create_workspace(**wanted)
