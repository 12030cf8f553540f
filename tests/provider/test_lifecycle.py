"""Create, read, update, delete and import of each resource, with the endpoint."""

import threading
from contextlib import contextmanager

import pytest

from hpkit_provider.resources.versioned_handler import VersionedHandler
from tests.local.aws.conftest import new_cloud
from tests.provider.harness import TYPE, FailedError, PartlyFailedError, World, in_process, quota
from tests.running import eventually

POLICY = {
    "priorityClasses": [{"name": "training", "weight": 80}, {"name": "experiment", "weight": 40}],
    "fairShare": "Enabled",
}


def sent(world, operation):
    return world.endpoint.stats()["calls"].get(operation, 0)


def quotas(world):
    return world.sm.list_compute_quotas()["ComputeQuotaSummaries"]


def test_a_cluster_lives_from_create_to_delete(world, engine):
    made = engine.up("Cluster", "c", world.cluster())
    assert made["outputs"]["clusterStatus"] == "InService"
    assert engine.refresh("Cluster", "c")["inputs"] == world.cluster()
    engine.delete("Cluster", "c")
    assert world.sm.list_clusters()["ClusterSummaries"] == []


def test_quota_and_policy_live_from_create_to_delete(world, engine):
    arn = world.governed(engine)
    policy = {"name": "policy", "clusterArn": arn, "schedulerConfig": POLICY}
    team = quota(arn, "nlp", 2, description="language models")
    for token, name, inputs in (("ClusterSchedulerConfig", "p", policy), ("ComputeQuota", "q", team)):
        made = engine.up(token, name, inputs)
        assert made["outputs"]["status"] == "Created"
        assert engine.refresh(token, name)["inputs"] == inputs
    engine.up("ComputeQuota", "q", quota(arn, "nlp", 3))
    assert engine.state["q"]["outputs"]["computeQuotaVersion"] == 2
    described = world.sm.describe_compute_quota(ComputeQuotaId=engine.state["q"]["id"].rpartition("/")[2])
    assert described.get("Description", "") == ""
    engine.up("ClusterSchedulerConfig", "p", {**policy, "schedulerConfig": {"fairShare": "Disabled"}})
    live = world.sm.describe_cluster_scheduler_config(
        ClusterSchedulerConfigId=engine.state["p"]["id"].rpartition("/")[2]
    )
    assert live["SchedulerConfig"]["FairShare"] == "Disabled"
    assert not live["SchedulerConfig"].get("PriorityClasses")
    for token, name in (("ComputeQuota", "q"), ("ClusterSchedulerConfig", "p"), ("Cluster", "c")):
        engine.delete(token, name)


@pytest.mark.parametrize("token", ["Cluster", "ComputeQuota", "ClusterSchedulerConfig"])
def test_what_is_imported_needs_no_change(world, engine, token):
    arn = world.governed(engine)
    inputs = {
        "Cluster": None,
        "ComputeQuota": quota(arn, "nlp", 2),
        "ClusterSchedulerConfig": {"name": "policy", "clusterArn": arn, "schedulerConfig": POLICY},
    }[token]
    resource_id = engine.up(token, "r", inputs)["id"] if inputs else arn
    resource, imported, outputs = engine.read(token, "i", resource_id)
    assert resource == resource_id
    assert engine.check(token, imported) == {}
    engine.state["i"] = {"id": resource, "inputs": imported, "outputs": outputs}
    assert list(engine.diff(token, "i", imported).detailedDiff) == []
    assert engine.refresh(token, "i")["inputs"] == imported


def test_karpenter_is_enabled_after_creation_and_waited_for(world, engine):
    more = {"clusterRole": world.roles["karpenter"], "autoScaling": {"mode": "Enable", "autoScalerType": "Karpenter"}}
    groups = [world.group("system", 1), world.group("burst", 0)]
    engine.up("Cluster", "c", world.cluster(*groups, autoscaledInstanceGroups=["burst"], **more))
    assert world.sm.describe_cluster(ClusterName="train")["AutoScaling"]["Status"] == "InService"


