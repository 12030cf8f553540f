"""What AWS refuses of observability: Grafana without Identity Center, receivers of alerts, levels of metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"
TOPIC = "arn:aws:sns:us-west-2:123456789012:alerts"
WORKSPACE = {"accountAccessType": "CURRENT_ACCOUNT", "permissionType": "CUSTOMER_MANAGED"}


def test_grafana_with_identity_center_needs_that_the_account_has_it(cloud: Any, refused: Callable[..., str]) -> None:
    grafana, sso = cloud.endpoint.client("grafana"), cloud.endpoint.client("sso-admin")
    (instance,) = sso.list_instances()["Instances"]
    sso.delete_instance(InstanceArn=instance["InstanceArn"])
    wanted = {**WORKSPACE, "authenticationProviders": ["AWS_SSO"]}
    assert refused("ValidationException", grafana.create_workspace, **wanted) == "SSO is not enabled in any region."
    saml = grafana.create_workspace(**WORKSPACE, authenticationProviders=["SAML"])["workspace"]["id"]
    refused(
        "ValidationException",
        grafana.update_workspace_authentication,
        workspaceId=saml,
        authenticationProviders=["AWS_SSO", "SAML"],
    )
    sso.create_instance()
    grafana.create_workspace(**wanted)


def test_an_instance_of_identity_center_is_of_one_region(cloud: Any, refused: Callable[..., str]) -> None:
    here = cloud.endpoint.client("sso-admin")
    there = cloud.endpoint.client("sso-admin", region="eu-west-1")
    assert there.list_instances()["Instances"] == []
    assert there.list_instances(RegionScope="ALL_REGIONS") | {"ResponseMetadata": {}} == {
        "Instances": here.list_instances()["Instances"],
        "ResponseMetadata": {},
    }
    refused("ConflictException", here.create_instance)
    refused("ResourceNotFoundException", here.delete_instance, InstanceArn="arn:aws:sso:::instance/ssoins-" + "a" * 16)


def _definition(**config: Any) -> bytes:
    return json.dumps({"alertmanager_config": json.dumps(config)}).encode()


def _sns(**receiver: Any) -> bytes:
    return _definition(route={"receiver": "a"}, receivers=[{"name": "a", "sns_configs": [receiver]}])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"route: {receiver: a}", "alertmanager_config is not a mapping"),
        (b"alertmanager_config: '{'", "alertmanager_config: "),
        (_definition(route={"receiver": "a"}), "undefined receiver 'a' used in route"),
        (
            _definition(route={"receiver": "a"}, receivers=[{"name": "a", "email_configs": [{"to": "a@b.c"}]}]),
            "receiver 'a' has email_configs: only sns_configs are supported",
        ),
        (_sns(topic_arn=TOPIC), "sns_configs need topic_arn and sigv4.region"),
        (_sns(sigv4={"region": "us-west-2"}), "sns_configs need topic_arn and sigv4.region"),
    ],
    ids=["no mapping", "no YAML", "no receiver", "by email", "no region", "no topic"],
)
def test_a_definition_of_alerts_is_refused(cloud: Any, refused: Callable[..., str], data: bytes, said: str) -> None:
    amp = cloud.endpoint.client("amp")
    workspace = amp.create_workspace(alias="a")["workspaceId"]
    wanted = {"workspaceId": workspace, "data": data}
    assert said in refused("ValidationException", amp.create_alert_manager_definition, **wanted)
    good = _sns(topic_arn=TOPIC, sigv4={"region": "us-west-2"})
    amp.create_alert_manager_definition(workspaceId=workspace, data=good)
    assert said in refused("ValidationException", amp.put_alert_manager_definition, **wanted)


@pytest.mark.parametrize("category", ["taskGovernanceMetrics", "scalingMetrics", "networkMetrics"])
def test_a_category_that_is_off_has_nothing_between_off_and_advanced(
    cloud: Any, refused: Callable[..., str], category: str
) -> None:
    cloud.eks.create_addon(clusterName="kube", addonName="eks-pod-identity-agent")
    addon = {"clusterName": "kube", "addonName": OBSERVABILITY}
    said = refused(
        "InvalidParameterException",
        cloud.eks.create_addon,
        **addon,
        configurationValues=json.dumps({"metricsProvider": {category: {"level": "BASIC"}}}),
    )
    assert f"[$.metricsProvider.{category}.level: 'BASIC' is not one of ['DISABLED', 'ADVANCED']]" in said
    for level in ("DISABLED", "ADVANCED"):
        values = {"metricsProvider": {category: {"level": level}}}
        cloud.eks.create_addon(**addon, configurationValues=json.dumps(values))
        cloud.eks.delete_addon(**addon)
