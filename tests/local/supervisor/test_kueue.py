"""The real Kueue on the local API server: its webhooks answer, and it borrows and preempts."""

import time

import pytest

from local.kubernetes.api import RefusedError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


def apply(api, group, plural, name, namespace="", **content):
    kinds = {"namespaces": "Namespace", "jobs": "Job", "resourceflavors": "ResourceFlavor"}
    kinds |= {"clusterqueues": "ClusterQueue", "localqueues": "LocalQueue"}
    version = group.removeprefix("/apis/").removeprefix("/api/")
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {}) | content.pop("metadata", {})
    folder = f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"
    return api.apply(
        f"{folder}/{name}", {"apiVersion": version, "kind": kinds[plural], "metadata": metadata, **content}
    )


def quota(amount, **limits):
    resources = [{"name": "cpu", "nominalQuota": amount, **limits}]
    return [{"coveredResources": ["cpu"], "flavors": [{"name": "ml.c5.2xlarge", "resources": resources}]}]


def submit(api, name, team, amount):
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(amount)}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    metadata = {"labels": {"kueue.x-k8s.io/queue-name": "queue"}}
    spec = {"suspend": True, "template": template}
    apply(api, "/apis/batch/v1", "jobs", name, team, metadata=metadata, spec=spec)


def conditions(api, team, job):
    for workload in api.read(f"{KUEUE}/namespaces/{team}/workloads")["items"]:
        if workload["metadata"]["ownerReferences"][0]["name"] == job:
            return {each["type"]: each for each in workload.get("status", {}).get("conditions", [])}
    return {}


def await_condition(api, team, job, kind, reason=None):
    deadline = time.monotonic() + 30
    while True:
        found = conditions(api, team, job).get(kind, {})
        if found.get("status") == "True" and reason in {None, found["reason"]}:
            return
        assert time.monotonic() < deadline, f"{job} is not {kind} {reason}: {conditions(api, team, job)}"
        time.sleep(0.1)


def await_borrowed(api, name, amount):
    deadline = time.monotonic() + 30
    # A queue's status follows its workloads' conditions a moment later.
    while borrowed(api, name) != amount:
        assert time.monotonic() < deadline, f"{name} borrows {borrowed(api, name)}, not {amount}"
        time.sleep(0.1)


def borrowed(api, name):
    (flavor,) = api.read(f"{KUEUE}/clusterqueues/{name}")["status"]["flavorsReservation"]
    return flavor["resources"][0].get("borrowed", "0")


def test_kueues_own_webhook_refuses_a_borrow_limit_without_a_cohort(api):
    spec = {"namespaceSelector": {}, "resourceGroups": quota(1, borrowingLimit=1)}
    with pytest.raises(RefusedError, match="must be nil when cohort"):
        apply(api, KUEUE, "clusterqueues", "invalid", spec=spec)


def test_b_borrows_three_of_a_and_gives_them_back_when_a_asks(api):
    apply(api, KUEUE, "resourceflavors", "ml.c5.2xlarge", spec={})
    for team, nominal in (("a", 6), ("b", 5)):
        apply(api, "/api/v1", "namespaces", team)
        preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        spec = {"cohortName": "all", "namespaceSelector": {}, "preemption": preemption}
        apply(api, KUEUE, "clusterqueues", team, spec=spec | {"resourceGroups": quota(nominal)})
        apply(api, KUEUE, "localqueues", "queue", team, spec={"clusterQueue": team})
    for name, team, amount in (("a-2", "a", 2), ("b-4", "b", 4), ("b-more", "b", 4)):
        submit(api, name, team, amount)
        await_condition(api, team, name, "Admitted")
    await_borrowed(api, "b", "3")  # 8 in use, 5 of them b's own

    submit(api, "a-more", "a", 4)
    await_condition(api, "a", "a-more", "Admitted")
    await_borrowed(api, "b", "0")
    # Kueue takes the one that was admitted last; admitted within one second, the two of b are alike to it.
    evicted = [conditions(api, "b", name).get("Evicted", {}).get("reason") for name in ("b-4", "b-more")]
    assert sorted(evicted, key=str) == [None, "Preempted"], "b keeps what is its own, and gives back what it borrowed"


def test_a_node_class_of_more_than_ten_groups_is_refused(api):
    group = "/apis/karpenter.sagemaker.amazonaws.com/v1"
    document = {"apiVersion": group.removeprefix("/apis/"), "kind": "HyperpodNodeClass", "metadata": {"name": "n"}}
    for count in (10, 11):
        document["spec"] = {"instanceGroups": [f"group-{number}" for number in range(count)]}
        if count == 10:
            api.apply(f"{group}/hyperpodnodeclasses/n", document)
            continue
        with pytest.raises(RefusedError, match="at most 10 items"):
            api.apply(f"{group}/hyperpodnodeclasses/n", document)
