"""Check, diff, resets and schema: no client, no network."""

import pytest
from pulumi.runtime.proto import provider_pb2

from hpkit_provider.aws.errors import rejected
from hpkit_provider.engine.errors import RejectedError
from hpkit_provider.engine.values import UNKNOWN, from_struct, to_struct
from hpkit_provider.resources.cluster.cluster_state import live_inputs
from hpkit_provider.resources.cluster.handler import ClusterHandler
from hpkit_provider.resources.cluster.update_request import next_update
from hpkit_provider.resources.governance import ComputeQuotaHandler
from hpkit_provider.schema.check import check
from hpkit_provider.schema.field import with_resets
from hpkit_provider.schema.field_table import table, to_api
from hpkit_provider.server import HyperpodServicer
from tests.provider.harness import in_process

ROLE = "arn:aws:iam::123456789012:role/node"
ARN = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghij12"


def group(name="gpu", count=4, **more):
    return {
        "instanceGroupName": name,
        "instanceType": "ml.g5.12xlarge",
        "instanceCount": count,
        "executionRole": ROLE,
        **more,
    }


def cluster(*groups, **more):
    return {
        "clusterName": "train",
        "instanceGroups": list(groups) or [group()],
        "vpcConfig": {"securityGroupIds": ["sg-1"], "subnets": ["subnet-1", "subnet-2"]},
        "orchestrator": {"eks": {"clusterArn": "arn:aws:eks:us-west-2:123456789012:cluster/kube"}},
        "nodeProvisioningMode": "Continuous",
        **more,
    }


def quota(**more):
    return {
        "name": "q",
        "clusterArn": ARN,
        "computeQuotaConfig": {"computeQuotaResources": [{"instanceType": "ml.g5.12xlarge", "count": 2}]},
        "computeQuotaTarget": {"teamName": "nlp"},
        **more,
    }


def paths(failures):
    return {failure.path for failure in failures}


def diff(kind, old, new, **state):
    return kind(HyperpodServicer().clients).diff(old, new, state)


def test_all_failures_come_at_once_with_their_paths():
    wrong = cluster(
        {"instanceGroupName": "a b", "instanceType": "ml.g5.huge", "instanceCount": 7000, "executionRol": ROLE},
        nodeRecovery="Auto",
    )
    assert paths(check("Cluster", wrong)) == {
        "instanceGroups[0].instanceGroupName",
        "instanceGroups[0].instanceType",
        "instanceGroups[0].instanceCount",
        "instanceGroups[0].executionRol",
        "instanceGroups[0].executionRole",
        "nodeRecovery",
    }


def test_an_unknown_property_is_named_with_the_nearest():
    (failure,) = check("ComputeQuota", quota(descripton="x"))
    assert (failure.path, "'description'" in failure.reason) == ("descripton", True)


def test_a_value_that_is_not_known_yet_passes():
    assert check("ComputeQuota", quota(clusterArn=UNKNOWN)) == []
    assert check("Cluster", cluster(group(executionRole=UNKNOWN, instanceCount=UNKNOWN))) == []


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        (cluster(group(), group()), "instanceGroups"),
        (cluster(group(minInstanceCount=5)), "instanceGroups[0].minInstanceCount"),
        (cluster(autoscaledInstanceGroups=["burst"]), "autoscaledInstanceGroups[0]"),
        (cluster(autoScaling={"mode": "Enable"}), "clusterRole"),
        (cluster(group(capacityRequirements={"spot": {}, "onDemand": {}})), "instanceGroups[0].capacityRequirements"),
        (
            cluster(group(instanceStorageConfigs=[{"ebsVolumeConfig": {"rootVolume": False}}])),
            "instanceGroups[0].instanceStorageConfigs[0].ebsVolumeConfig",
        ),
        (cluster(group(autoPatchConfig={"patchingStrategy": "DrainFirst"})), "instanceGroups[0].autoPatchConfig"),
    ],
)
def test_rules_over_several_fields_name_the_field(inputs, path):
    assert paths(check("Cluster", inputs)) == {path}


