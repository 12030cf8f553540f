"""Faults over HTTP, and throttling in the words of each protocol."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from hpkit_local.aws.testing import running_endpoint


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
        assert _http(url, "GET") == (200, {"conflict": "1@Update*"}), "a refused change must change nothing"
        assert _http(url, "POST", b"{")[0] == 400
        assert _http(url, "POST", [1])[0] == 400
        assert _http(url, "DELETE") == (200, {})
