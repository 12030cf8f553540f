"""The plugin waits for an endpoint that is briefly unreachable, and reports one that stays unreachable."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from hpkit_local.aws.backend import Backend, EndpointSettings
from hpkit_local.aws.server import Endpoint
from hpkit_local.plugins.aws.calls import Calls, Clients
from hpkit_local.plugins.aws.config import settings_from
from hpkit_provider.engine.call import EngineCall
from tests.running import held_port

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def port():
    with held_port() as port:
        yield port


@pytest.fixture
def cancelled():
    return threading.Event()


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
