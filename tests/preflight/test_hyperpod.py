"""A HyperPod cluster that another stack or tool manages must match the file."""

import pytest

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.derive import derive
from hpkit.preflight.calls import CLUSTERS, cluster
from hpkit.preflight.hyperpod import check_hyperpod
from tests.builders import organization, typed

ARN = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghijkl"
LISTED = {CLUSTERS.key: {"ClusterSummaries": [{"ClusterName": "acme", "ClusterArn": ARN}]}}
DENIED = FailedCall("sagemaker:DescribeCluster", "AccessDeniedException", "not allowed")


def live(*counts):
    groups = [{"InstanceGroupName": name, "InstanceType": kind, "TargetCount": count} for name, kind, count in counts]
    return LISTED | {cluster(ARN).key: {"ClusterArn": ARN, "ClusterStatus": "InService", "InstanceGroups": groups}}


@pytest.mark.parametrize(
    ("given", "status", "detail"),
    [
        (live(("gpu", "ml.g5.12xlarge", 4)), "ok", "InService"),
        (live(("gpu", "ml.g5.12xlarge", 3)), "missing", "gpu has 3 instances instead of 4"),
        (live(("gpu", "ml.p5.48xlarge", 4)), "missing", "gpu has ml.p5.48xlarge instead of ml.g5.12xlarge"),
        (live(("gpu", "ml.g5.12xlarge", 5)), "changed", "gpu has 5 instances instead of 4"),
        (LISTED | {cluster(ARN).key: DENIED}, "unknown", "exists"),
        ({CLUSTERS.key: {"ClusterSummaries": []}}, "missing", "missing"),
    ],
)
def test_an_existing_cluster_has_at_least_the_stated_groups(given, status, detail):
    data = organization(environment={"eks": {"version": "1.35", "existing": {"name": "kube"}}})
    data["environments"]["dev"]["cluster"]["existing"] = True
    (row,) = check_hyperpod(derive(typed(data), "dev"), Responses(given))
    assert (row.status, row.found) == (status, detail)