@pytest.mark.parametrize("refreshed", [False, True])
def test_autoscaling_that_failed_is_enabled_again_by_the_next_run(world, engine, refreshed):
    more = {"clusterRole": world.roles["karpenter"], "autoScaling": {"mode": "Enable", "autoScalerType": "Karpenter"}}
    inputs = world.cluster(**more)
    world.endpoint.set_faults({"failed-create": "1@autoscaling"})
    with pytest.raises(PartlyFailedError, match="failed-create"):
        engine.up("Cluster", "c", inputs)
    first = engine.state["c"]["id"]
    assert world.sm.describe_cluster(ClusterName="train")["AutoScaling"]["Status"] == "Failed"
    with pytest.raises(PartlyFailedError, match="failed-create"):
        engine.up("Cluster", "c", inputs)
    world.endpoint.set_faults({"failed-create": None})
    if refreshed:
        # A refresh clears the error; the live resource must show that something is missing.
        engine.refresh("Cluster", "c")
        engine.state["c"].pop("errors")
        assert engine.state["c"]["inputs"]["autoScaling"]["mode"] == "Disable"
    assert engine.up("Cluster", "c", inputs)["id"] == first
    live = world.sm.describe_cluster(ClusterName="train")
    assert (live["ClusterStatus"], live["AutoScaling"]["Status"]) == ("InService", "InService")
    assert engine.refresh("Cluster", "c")["inputs"] == inputs


def test_counts_that_karpenter_moved_stay_where_they_are(world, engine):
    more = {"clusterRole": world.roles["karpenter"], "autoScaling": {"mode": "Enable"}}
    groups = [world.group("system", 1), world.group("burst", 0)]
    inputs = world.cluster(*groups, autoscaledInstanceGroups=["burst"], **more)
    engine.up("Cluster", "c", inputs)
    world.sm.batch_add_cluster_nodes(
        ClusterName="train", NodesToAdd=[{"InstanceGroupName": "burst", "IncrementTargetCountBy": 2}]
    )
    assert engine.refresh("Cluster", "c")["inputs"] == inputs
    assert list(engine.diff("Cluster", "c", inputs).detailedDiff) == []
    labelled = world.group("burst", 0, kubernetesConfig={"labels": {"pool": "burst"}})
    engine.up("Cluster", "c", {**inputs, "instanceGroups": [groups[0], labelled]})
    live = {g["InstanceGroupName"]: g for g in world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]}
    assert live["burst"]["TargetCount"] == 2
    assert live["burst"]["KubernetesConfig"]["DesiredLabels"] == {"pool": "burst"}


def test_a_count_that_is_live_already_is_no_difference(world, engine):
    def nodes():
        return world.sm.list_cluster_nodes(ClusterName="train")["ClusterNodeSummaries"]

    engine.up("Cluster", "c", world.cluster(world.group("gpu", 3)))
    world.sm.batch_delete_cluster_nodes(ClusterName="train", NodeIds=[nodes()[0]["InstanceId"]])
    eventually(lambda: len(nodes()) == 2, "two nodes are left")
    left = world.cluster(world.group("gpu", 2))
    edits = (left, world.cluster(world.group("gpu", 4)), world.cluster(world.group("gpu", 2), nodeRecovery="None"))
    assert [bool(engine.diff("Cluster", "c", each).detailedDiff) for each in edits] == [False, True, True]
    engine.state["c"]["outputs"]["creationFailed"] = True
    assert engine.diff("Cluster", "c", left).replaces, "a cluster that failed is made anew whatever its counts are"


def test_only_groups_of_the_program_are_removed_and_others_are_reported(world, engine):
    engine.up("Cluster", "c", world.cluster(world.group("a", 1), world.group("b", 1)))
    stray = {
        "InstanceGroupName": "stray",
        "InstanceType": TYPE,
        "InstanceCount": 1,
        "ExecutionRole": world.roles["node"],
        "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-scripts", "OnCreate": "on_create.sh"},
    }
    world.sm.update_cluster(ClusterName="train", InstanceGroups=[stray])
    with engine.warnings() as warnings:
        engine.up("Cluster", "c", world.cluster(world.group("a", 1), allowDeleteInstanceGroups=["b"]))
        assert warnings == [
            f"This change DELETES the instance group, as allowed: b (1 × {TYPE}).",
            "Instance groups stray aren't in the program, and aren't changed.",
        ]
        engine.refresh("Cluster", "c")
        assert len(warnings) == 3, "a refresh says so too"
    names = [g["InstanceGroupName"] for g in world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]]
    assert sorted(names) == ["a", "stray"]
    assert engine.refresh("Cluster", "c")["inputs"]["instanceGroups"] == [world.group("a", 1)]