def test_one_of_several_shapes_is_given_and_not_two():
    both = {"ebsVolumeConfig": {"volumeSizeInGB": 1}, "fsxOpenZfsConfig": {"dnsName": "fs-0123456789abcdef0.fsx.x"}}
    for wrong in (both, {}):
        (failure,) = check("Cluster", cluster(group(instanceStorageConfigs=[wrong])))
        assert failure.path == "instanceGroups[0].instanceStorageConfigs[0]"
        assert "exactly one of" in failure.reason


def test_karpenters_counts_are_no_difference():
    old = cluster(group("a", 1), group("burst", 3), autoscaledInstanceGroups=["burst"])
    new = cluster(group("a", 1), group("burst", 0), autoscaledInstanceGroups=["burst"])
    assert diff(ClusterHandler, old, new).changes == []


def test_the_order_of_groups_and_subnets_means_nothing():
    old = cluster(group("a"), group("b"))
    new = cluster(group("b"), group("a"))
    new["vpcConfig"] = {**old["vpcConfig"], "subnets": ["subnet-2", "subnet-1"]}
    assert diff(ClusterHandler, old, new).changes == []


def test_a_label_is_an_update_of_its_group_only():
    new = cluster(group("a"), group("b", kubernetesConfig={"labels": {"team": "nlp"}}))
    found = diff(ClusterHandler, cluster(group("a"), group("b")), new)
    assert [(change.path, change.replaces) for change in found.changes] == [
        ("instanceGroups[1].kubernetesConfig", False)
    ]
    document = {
        "ClusterStatus": "InService",
        "InstanceGroups": [
            {
                **{
                    k: v
                    for k, v in to_api(table("Cluster").by_name["instanceGroups"].item, g).items()
                    if k != "InstanceCount"
                },
                "TargetCount": 4,
                "CurrentCount": 4,
            }
            for g in (group("a"), group("b"))
        ],
    }
    spec = table("Cluster")
    live = live_inputs(spec, document)
    update = next_update(
        spec, old=cluster(group("a"), group("b")), new=new, live=live, document=document, managed=["a", "b"]
    )
    assert [sent["InstanceGroupName"] for sent in update.body["InstanceGroups"]] == ["b"]
    assert set(update.body) == {"InstanceGroups"}


def test_other_subnets_of_the_cluster_replace_it():
    new = cluster(allowReplace=True)
    new["vpcConfig"] = {**new["vpcConfig"], "subnets": ["subnet-3"]}
    assert diff(ClusterHandler, cluster(), new).replaces == ["vpcConfig.subnets"]


@pytest.mark.parametrize(
    "more",
    [
        {"instanceType": "ml.p5.48xlarge"},
        {"executionRole": ROLE + "2"},
        {"overrideVpcConfig": {"subnets": ["subnet-1"], "securityGroupIds": ["sg-1"]}},
        {"capacityRequirements": {"spot": {}}},
    ],
)
def test_what_the_api_refuses_on_a_group_is_refused_at_preview(more):
    with pytest.raises(RejectedError, match="give the group a new name"):
        diff(ClusterHandler, cluster(group()), cluster(group(**more)))


def test_the_role_of_a_running_autoscaler_is_refused_at_preview():
    old = cluster(autoScaling={"mode": "Enable"}, clusterRole=ROLE)
    with pytest.raises(RejectedError, match="Disable in one `pulumi up`"):
        diff(ClusterHandler, old, {**old, "clusterRole": ROLE + "2"})


def test_a_quota_of_another_team_is_another_quota():
    found = diff(ComputeQuotaHandler, quota(), quota(computeQuotaTarget={"teamName": "cv"}))
    assert found.replaces == ["computeQuotaTarget.teamName"]


def test_a_quota_that_only_deletion_helps_is_replaced():
    assert diff(ComputeQuotaHandler, quota(), quota(), status="CreateFailed").replaces == ["status"]
    assert diff(ComputeQuotaHandler, quota(), quota(), status="UpdateFailed").replaces == []


def test_spot_is_told_from_on_demand():
    spec = table("Cluster").by_name["instanceGroups"]
    from hpkit_provider.schema.diff import same

    assert not same(spec, [group(capacityRequirements={"spot": {}})], [group(capacityRequirements={"onDemand": {}})])


