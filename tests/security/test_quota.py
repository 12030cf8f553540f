"""A member tries to get more compute than Kueue counts: with wrong statements in a job, and with pods that stay."""

import pytest

from hpkit.plan.capacity import quantity
from hpkit.plan.pods import pod_requests
from tests.running import eventually
from tests.security.kinds import workload
from tests.security.members import ATTACK, CORE, JOBS, NAMESPACE, container, delete, job, pod, refused

pytestmark = pytest.mark.platform

WORKLOADS = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads"
QUEUE = f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{NAMESPACE}-clusterqueue"


def counted(api):
    """Return what Kueue counts for the team, by resource in base units."""
    total = {}
    for flavor in api.read(QUEUE)["status"].get("flavorsUsage", []):
        for resource in flavor["resources"]:
            total[resource["name"]] = total.get(resource["name"], 0) + quantity(resource["total"])
    return {name: amount for name, amount in total.items() if amount}


def used(api):
    """Return the requests of running pods in the team's namespace, by resource in base units."""
    total = {}
    for found in api.items(f"{CORE}/pods"):
        if found["spec"].get("nodeName") and found["status"].get("phase") in ("Pending", "Running"):
            for name, amount in pod_requests(found["spec"], lambda _, text: quantity(str(text))).items():
                total[name] = total.get(name, 0) + amount
    return {name: amount for name, amount in total.items() if amount}


def is_accounted(api, **expected):
    """Wait until pods with these requests run, and Kueue counts exactly the running pods."""
    wanted = {name.replace("gpu", "nvidia.com/gpu"): quantity(amount) for name, amount in expected.items()}

    def holds():
        running = used(api)
        return running == counted(api) and all(running.get(name, 0) == amount for name, amount in wanted.items())

    eventually(holds, lambda: f"{wanted} wanted, {used(api)} run, {counted(api)} counted")


def test_a_member_cannot_run_without_requests(john, api):
    nothing = [container(resources={})]
    for number in range(5):
        john.create(f"{CORE}/pods", pod(f"free-{number}", containers=nothing))
    john.create(JOBS, job("free", pods=2, containers=nothing, initContainers=[container(name="first", resources={})]))
    is_accounted(api, cpu="700m", memory="1792Mi")
    assert all(found["spec"]["nodeSelector"] for found in api.items(f"{CORE}/pods")), "each has an instance type"
    zero = [container(resources={"requests": {"cpu": "0", "memory": "0"}})]
    assert "minimum" in refused(john.create, f"{CORE}/pods", pod("zero", containers=zero))
    assert "limitranges" in refused(john.delete, f"{CORE}/limitranges/hpkit-requests")


def test_a_member_cannot_get_more_compute_by_limits_without_requests(john, api):
    limits = {"cpu": "2", "memory": "4Gi"}
    greedy = [container(resources={"limits": limits})]
    assert "must request it too" in refused(john.create, JOBS, job("greedy", containers=greedy))
    # The API server uses a pod's limits as its requests, and Kueue counts the requests.
    john.create(f"{CORE}/pods", pod("limited", containers=greedy))
    john.create(JOBS, job("requesting", containers=[container(resources={"limits": limits, "requests": limits})]))
    is_accounted(api, cpu="4", memory="8Gi")


def test_a_member_cannot_keep_instances_by_a_slow_deletion(john, api):
    john.create(f"{CORE}/pods", pod("slow"))
    is_accounted(api, gpu="1")
    label = ",".join(f"{key}={value}" for key, value in ATTACK.items())
    for path, seconds in (("pods/slow", 315_360_000), (f"pods?labelSelector={label}", 121)):
        assert "seconds to stop" in refused(delete, john, f"{CORE}/{path}", {"gracePeriodSeconds": seconds})
    assert not api.read(f"{CORE}/pods/slow")["metadata"].get("deletionTimestamp")
    delete(john, f"{CORE}/pods/slow", {"gracePeriodSeconds": 5})


def test_a_member_cannot_go_first_in_kueue_by_a_class_of_the_system(api):
    # Kueue creates Workloads for any kind; an administrator's permission to write one shows that the rule applies to
    # all.
    reference = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "system-node-critical"}
    document = workload(pod("first")["spec"])
    document["metadata"] |= {"labels": ATTACK}
    document["spec"]["podSets"][0]["count"] = 100
    ranked = {**document, "spec": {**document["spec"], "priorityClassRef": reference, "priority": 2_000_001_000}}
    assert "system PriorityClass" in refused(api.create, WORKLOADS, ranked)
    api.create(WORKLOADS, document)
    try:
        change = {"spec": {"priorityClassRef": reference, "priority": 2_000_001_000}}
        assert "system PriorityClass" in refused(api.merge, f"{WORKLOADS}/w", change)
    finally:
        api.delete(f"{WORKLOADS}/w")


def test_a_member_cannot_resize_a_running_pod(john, api):
    john.create(f"{CORE}/pods", pod("grows"))
    larger = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "40"}}}]}}
    assert 'cannot patch resource "pods/resize"' in refused(john.merge, f"{CORE}/pods/grows/resize", larger)