def test_a_failed_creation_is_kept_and_replaced_by_the_next_run(world, engine):
    arn = world.governed(engine)
    world.endpoint.set_faults({"failed-create": "1@quota"})
    with pytest.raises(PartlyFailedError, match="CreateFailed"):
        engine.up("ComputeQuota", "q", quota(arn, "nlp", 2))
    first = engine.state["q"]["id"]
    world.endpoint.set_faults({"failed-create": None})
    assert engine.up("ComputeQuota", "q", quota(arn, "nlp", 2))["id"] != first
    assert world.live_quotas(arn) == {"q-nlp": 2}


def test_a_failed_update_is_kept_and_retried_by_the_next_run(world, engine):
    arn = world.governed(engine)
    engine.up("ComputeQuota", "q", quota(arn, "nlp", 2))
    world.endpoint.set_faults({"failed-update": "1@quota"})
    with pytest.raises(PartlyFailedError, match="UpdateFailed"):
        engine.up("ComputeQuota", "q", quota(arn, "nlp", 3))
    world.endpoint.set_faults({"failed-update": None})
    engine.up("ComputeQuota", "q", quota(arn, "nlp", 3))
    assert engine.state["q"]["outputs"]["status"] == "Updated"


def test_a_failed_cluster_names_reason_and_events_and_is_replaced(world, engine):
    nowhere = {"sourceS3Uri": "s3://sagemaker-scripts", "onCreate": "nope.sh"}
    inputs = world.cluster(world.group(lifeCycleConfig=nowhere))
    with pytest.raises(PartlyFailedError, match=r"nope\.sh not found(.|\n)*Last events"):
        engine.up("Cluster", "c", inputs)
    engine.up("Cluster", "c", world.cluster())
    assert engine.state["c"]["outputs"]["clusterStatus"] == "InService"


def test_a_fresh_role_is_waited_for(world, engine):
    world.endpoint.set_faults({"role-race": 2})
    engine.up("Cluster", "c", world.cluster())
    assert engine.state["c"]["outputs"]["clusterStatus"] == "InService"


@contextmanager
def cancelled_when(engine, begun):
    """Cancel the run as soon as the service has started the requested operation."""

    def cancel():
        eventually(begun, "it has begun")
        engine.servicer.Cancel(None, None)

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_a_cancelled_creation_keeps_the_true_state(world):
    world.endpoint.set_faults({"slow-create": 3600})
    with in_process(**world.settings) as engine:
        with (
            cancelled_when(engine, lambda: world.sm.list_clusters()["ClusterSummaries"]),
            pytest.raises(PartlyFailedError, match="canceled"),
        ):
            engine.up("Cluster", "c", world.cluster())
        assert engine.state["c"]["outputs"]["clusterStatus"] == "Creating"
        assert engine.state["c"]["id"].startswith("arn:aws:sagemaker")


def test_a_cancelled_update_keeps_the_true_state_and_the_next_run_goes_on_from_it(served):
    world = World(new_cloud(served, start=1_800_000_000.0))
    with in_process(**world.settings) as engine:
        arn = world.governed(engine)
        engine.up("ComputeQuota", "q", quota(arn, "nlp", 2))
        world.endpoint.set_faults({"slow-update": "3600@quota"})
        with (
            cancelled_when(engine, lambda: {each["Status"] for each in quotas(world)} == {"Updating"}),
            pytest.raises(PartlyFailedError, match="canceled"),
        ):
            engine.up("ComputeQuota", "q", quota(arn, "nlp", 3))
        outputs = engine.state["q"]["outputs"]
        assert (outputs["status"], outputs["computeQuotaVersion"]) == ("Updating", 2)
        state = engine.state
    world.endpoint.set_faults({"slow-update": None})
    world.cloud.advance(3600)
    with in_process(**world.settings) as engine:
        engine.state = state
        assert engine.up("ComputeQuota", "q", quota(arn, "nlp", 3))["outputs"]["status"] == "Updated"
        assert world.live_quotas(arn) == {"q-nlp": 3}