def test_an_aws_error_says_code_message_and_remedy():
    from botocore.exceptions import ClientError

    error = ClientError({"Error": {"Code": "ResourceLimitExceeded", "Message": "0 of ml.p5"}}, "CreateCluster")
    text = str(rejected("CreateCluster", error))
    assert text.startswith("CreateCluster was rejected (ResourceLimitExceeded): 0 of ml.p5. To fix:")


def test_a_preview_leaves_the_arn_open():
    request = provider_pb2.CreateRequest(
        urn="urn:pulumi:dev::hpkit::hyperpod:index:Cluster::c", properties=to_struct(cluster()), preview=True
    )
    answer = from_struct(HyperpodServicer().Create(request, None).properties)
    assert answer["clusterArn"] is UNKNOWN
    assert answer["clusterName"] == "train"


POLICY = {"name": "p", "clusterArn": "arn", "schedulerConfig": {"fairShare": "Disabled"}}
QUOTA = {"name": "q", "clusterArn": "arn", "computeQuotaConfig": {}, "computeQuotaTarget": {"teamName": "nlp"}}


def test_a_quota_that_states_little_is_sent_in_full():
    assert with_resets(table("ComputeQuota"), QUOTA) == {
        **QUOTA,
        "description": "",
        "activationState": "Enabled",
        "computeQuotaTarget": {"teamName": "nlp", "fairShareWeight": 0},
        "computeQuotaConfig": {
            "preemptTeamTasks": "LowerPriority",
            "computeQuotaResources": [],
            "resourceSharingConfig": {"strategy": "LendAndBorrow"},
        },
    }


def test_how_a_quota_shares_stays_as_it_is_stated():
    sharing = {"strategy": "DontLend"}
    stated = {**QUOTA, "computeQuotaConfig": {"resourceSharingConfig": sharing}}
    full = with_resets(table("ComputeQuota"), stated)
    assert full["computeQuotaConfig"]["resourceSharingConfig"] == sharing, "a borrowLimit would be rejected beside it"


def test_a_policy_keeps_what_it_states_and_resets_the_rest():
    assert with_resets(table("ClusterSchedulerConfig"), POLICY) == {
        **POLICY,
        "description": "",
        "schedulerConfig": {"fairShare": "Disabled", "idleResourceSharing": "Disabled", "priorityClasses": []},
    }
    assert POLICY["schedulerConfig"] == {"fairShare": "Disabled"}, "the inputs are not touched"


URN = "urn:pulumi:dev::hpkit::pulumi:providers:hyperpod::default"
WAITS = {"region": "us-west-2", "capacityWaitSeconds": "7"}


def refused_settings(engine, settings):
    """Return the settings that CheckConfig rejects."""
    request = provider_pb2.CheckRequest(urn=URN, news=to_struct(settings))
    return [failure.property for failure in engine.stub.CheckConfig(request).failures]


def compared(engine, old, new):
    request = provider_pb2.DiffRequest(
        urn=URN, id="p", olds=to_struct(old), news=to_struct(new), old_inputs=to_struct(old)
    )
    return engine.stub.DiffConfig(request)


def test_a_setting_says_how_long_a_quota_waits():
    with in_process(**WAITS) as engine:
        assert engine.servicer.clients.capacity_wait == 7.0
    servicer = HyperpodServicer()
    servicer.Configure(provider_pb2.ConfigureRequest(variables={"hyperpod:config:capacityWaitSeconds": "8"}), None)
    assert servicer.clients.capacity_wait == 8.0


def test_another_value_is_a_mere_change_of_settings():
    with in_process(**WAITS) as engine:
        answer = compared(engine, WAITS, {**WAITS, "capacityWaitSeconds": "9"})
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert (list(answer.diffs), list(answer.replaces)) == (["capacityWaitSeconds"], [])


def test_a_setting_that_does_not_exist_is_refused():
    with in_process(**WAITS) as engine:
        assert refused_settings(engine, {**WAITS, "capacityWaitSecond": "7"}) == ["capacityWaitSecond"]
        assert refused_settings(engine, WAITS) == []
