"""AWS calls: all pages are read, failures become responses, and nothing is raised."""

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from hpkit.clients.aws import call_all
from hpkit.clients.calls import FailedCall, Responses
from hpkit.preflight.calls import CALLER, CLUSTERS, VPCS, ZONES, applied_quotas, role

KEYS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": "us-west-2"}


class Prepared(boto3.Session):
    """A session of clients with prepared responses, which are validated against the API's model like the requests."""

    def __init__(self):
        super().__init__(**KEYS)
        self.prepared = {}

    def stub(self, service):
        client = super().client(service, config=Config(retries={"total_max_attempts": 1}))
        self.prepared[service] = client
        stubber = Stubber(client)
        stubber.activate()
        return stubber

    def client(self, service_name, **_):
        return self.prepared[service_name]


def fetch(session, *calls):
    progress = []
    responses = Responses(call_all(session, calls, on_progress=lambda done, total: progress.append((done, total))))
    assert progress == [(done, len(calls)) for done in range(1, len(calls) + 1)]
    return responses


def test_all_pages_of_a_list_are_one_response():
    session = Prepared()
    stub = session.stub("service-quotas")
    call = applied_quotas("sagemaker")
    pages = [[{"QuotaName": f"quota {page}-{index}", "Value": 1.0} for index in range(2)] for page in range(3)]
    for number, page in enumerate(pages):
        token = {"NextToken": str(number + 1)} if number < 2 else {}
        expected = {"ServiceCode": "sagemaker", "MaxResults": 100, **({"NextToken": str(number)} if number else {})}
        stub.add_response("list_service_quotas", {"Quotas": page, **token}, expected)
    names = [quota["QuotaName"] for quota in fetch(session, call).of(call)["Quotas"]]
    assert names == ["quota 0-0", "quota 0-1", "quota 1-0", "quota 1-1", "quota 2-0", "quota 2-1"]


def test_a_list_that_the_service_leaves_out_is_empty():
    session = Prepared()
    session.stub("ec2").add_response("describe_availability_zones", {}, dict(ZONES.params))
    assert list(fetch(session, ZONES).of(ZONES)["AvailabilityZones"]) == []
    session.stub("sagemaker").add_response("list_clusters", {"ClusterSummaries": []})
    assert list(fetch(session, CLUSTERS).of(CLUSTERS)["ClusterSummaries"]) == []


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"])
def test_a_refused_call_says_which_action_to_allow(code):
    session = Prepared()
    session.stub("ec2").add_client_error("describe_vpcs", code, "You are not authorized", 403)
    found = fetch(session, VPCS).of(VPCS)
    assert found == FailedCall("ec2:DescribeVpcs", code, "You are not authorized")
    assert found.fix == "Allow ec2:DescribeVpcs to the caller"


def test_what_is_not_there_differs_from_what_cannot_be_seen():
    session = Prepared()
    stub = session.stub("iam")
    call = role("Admin")
    stub.add_client_error("get_role", "NoSuchEntity", "no such role", 404)
    assert fetch(session, call).of(call).is_absence
    stub.add_client_error("get_role", "ServiceFailure", "try again", 400)
    assert not fetch(session, call).of(call).is_absence


def test_one_failure_leaves_the_other_responses_alone():
    session = Prepared()
    session.stub("ec2").add_client_error("describe_vpcs", "InternalError", "oops", 400)
    identity = {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/ann", "UserId": "A"}
    session.stub("sts").add_response("get_caller_identity", identity)
    responses = fetch(session, VPCS, CALLER)
    assert isinstance(responses.of(VPCS), FailedCall)
    assert responses.of(CALLER)["Account"] == "123456789012"


def test_a_region_that_no_endpoint_can_be_made_of_is_a_failure():
    session = boto3.Session(**{**KEYS, "region_name": "not a region"})
    found = fetch(session, CALLER).of(CALLER)
    assert isinstance(found, FailedCall)
    assert "region" in found.message.lower()


def test_a_call_that_was_never_made_is_a_failure():
    assert Responses({}).of(VPCS) == FailedCall("ec2:DescribeVpcs", "NotAsked", "the call was not made")
