"""The next update continues what an interrupted creation left in the state."""

import threading

import pytest

from hpkit_local.aws.testing import running_endpoint
from hpkit_local.plugins.aws import lifecycle
from hpkit_local.plugins.aws.calls import Calls, Clients
from hpkit_local.plugins.aws.config import settings_from
from hpkit_local.plugins.aws.table import RESOURCE_TYPES
from hpkit_provider.engine.task import Task


@pytest.fixture
def call():
    resource_type = RESOURCE_TYPES["aws:amp/workspace:Workspace"]
    with running_endpoint(latency_factor=0) as endpoint:
        cancelled = threading.Event()
        clients = Clients(settings_from({}, {"AWS_ENDPOINT_URL": endpoint.url, "AWS_REGION": "us-west-2"}), cancelled)
        task = Task("urn", 60.0, cancelled)
        yield Calls(
            clients, task, service="amp", region="us-west-2", allowed=resource_type.allowed, owner=resource_type.token
        )


def test_tags_of_what_was_made_before_its_arn_was_known_are_brought_up_to_date(call):
    resource_type = RESOURCE_TYPES["aws:amp/workspace:Workspace"]
    inputs = {"alias": "acme"}
    made = lifecycle.create(resource_type, call, inputs, {"team": "ml"})
    updated = lifecycle.update(
        resource_type, call, made.resource_id, old=inputs, new=inputs, state=inputs, common={"cost-center": "ml"}
    )
    assert updated.state["tagsAll"] == {"cost-center": "ml"}
    assert updated.state["arn"] == made.state["arn"]