def test_software_is_never_updated_as_a_side_effect(world, engine):
    inputs = world.cluster(world.group(imageId="ami-0123456789abcdef0"))
    engine.up("Cluster", "c", inputs)
    patched = {
        "InstanceGroupName": "gpu",
        "InstanceCount": 4,
        "InstanceType": TYPE,
        "ExecutionRole": world.roles["node"],
        "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-scripts", "OnCreate": "on_create.sh"},
        "ImageId": "ami-0fedcba9876543210",
    }
    world.sm.update_cluster(ClusterName="train", InstanceGroups=[patched])
    assert list(engine.diff("Cluster", "c", inputs).detailedDiff) == []
    assert engine.refresh("Cluster", "c")["inputs"] == inputs, "an image that was patched elsewhere is no drift"
    labelled = world.group(imageId="ami-0123456789abcdef0", kubernetesConfig={"labels": {"team": "nlp"}})
    engine.up("Cluster", "c", world.cluster(labelled))
    (live,) = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
    assert live["KubernetesConfig"]["DesiredLabels"] == {"team": "nlp"}
    assert live["CurrentImageId"] == live["DesiredImageId"] == "ami-0fedcba9876543210"
    assert sent(world, "sagemaker.UpdateCluster") == 2, "the patch and the label"
    assert sent(world, "sagemaker.UpdateClusterSoftware") == 0


def test_the_date_of_a_patch_is_sent_once(world, engine):
    def dated(day, *, year=2099, **group):
        schedule = {} if day is None else {"patchSchedule": {"nextPatchDate": f"{year}-01-{day}T02:00:00Z"}}
        return world.cluster(world.group(autoPatchConfig={"patchingStrategy": "WhenIdle", **schedule}, **group))

    def sent_dates():
        (live,) = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
        return live["AutoPatchConfig"].get("DesiredPatchSchedule", {}).get("NextPatchDate")

    engine.up("Cluster", "c", dated(None))
    assert sent_dates() is None
    with pytest.raises(FailedError, match="NextPatchDate is in the past"):
        engine.up("Cluster", "c", dated(30, year=2020))
    engine.up("Cluster", "c", dated(30))
    assert sent_dates().isoformat().startswith("2099-01-30T02:00:00")
    assert list(engine.diff("Cluster", "c", dated(30)).detailedDiff) == []
    assert engine.refresh("Cluster", "c")["inputs"] == dated(30)
    before = sent(world, "sagemaker.UpdateCluster")
    engine.up("Cluster", "c", dated(30, kubernetesConfig={"labels": {"team": "nlp"}}))
    assert sent(world, "sagemaker.UpdateCluster") == before + 1
    assert sent_dates() is None, "the request with the label has no date; the endpoint takes groups as they are"


def test_an_image_that_the_service_sets_back_is_a_failed_update_and_stays_a_difference(world, engine):
    before, after = (world.cluster(world.group(imageReleaseVersion=each)) for each in ("1.0.0", "1.2.3"))
    engine.up("Cluster", "c", before)
    state = dict(engine.state["c"])
    world.endpoint.set_faults({"failed-software": 1})
    with pytest.raises(FailedError, match=r"(?s)then undid it: image of gpu\n.*Software update of gpu was rolled back"):
        engine.up("Cluster", "c", after)
    assert engine.state["c"] == state, "the engine keeps the state of before"
    world.endpoint.set_faults({"failed-software": None})
    engine.refresh("Cluster", "c")
    assert list(engine.diff("Cluster", "c", after).detailedDiff) == ["instanceGroups[0].imageReleaseVersion"]
    engine.up("Cluster", "c", after)
    (live,) = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
    assert (live["DesiredImageReleaseVersion"], live["SoftwareUpdateStatus"]) == ("1.2.3", "Succeeded")


