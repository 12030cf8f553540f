"""Sources of the plugin's settings and credentials, and how long it waits for a response."""

import json
import socket
import threading

import pytest

from hpkit_local.aws.backend import Backend, EndpointSettings
from hpkit_local.aws.server import Endpoint
from hpkit_provider.aws.client import _TRANSIENT_TRIES, ClientSettings, SageMakerApi, settings_from
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import RejectedError
from tests.provider.harness import in_process
from tests.running import held_port

TRUST = (
    '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",'
    ' "Principal": {"Service": "eks.amazonaws.com"}}]}'
)

ROLE = "arn:aws:iam::123456789012:role/deployer"


def test_the_stacks_aws_settings_stand_in_for_the_plugins_own():
    stack = {
        "aws:region": "eu-west-1",
        "aws:profile": "platform",
        "aws:endpoints": json.dumps([{"sagemaker": "http://127.0.0.1:1"}]),
        "aws:assumeRoles": json.dumps([{"roleArn": ROLE}]),
    }
    settings = settings_from({}, {"PULUMI_CONFIG": json.dumps(stack)})
    assert (settings.region, settings.profile) == ("eu-west-1", "platform")
    assert (settings.endpoint, settings.assume_role_arn) == ("http://127.0.0.1:1", ROLE)
    own = {"region": "us-west-2", "endpoint": "http://127.0.0.1:2", "profile": "mine", "assumeRoleArn": f"{ROLE}2"}
    settings = settings_from(own, {"PULUMI_CONFIG": json.dumps(stack)})
    assert (settings.region, settings.profile) == ("us-west-2", "mine")
    assert (settings.endpoint, settings.assume_role_arn) == ("http://127.0.0.1:2", f"{ROLE}2")


@pytest.mark.parametrize("broken", ["no json", "{}", "[]", "[1]", '[{"sagemaker": 7}]'])
def test_a_setting_that_cannot_be_read_is_none(broken):
    assert settings_from({}, {"PULUMI_CONFIG": json.dumps({"aws:endpoints": broken})}).endpoint is None


def test_only_a_local_cloud_is_called_for_sts_too():
    there = "http://127.0.0.1:1"
    assert settings_from({}, {"AWS_ENDPOINT_URL_SAGEMAKER": there}).sts_endpoint == there
    assert settings_from({"endpoint": AWAY}, {}).sts_endpoint is None


AWAY = "https://api.sagemaker.us-west-2.amazonaws.com"


@pytest.mark.parametrize(
    ("config", "variables"),
    [
        ({"endpoint": AWAY}, {}),
        ({}, {"AWS_ENDPOINT_URL_SAGEMAKER": AWAY}),
        ({}, {"PULUMI_CONFIG": json.dumps({"aws:endpoints": json.dumps([{"sagemaker": AWAY}])})}),
        ({}, {"PULUMI_CONFIG": json.dumps({"aws:endpoints": json.dumps([{"sts": AWAY}])})}),
    ],
    ids=["its own", "of the shell", "of the stack", "of the stack, for STS"],
)
def test_a_run_on_a_local_cloud_calls_nobody_outside_by_an_endpoint_of_a_service(config, variables):
    with pytest.raises(RejectedError, match=rf"{AWAY}\. Nothing was read or changed"):
        settings_from(config, {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", **variables})
    assert settings_from(config, variables), "in AWS it is a private endpoint"


def test_every_call_is_made_as_the_role_to_assume(world, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", world.endpoint.url)
    role = world.endpoint.client("iam").create_role(RoleName="deployer", AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    with in_process(**world.settings, assumeRoleArn=role) as engine:
        assert engine.up("Cluster", "c", world.cluster())["outputs"]["clusterStatus"] == "InService"
        api = engine.servicer.clients.api
        key = api.client()._request_signer._credentials.access_key
    assert key != "testing", "the keys are those that STS handed out"


@pytest.fixture
def away(monkeypatch):
    """Return a port on which nothing responds yet."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with held_port() as port:
        yield port


def test_a_change_outlasts_a_connection_that_is_lost_for_a_while(away):
    started = []

    def begin():
        started.append(Endpoint(Backend(EndpointSettings()), port=away))
        started[0].start()

    late = threading.Timer(4.0, begin)
    late.start()
    try:
        api = SageMakerApi(ClientSettings("us-west-2", f"http://127.0.0.1:{away}"))
        assert api.call(EngineCall("urn", 60.0, threading.Event()), "list_clusters")["ClusterSummaries"] == []
    finally:
        late.join()
        started[0].stop()


def test_a_preview_does_not_wait_long_for_an_answer(away):
    api = SageMakerApi(ClientSettings("us-west-2", f"http://127.0.0.1:{away}"))
    with pytest.raises(RejectedError, match=r"couldn't be sent .* To fix: check hyperpod:region"):
        api.call(EngineCall("urn", 60.0, threading.Event(), best_effort=True), "list_clusters")
    assert 1 < api.calls["list_clusters"] < _TRANSIENT_TRIES, "as often as takes a moment"


def test_an_answer_that_is_cut_off_is_no_answer(away):
    whole = b'{"ClusterSummaries": [], "NextToken": "more"}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.1\r\nConnection: close\r\n"

    def answer(server):
        for body in (b"", whole):
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(head + f"Content-Length: {len(whole)}\r\n\r\n".encode() + body)

    with socket.create_server(("127.0.0.1", away)) as server:
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        api = SageMakerApi(ClientSettings("us-west-2", f"http://127.0.0.1:{away}"))
        assert api.call(EngineCall("urn", 60.0, threading.Event()), "list_clusters")["NextToken"] == "more"
        thread.join()
    assert api.calls["list_clusters"] == 2
