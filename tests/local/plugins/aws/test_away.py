"""The plugin waits for an endpoint that is briefly unreachable, reports one that stays so, and repeats some calls."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from botocore.exceptions import ClientError

from hpkit_local.aws.backend import Backend, EndpointSettings
from hpkit_local.aws.server import Endpoint
from hpkit_local.plugins.aws.calls import Calls, Clients
from hpkit_local.plugins.aws.config import settings_from
from hpkit_local.plugins.aws.resource_type import PlannedUpdate
from hpkit_local.plugins.aws.table import RESOURCE_TYPES
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError
from tests.running import held_port

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def port():
    with held_port() as port:
        yield port


@pytest.fixture
def cancelled():
    return threading.Event()


class Refusing:
    """A client whose VPC can't be deleted the first times."""

    def __init__(self, *codes):
        self.codes = list(codes)

    def delete_vpc(self, **_):
        if self.codes:
            raise ClientError({"Error": {"Code": self.codes.pop(0), "Message": ""}}, "DeleteVpc")


@pytest.mark.parametrize(
    ("token", "code", "waits"),
    [
        ("aws:ec2/vpc:Vpc", "DependencyViolation", True),
        ("aws:ec2/vpc:Vpc", "OperationNotPermitted", False),
        # The official plugin waits for other changes of some types alone.
        ("aws:ec2/eip:Eip", "DependencyViolation", False),
    ],
)
def test_only_errors_that_the_official_plugin_waits_out_are_waited_out(cancelled, monkeypatch, token, code, waits):
    environment = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_REGION": "us-west-2"}
    clients = Clients(settings_from({}, environment), cancelled)
    monkeypatch.setattr(clients, "get", lambda *_: Refusing(code, code))
    call = Calls(
        clients,
        EngineCall("urn", 60.0, cancelled),
        service="ec2",
        region="us-west-2",
        allowed=frozenset({"DeleteVpc"}),
        owner=token,
        retries=RESOURCE_TYPES[token].retries,
    )
    with nullcontext() if waits else pytest.raises(PluginError, match=code):
        call("DeleteVpc", VpcId="vpc-1")


@pytest.mark.parametrize(("factor", "seconds"), [("1", 55.0), ("0.0002", 0.011), ("0", None)])
def test_the_official_plugin_s_waits_take_as_long_as_the_services_do(cancelled, monkeypatch, factor, seconds):
    environment = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_REGION": "us-west-2", "HPKIT_LATENCY_FACTOR": factor}
    clients, task = Clients(settings_from({}, environment), cancelled), EngineCall("urn", 60.0, cancelled)
    paused = []
    monkeypatch.setattr(task, "pause", paused.append)
    kind = RESOURCE_TYPES["aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"]
    call = Calls(clients, task, service="s3", region="us-west-2", allowed=frozenset(), owner="a test")
    kind.wait(call, "bucket", PlannedUpdate({}, {}, frozenset()))
    assert paused == ([] if seconds is None else [pytest.approx(seconds)])


@pytest.fixture
def call(port, cancelled):
    environment = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-west-2"}
    clients = Clients(settings_from({}, environment), cancelled)
    # Longer than a test may take, so the test fails if it waits that long.
    task = EngineCall("urn", 3600.0, cancelled)
    return Calls(clients, task, service="ec2", region="us-west-2", allowed=frozenset({"DescribeVpcs"}), owner="a test")


def test_all_calls_wait_for_an_endpoint_that_is_being_started(call, port):
    started = []

    def begin():
        endpoint = Endpoint(Backend(EndpointSettings()), port=port)
        endpoint.start()
        started.append(endpoint)

    late = threading.Timer(4.0, begin)
    late.start()
    try:
        # So many that they would exhaust botocore's shared retry quota.
        with ThreadPoolExecutor(40) as threads:
            assert all(threads.map(lambda _: call("DescribeVpcs")["Vpcs"], range(40)))
    finally:
        late.join()
        started[0].stop()


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("aws:sns/topic:Topic", {"name": "alerts", "tagsAll": {}}),
        ("aws:s3/bucket:Bucket", {"bucket": "sagemaker-scripts", "tagsAll": {}}),
    ],
)
def test_what_exists_is_not_created_again_although_the_service_would_return_it(port, cancelled, token, inputs):
    endpoint = Endpoint(Backend(EndpointSettings()), port=port)
    endpoint.start()
    try:
        environment = {"AWS_ENDPOINT_URL": endpoint.url, "AWS_REGION": "us-east-1"}
        environment |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        kind = RESOURCE_TYPES[token]
        call = Calls(
            Clients(settings_from({}, environment), cancelled),
            EngineCall("urn", 60.0, cancelled),
            service=kind.service,
            region="us-east-1",
            allowed=kind.allowed,
            owner=token,
            retries=kind.retries,
        )
        kind.create(call, inputs)
        with pytest.raises(PluginError, match=r"already exists|BucketAlreadyExists"):
            kind.create(call, inputs)
    finally:
        endpoint.stop()