def test_a_group_that_goes_back_to_its_old_size_is_a_failed_update(world, engine, monkeypatch):
    engine.up("Cluster", "c", world.cluster(world.group(count=4)))
    # As with minInstanceCount: three hours without the instances, then back to the previous count.
    monkeypatch.setattr("hpkit_local.aws.services.sagemaker.update._apply_group", lambda *_, **__: None)
    with pytest.raises(FailedError, match=r"accepted the update .* then undid it: instance group gpu"):
        engine.up("Cluster", "c", world.cluster(world.group(count=6)))
    assert engine.state["c"]["inputs"]["instanceGroups"][0]["instanceCount"] == 4
    assert sent(world, "sagemaker.UpdateCluster") == 1


def test_a_refusal_reads_as_code_message_and_remedy(world, engine):
    with pytest.raises(FailedError) as caught:
        engine.up("ComputeQuota", "q", quota("arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghij12", "a", 1))
    assert "CreateComputeQuota was rejected (ValidationException):" in str(caught.value)
    assert "To fix" in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert "testing" not in str(caught.value)


def test_a_quota_that_never_becomes_what_was_sent_ends_the_run(world, engine, monkeypatch):
    arn = world.governed(engine)
    engine.up("ComputeQuota", "a", quota(arn, "a", 1))
    monkeypatch.setattr(VersionedHandler, "_is_current", lambda *_: False)
    with pytest.raises(PartlyFailedError, match="still differs from the program after 40 updates"):
        engine.up("ComputeQuota", "a", quota(arn, "a", 2))


def test_what_is_no_longer_stated_goes_back_to_the_default(world, engine):
    arn = world.governed(engine)
    generous, plain = quota(arn, "nlp", 2), quota(arn, "nlp", 2)
    generous["computeQuotaConfig"]["resourceSharingConfig"] = {"strategy": "LendAndBorrow", "borrowLimit": 80}
    plain["computeQuotaConfig"].pop("resourceSharingConfig")
    made = engine.up("ComputeQuota", "q", generous)
    engine.up("ComputeQuota", "q", plain)
    live = world.sm.describe_compute_quota(ComputeQuotaId=made["id"].rpartition("/")[2])
    assert live["ComputeQuotaConfig"]["ResourceSharingConfig"] == {"Strategy": "LendAndBorrow", "BorrowLimit": 50}


def test_tags_follow_the_program_and_strangers_stay(world, engine):
    inputs = world.cluster(tags=[{"key": "a", "value": "1"}, {"key": "b", "value": "2"}])
    arn = engine.up("Cluster", "c", inputs)["id"]
    world.sm.add_tags(ResourceArn=arn, Tags=[{"Key": "stranger", "Value": "x"}])
    engine.up("Cluster", "c", {**inputs, "tags": [{"key": "a", "value": "3"}]})
    tags = {tag["Key"]: tag["Value"] for tag in world.sm.list_tags(ResourceArn=arn)["Tags"]}
    assert tags == {"a": "3", "stranger": "x"}


def test_a_failed_cluster_update_is_kept_and_retried_by_the_next_run(world, engine):
    engine.up("Cluster", "c", world.cluster())
    labelled = world.cluster(world.group(kubernetesConfig={"labels": {"team": "nlp"}}))
    world.endpoint.set_faults({"failed-update": "1@cluster"})
    with pytest.raises(PartlyFailedError, match="Failed"):
        engine.up("Cluster", "c", labelled)
    world.endpoint.set_faults({"failed-update": None})
    first = engine.state["c"]["id"]
    assert engine.up("Cluster", "c", labelled)["id"] == first
    (group,) = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
    assert group["KubernetesConfig"]["DesiredLabels"] == {"team": "nlp"}


def test_a_cluster_that_a_killed_run_made_is_taken_over_not_made_twice(world, engine):
    inputs = world.cluster(tags=[{"key": "hpkit:environment", "value": "dev"}])
    made = engine.up("Cluster", "c", inputs)
    engine.state.clear()  # The run ended before the engine received it.
    assert engine.up("Cluster", "c", inputs)["id"] == made["id"]
    assert len(world.sm.list_clusters()["ClusterSummaries"]) == 1


