"""What members can't request from KubeRay, in CEL alone; tests/security uses an API server."""

from copy import deepcopy

import pytest

from hpkit.plan.team_limits import PodLimits
from hpkit.program.components.admission.ray import ray_policy
from tests.program.components.evaluation import answers, request_of
from tests.security.kinds import KINDS, RAY_EVASIONS, ray

POLICY = [ray_policy(PodLimits())]


@pytest.mark.parametrize("name", RAY_EVASIONS)
@pytest.mark.parametrize("kind", ["RayCluster", "RayJob"])
def test_no_ray_cluster_is_larger_lives_longer_or_is_seen_further_than_its_queue_knows(kind, name):
    change, field, kinds = RAY_EVASIONS[name]
    document = ray(kind, "x", change)
    expected = [field] if kind in kinds else []
    for operation in ("CREATE", "UPDATE"):
        assert answers(POLICY, request_of(document, operation=operation), document, document) == expected
    assert answers(POLICY, request_of(document, member=False), document) == []


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob"])
def test_a_ray_cluster_of_fixed_size_is_let_in(kind):
    document = KINDS[kind]("x")
    assert answers(POLICY, request_of(document), document) == []
    small = deepcopy(document)
    for group in (small["spec"].get("rayClusterSpec") or small["spec"])["workerGroupSpecs"]:
        del group["replicas"], group["minReplicas"]
    assert answers(POLICY, request_of(small), small) == []


def test_a_head_is_published_where_the_file_says_so():
    balanced = ray("RayCluster", "x", RAY_EVASIONS["a load balancer"][0])
    routed = ray("RayCluster", "x", RAY_EVASIONS["an ingress"][0])
    given = [ray_policy(PodLimits(publish=("LoadBalancer",)))]
    assert answers(given, request_of(balanced), balanced) == []
    assert answers(given, request_of(routed), routed) == ["spec.headGroupSpec.serviceType"]
    given = [ray_policy(PodLimits(publish=("Ingress",)))]
    assert answers(given, request_of(routed), routed) == []
    assert answers(given, request_of(balanced), balanced) == ["spec.headGroupSpec.serviceType"]


def test_a_ray_job_selects_a_cluster_from_its_creation_on_and_without_a_pod_of_its_own():
    selecting = KINDS["RayJob"]("x")
    selecting["spec"] |= {"clusterSelector": {"ray.io/cluster": "small"}, "submissionMode": "HTTPMode"}
    update = request_of(selecting, operation="UPDATE")
    assert answers(POLICY, request_of(selecting), selecting) == []
    assert answers(POLICY, update, selecting, selecting) == []
    counted = KINDS["RayJob"]("x")
    assert answers(POLICY, update, selecting, counted) == ["spec.clusterSelector"]
    assert answers(POLICY, update, counted, selecting) == ["spec.clusterSelector"]
