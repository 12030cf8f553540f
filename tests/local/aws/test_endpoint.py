"""The endpoint as a whole: pages, regions, parallel endpoints, and faults."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from tests.endpoint import running_endpoint


def test_lists_come_in_pages(cloud: Any, refused: Callable[..., str]) -> None:
    arn = cloud.govern()
    for team in ("a", "b", "c"):
        cloud.quota(arn, team)
    pages = list(
        cloud.sm.get_paginator("list_compute_quotas").paginate(SortBy="Name", PaginationConfig={"PageSize": 2})
    )
    assert [[entry["Name"] for entry in page["ComputeQuotaSummaries"]] for page in pages] == [
        ["quota-a", "quota-b"],
        ["quota-c"],
    ]
    first = cloud.sm.list_compute_quotas(MaxResults=1, SortBy="Name", SortOrder="Descending")
    assert first["ComputeQuotaSummaries"][0]["Name"] == "quota-c"
    assert cloud.sm.list_compute_quotas(NameContains="a-b")["ComputeQuotaSummaries"][0]["Name"] == "quota-b"
    text = refused("ValidationException", cloud.sm.list_compute_quotas, NextToken="nonsense")
    assert text == "Invalid pagination token: nonsense"
    refused("ValidationException", cloud.sm.list_compute_quotas, MaxResults=101)
    policies = cloud.eks.get_paginator("list_access_policies").paginate(PaginationConfig={"PageSize": 5})
    assert len([entry for page in policies for entry in page["accessPolicies"]]) == 14


def test_nodes_and_events_come_in_pages(cloud: Any) -> None:
    cloud.make_cluster(InstanceGroups=[cloud.group(count=25)])
    assert len(cloud.nodes()) == 25
    first = cloud.sm.list_cluster_nodes(ClusterName="train", MaxResults=10)
    assert (len(first["ClusterNodeSummaries"]), "NextToken" in first) == (10, True)
    events = cloud.sm.get_paginator("list_cluster_events").paginate(
        ClusterName="train", PaginationConfig={"PageSize": 7}
    )
    assert sum(len(page["Events"]) for page in events) >= 27


def test_regions_are_apart(cloud: Any, refused: Callable[..., str]) -> None:
    cloud.make_cluster()
    elsewhere = cloud.endpoint.client("sagemaker", "eu-west-1")
    refused("ResourceNotFound", elsewhere.describe_cluster, ClusterName="train")


def test_it_listens_on_loopback_only(cloud: Any) -> None:
    assert cloud.endpoint.url.startswith("http://127.0.0.1:")


def _http(url: str, method: str, body: object = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode() if not isinstance(body, bytes) else body
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 - our own loopback URL
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310 - our own loopback URL
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_throttling_is_answered_in_the_words_of_each_protocol(refused: Callable[..., str]) -> None:
    with running_endpoint(faults=["throttle=1"]) as endpoint:
        refused("ThrottlingException", endpoint.client("sagemaker").list_clusters)
        refused("ThrottlingException", endpoint.client("eks").list_clusters)
        refused("RequestLimitExceeded", endpoint.client("ec2").describe_vpcs)
        refused("Throttling", endpoint.client("iam").list_roles)
        refused("SlowDown", endpoint.client("s3").list_buckets)
        endpoint.set_faults(throttle=None)
        assert endpoint.client("sagemaker").list_clusters()["ClusterSummaries"] == []


def test_faults_are_set_shown_and_taken_away_over_http() -> None:
    with running_endpoint() as endpoint:
        url = endpoint.url + "/_hpkit/faults"
        assert _http(url, "GET") == (200, {})
        assert _http(url, "POST", {"throttle": 0.25, "conflict": "1@Update*"}) == (
            200,
            {"conflict": "1@Update*", "throttle": "0.25@*"},
        )
        assert _http(url, "POST", {"throttle": None}) == (200, {"conflict": "1@Update*"})
        status, answer = _http(url, "POST", {"conflict": None, "throttle": 7})
        assert (status, answer["error"]) == (
            400,
            "fault throttle: 7 must be between 0 and 1 (probability that a call fails with ThrottlingException)",
        )
        assert _http(url, "GET") == (200, {"conflict": "1@Update*"}), "a rejected change must change nothing"
        assert _http(url, "POST", b"{")[0] == 400
        assert _http(url, "POST", [1])[0] == 400
        assert _http(url, "DELETE") == (200, {})


def _to_resolvable_host(request: Any, **_: Any) -> None:
    """Remove the account in front of the host: not every resolver knows names below `localhost`."""
    request.url = request.url.replace("123456789012.", "")


def test_tags_of_a_bucket_are_those_of_its_creation_and_change_by_s3_control() -> None:
    arn = "arn:aws:s3:::tagged-bucket"
    with running_endpoint() as endpoint:
        s3 = endpoint.client("s3")
        location: Any = {"LocationConstraint": "us-west-2", "Tags": [{"Key": "team", "Value": "ada"}]}
        s3.create_bucket(Bucket="tagged-bucket", CreateBucketConfiguration=location)
        control = endpoint.client("s3control")
        control.meta.events.register("before-send.s3-control", _to_resolvable_host)
        account: Any = {"AccountId": "123456789012", "ResourceArn": arn}
        assert control.list_tags_for_resource(**account)["Tags"] == location["Tags"]
        control.tag_resource(**account, Tags=[{"Key": "stage", "Value": "dev"}])
        control.untag_resource(**account, TagKeys=["team"])
        assert s3.get_bucket_tagging(Bucket="tagged-bucket")["TagSet"] == [{"Key": "stage", "Value": "dev"}]