def test_a_cluster_of_another_network_is_not_taken_over(world, engine):
    engine.up("Cluster", "c", world.cluster())
    engine.state.clear()
    other = {"securityGroupIds": [world.sg], "subnets": world.subnets[:1]}
    with pytest.raises(FailedError, match="another vpcConfig"):
        engine.up("Cluster", "c", {**world.cluster(), "vpcConfig": other})


def test_restricted_groups_are_made_changed_and_removed(world, engine):
    def nova(count):
        group = {key: value for key, value in world.cluster()["instanceGroups"][0].items() if key != "lifeCycleConfig"}
        lustre = {"fSxLustreConfig": {"sizeInGiB": 1200, "perUnitStorageThroughput": 125}}
        return {**group, "instanceGroupName": "nova", "instanceCount": count, "environmentConfig": lustre}

    inputs = {**world.cluster(), "restrictedInstanceGroups": [nova(1)]}
    engine.up("Cluster", "c", inputs)
    assert engine.refresh("Cluster", "c")["inputs"] == inputs
    assert list(engine.diff("Cluster", "c", inputs).detailedDiff) == []
    engine.up("Cluster", "c", {**inputs, "restrictedInstanceGroups": [nova(2)]})
    (live,) = world.sm.describe_cluster(ClusterName=inputs["clusterName"])["RestrictedInstanceGroups"]
    assert live["TargetCount"] == 2
    with pytest.raises(FailedError, match=r"DELETE the instance group with all instances: nova \(2 × "):
        engine.up("Cluster", "c", world.cluster())
    role = {**nova(2), "executionRole": "arn:aws:iam::123456789012:role/other"}
    with pytest.raises(FailedError, match=r"restrictedInstanceGroups\[nova\].executionRole: .* can't become"):
        engine.up("Cluster", "c", {**inputs, "restrictedInstanceGroups": [role]})
    bare = {key: value for key, value in nova(2).items() if key != "environmentConfig"}
    with pytest.raises(FailedError, match=r"restrictedInstanceGroups\[nova\].environmentConfig: can't be removed"):
        engine.up("Cluster", "c", {**inputs, "restrictedInstanceGroups": [bare]})
    with pytest.raises(FailedError, match=r"instanceGroups\[nova\]: an existing group can't change its kind"):
        engine.up("Cluster", "c", {**world.cluster(), "instanceGroups": [*world.cluster()["instanceGroups"], bare]})
    engine.up("Cluster", "c", world.cluster(allowDeleteInstanceGroups=["nova"]))
    assert "RestrictedInstanceGroups" not in world.sm.describe_cluster(ClusterName=inputs["clusterName"])


def test_what_restricted_groups_share_is_made_read_and_changed(world, engine):
    group = {key: value for key, value in world.cluster()["instanceGroups"][0].items() if key != "lifeCycleConfig"}

    def sharing(size):
        lustre = {"sizeInGiB": size, "perUnitStorageThroughput": 125}
        shared = {"sharedEnvironmentConfig": {"fSxLustreDeletionPolicy": "Keep", "fSxLustreConfig": lustre}}
        nova = {**group, "instanceGroupName": "nova", "instanceCount": 1}
        return {**world.cluster(), "restrictedInstanceGroups": [nova], "restrictedInstanceGroupsConfig": shared}

    engine.up("Cluster", "c", sharing(1200))
    assert engine.refresh("Cluster", "c")["inputs"] == sharing(1200)
    assert list(engine.diff("Cluster", "c", sharing(1200)).detailedDiff) == []
    engine.up("Cluster", "c", sharing(2400))
    shown = world.sm.describe_cluster(ClusterName="train")["RestrictedInstanceGroupsConfig"]["SharedEnvironmentConfig"]
    assert shown["DesiredFSxLustreConfig"]["SizeInGiB"] == 2400
    assert shown["CurrentFSxLustreDeletionPolicy"] == "Keep"
