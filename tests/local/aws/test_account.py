"""An endpoint is one AWS account: every service uses its number in ARNs, owners and identities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hpkit_local.aws.api import BackendView
from hpkit_local.aws.services.eks.view import caller_of
from tests.endpoint import RunningEndpoint, running_endpoint
from tests.local.aws.conftest import Cloud

PROD, DEV = "210987654321", "123456789012"
TRUST = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
DOCUMENT = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})


def identities(endpoint: RunningEndpoint) -> dict[str, str]:
    """Create something in each service; return the account that each service's response contains."""
    cloud = Cloud(endpoint)
    sts = endpoint.client("sts")
    session = sts.assume_role(RoleArn=cloud.role("deploy", "eks.amazonaws.com"), RoleSessionName="deploy")
    listed: dict[str, Any] = {
        "sts": sts.get_caller_identity()["Arn"],
        "session": session["AssumedRoleUser"]["Arn"],
        "iam": cloud.node_role,
        "eks": cloud.eks_arn,
        "sns": endpoint.client("sns").create_topic(Name="topic")["TopicArn"],
        "kms": endpoint.client("kms").create_key()["KeyMetadata"]["Arn"],
        "ecr": endpoint.client("ecr").create_repository(repositoryName="images")["repository"]["repositoryArn"],
    }
    owner = cloud.ec2.describe_vpcs(VpcIds=[cloud.vpc])["Vpcs"][0]["OwnerId"]
    return {**{service: arn.split(":")[4] for service, arn in listed.items()}, "ec2": owner}


def test_every_service_answers_as_the_account_of_the_endpoint() -> None:
    with running_endpoint(account=PROD) as prod, running_endpoint() as dev:
        assert set(identities(prod).values()) == {PROD}
        assert set(identities(dev).values()) == {DEV}, "the account without an option"


def test_callers_of_another_account_see_nothing_and_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "aws.json"
    with running_endpoint(account=PROD, state_file=file) as endpoint:
        role = Cloud(endpoint).node_role
    with running_endpoint(account=PROD, caller_account=DEV, state_file=file) as endpoint:
        assert endpoint.client("sts").get_caller_identity()["Account"] == DEV
        assert endpoint.client("iam").list_roles()["Roles"] == []
        with pytest.raises(ClientError, match=f"the caller is of account {DEV}, .* belongs to account {PROD}"):
            endpoint.client("eks").list_clusters()
        caller = caller_of(BackendView(endpoint._endpoint.backend), "local", cluster="kube")
        assert (caller.account, caller.entry) == (DEV, None)
    with running_endpoint(account=PROD, state_file=file) as endpoint:
        assert endpoint.client("iam").get_role(RoleName="node")["Role"]["Arn"] == role
        assert endpoint.client("eks").list_clusters()["clusters"] == ["kube"]


def test_the_clients_of_the_local_cloud_have_the_role_that_it_is_started_with(tmp_path: Path) -> None:
    def caller(endpoint: RunningEndpoint) -> tuple[str, str]:
        view = BackendView(endpoint._endpoint.backend)
        found = caller_of(view, "local", cluster="kube")
        return found.arn, found.principal

    file, role = tmp_path / "aws.json", f"arn:aws:iam::{PROD}:role/ci/deployer"
    with running_endpoint(account=PROD, caller_role=role, state_file=file) as endpoint:
        session = f"arn:aws:sts::{PROD}:assumed-role/deployer/hpkit"
        assert caller(endpoint) == (session, role)
        assert endpoint.client("sts").get_caller_identity()["Arn"] == session
        assumed = endpoint.client("sts").assume_role(RoleArn=role.replace("deployer", "other"), RoleSessionName="own")
        key = assumed["Credentials"]["AccessKeyId"]
        view = BackendView(endpoint._endpoint.backend)
        assert caller_of(view, key, cluster="kube").arn == f"arn:aws:sts::{PROD}:assumed-role/other/own"
    with running_endpoint(account=PROD, state_file=file) as endpoint:
        assert caller(endpoint)[0] == f"arn:aws:sts::{PROD}:user/moto"
