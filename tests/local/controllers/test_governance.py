"""Quotas and policy that are created through the AWS API alone take effect in the real Kueue."""

import pytest

from hpkit_local.kubernetes.kueue_run import CONFIG_KEY, CONFIG_MAP, digest, running
from tests.local.controllers.conftest import GOVERNANCE
from tests.running import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
ROW = {"InstanceType": "ml.c5.2xlarge"}
BORROW_ALL = {"Strategy": "LendAndBorrow", "BorrowLimit": 100}


def config(count, sharing=BORROW_ALL, **more):
    return {"ComputeQuotaResources": [{**ROW, "Count": count}], "ResourceSharingConfig": sharing, **more}


def queue(api, team):
    return api.read(f"{KUEUE}/clusterqueues/hyperpod-ns-{team}-clusterqueue")


def resources(api, team, flavor="ml.c5.2xlarge"):
    (group,) = queue(api, team)["spec"]["resourceGroups"]
    (found,) = [each for each in group["flavors"] if each["name"] == flavor]
    return {each["name"]: each for each in found["resources"]}


def submit(api, team, name, instances, priority="training-priority"):
    """Submit a task that needs a number of ml.c5.2xlarge."""
    requests = {"cpu": str(8 * instances), "memory": f"{16 * instances}Gi"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    labels = {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue", "kueue.x-k8s.io/priority-class": priority}
    document = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "suspend": True,
            "template": {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
    api.create(f"/apis/batch/v1/namespaces/hyperpod-ns-{team}/jobs", document)


def condition(api, team, job, condition_type):
    for workload in api.items(f"{KUEUE}/namespaces/hyperpod-ns-{team}/workloads"):
        if workload["metadata"]["ownerReferences"][0]["name"] == job:
            found = {each["type"]: each for each in workload.get("status", {}).get("conditions", [])}
            return found.get(condition_type, {})
    return {}


def admitted(api, team, job):
    return condition(api, team, job, "Admitted").get("status") == "True"


@pytest.fixture
def governed(environment, cluster):
    """Return a cluster with task governance and a policy, which stays; quotas are deleted after the test."""
    if GOVERNANCE not in environment.eks.list_addons(clusterName="kube")["addons"]:
        assert environment.govern()["status"] == "ACTIVE"
    policies = environment.policies()
    if policies:
        policy = policies[0]["ClusterSchedulerConfigId"]
    else:
        classes = [{"Name": "training", "Weight": 80}, {"Name": "experiment", "Weight": 40}]
        policy = environment.policy(cluster, SchedulerConfig={"PriorityClasses": classes, "FairShare": "Enabled"})
        assert environment.policy_settled(policy)["Status"] == "Created"
    yield cluster, policy
    # Concurrently, because each deletes its namespace.
    for each in environment.quotas():
        environment.sm.delete_compute_quota(ComputeQuotaId=each["ComputeQuotaId"])
    eventually(lambda: not environment.quotas(), "quotas are gone")


def set_policy(environment, policy, **config):
    version = environment.policy_settled(policy)["ClusterSchedulerConfigVersion"]
    environment.sm.update_cluster_scheduler_config(
        ClusterSchedulerConfigId=policy, TargetVersion=version, SchedulerConfig=config
    )
    assert environment.policy_settled(policy)["Status"] == "Updated"


def make(environment, cluster, team, count, *, weight=1, **more):
    target = {"TeamName": team, "FairShareWeight": weight}
    quota = environment.quota(cluster, team, ComputeQuotaConfig=config(count, **more), ComputeQuotaTarget=target)
    found = environment.quota_settled(quota)
    assert found["Status"] == "Created", found.get("FailureReason")
    return quota


def test_each_way_of_sharing_is_a_limit_of_the_queue(environment, governed, api):
    cluster, _ = governed
    quota = make(environment, cluster, "nlp", 4, sharing={"Strategy": "LendAndBorrow", "BorrowLimit": 50})
    shown = resources(api, "nlp")
    assert shown["cpu"] == {"name": "cpu", "nominalQuota": "32", "borrowingLimit": "16"}
    assert shown["memory"]["nominalQuota"] == str(4 * 16 * 2**30)
    expected = {
        "Lend": {"name": "cpu", "nominalQuota": "32", "borrowingLimit": "0"},
        "DontLend": {"name": "cpu", "nominalQuota": "32", "borrowingLimit": "0", "lendingLimit": "0"},
        "LendAndBorrow": {"name": "cpu", "nominalQuota": "32", "borrowingLimit": "8"},
    }
    absolute = {"AbsoluteBorrowLimits": [{**ROW, "Count": 1}]}
    for version, (strategy, row) in enumerate(expected.items(), start=1):
        sharing = {"Strategy": strategy, **(absolute if strategy == "LendAndBorrow" else {})}
        environment.sm.update_compute_quota(
            ComputeQuotaId=quota, TargetVersion=version, ComputeQuotaConfig=config(4, sharing, PreemptTeamTasks="Never")
        )
        assert environment.quota_settled(quota)["Status"] == "Updated"
        assert resources(api, "nlp")["cpu"] == row
    spec = queue(api, "nlp")["spec"]
    assert (spec["preemption"]["withinClusterQueue"], spec["fairSharing"]) == ("Never", {"weight": "1"})
    labels = api.read("/api/v1/namespaces/hyperpod-ns-nlp")["metadata"]["labels"]
    assert labels["sagemaker.amazonaws.com/sagemaker-managed-queue"] == "true"


def test_idle_resources_are_lent_by_a_queue_of_their_own(environment, governed, api):
    cluster, policy = governed
    make(environment, cluster, "a", 6)
    training = [{"Name": "training", "Weight": 90}]
    set_policy(environment, policy, PriorityClasses=training, IdleResourceSharing="Enabled")
    classes = {each["metadata"]["name"]: each["value"] for each in api.items(f"{KUEUE}/workloadpriorityclasses")}
    assert classes == {"training-priority": 90}
    (group,) = api.read(f"{KUEUE}/clusterqueues/hyperpod-ns-idle-resource-sharing-cq-1")["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"][0]["nominalQuota"] == "40", "11 instances of 8 vCPUs, 6 of them reserved"


def test_kueue_runs_with_edited_settings_and_leaves_them_as_they_were_written(governed, api):
    shipped = api.read(CONFIG_MAP)["data"][CONFIG_KEY]
    edited = f"{shipped}\nwaitForPodsReady: {{timeout: 7m}}\n"
    try:
        written = api.merge(CONFIG_MAP, {"data": {CONFIG_KEY: edited}})
        eventually(lambda: running(api) == digest(edited), "Kueue runs with them")
        assert api.read(CONFIG_MAP) == written, "who reads them meanwhile sees no change but the one that was made"
    finally:
        api.merge(CONFIG_MAP, {"data": {CONFIG_KEY: shipped}})
    eventually(lambda: running(api) == digest(shipped), "and with those that the add-on brings")


def test_work_without_a_queue_is_refused_in_a_teams_namespace(environment, governed, api):
    make(environment, governed[0], "a", 1)

    def refused(**metadata):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", **metadata}}
        pod["spec"] = {"containers": [{"name": "main", "image": "none"}]}
        try:
            api.create("/api/v1/namespaces/hyperpod-ns-a/pods?dryRun=All", pod)
        except OSError as error:
            return "'kueue.x-k8s.io/queue-name' is either missing or does not have a value set" in str(error)
        return False

    eventually(refused, "the admission policy is in force")
    assert refused(labels={"kueue.x-k8s.io/queue-name": ""})
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "some", "uid": "1", "controller": True}
    assert refused(ownerReferences=[owner]), "whose pod it is makes no difference"


def test_a_deleted_quota_and_policy_leave_nothing_even_with_work_in_the_queue(environment, governed, api):
    cluster, policy = governed
    quota = make(environment, cluster, "a", 6)
    submit(api, "a", "runs", 4)
    submit(api, "a", "waits", 4)
    eventually(lambda: admitted(api, "a", "runs"), "the first is admitted")
    environment.delete_quota(quota)
    environment.sm.delete_cluster_scheduler_config(ClusterSchedulerConfigId=policy)
    eventually(lambda: not environment.policies(), "the policy is gone")
    assert api.items(f"{KUEUE}/workloads") == []
    assert api.items(f"{KUEUE}/workloadpriorityclasses") == []
    for plural in ("clusterqueues", "localqueues", "resourceflavors"):
        assert api.items(f"{KUEUE}/{plural}") == []
    assert "hyperpod-ns-a" not in {each["metadata"]["name"] for each in api.items("/api/v1/namespaces")}
