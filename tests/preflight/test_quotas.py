"""Account quotas compared with a plan's needs and current usage."""

import pytest

from hpkit.clients.calls import FailedCall, Responses
from hpkit.preflight.calls import (
    ADDRESSES,
    ALL_SUBNETS,
    CLUSTERS,
    EKS_CLUSTERS,
    GATEWAYS,
    INTERFACES,
    NAT_GATEWAYS,
    VPCS,
    applied_quotas,
    cluster,
    default_quotas,
    eks_cluster,
)
from hpkit.preflight.quotas import check_quotas
from tests.builders import group, organization
from tests.program.recorder import recorded_from

DENIED = FailedCall("servicequotas:ListServiceQuotas", "AccessDeniedException", "not allowed")
AMPLE = {
    "ml.g5.12xlarge for cluster usage": 8,
    "Maximum number instances allowed per SageMaker HyperPod cluster": 20,
    "Total number of instances allowed across SageMaker HyperPod clusters": 30,
}
NETWORK = {
    "VPCs per Region": 5,
    "Internet gateways per Region": 5,
    "NAT gateways per Availability Zone": 5,
    "Network interfaces per Region": 5000,
}


def recording_of(*groups, **environment):
    wanted = list(groups) or [group("gpu", "ml.g5.12xlarge", 4)]
    return recorded_from(organization(groups=wanted, environment=environment))


def listed(values, *, adjustable=True):
    return {
        "Quotas": [
            {"QuotaName": name, "QuotaCode": f"L-{index:08X}", "Value": float(value), "Adjustable": adjustable}
            for index, (name, value) in enumerate(values.items())
        ]
    }


def responses(sagemaker=AMPLE, *, adjustable=True, clusters=(), **more):
    quotas = {
        applied_quotas("sagemaker").key: listed(sagemaker, adjustable=adjustable),
        default_quotas("sagemaker").key: listed({}),
        applied_quotas("vpc").key: listed({}),
        default_quotas("vpc").key: listed(NETWORK),
        applied_quotas("ec2").key: listed({"EC2-VPC Elastic IPs": 5}),
        default_quotas("ec2").key: listed({}),
        applied_quotas("eks").key: listed({}),
        default_quotas("eks").key: listed({"Clusters": 100}),
        EKS_CLUSTERS.key: {"clusters": ["other"]},
        NAT_GATEWAYS.key: {"NatGateways": [{"SubnetId": "subnet-b"}]},
        ALL_SUBNETS.key: {
            "Subnets": [{"SubnetId": f"subnet-{zone}", "AvailabilityZone": f"us-west-2{zone}"} for zone in "ab"]
        },
        VPCS.key: {"Vpcs": [{"VpcId": "vpc-1"}]},
        GATEWAYS.key: {"InternetGateways": [{}]},
        ADDRESSES.key: {"Addresses": []},
        INTERFACES.key: {"NetworkInterfaces": [{}, {}]},
        CLUSTERS.key: {"ClusterSummaries": [{"ClusterArn": arn, "ClusterName": arn} for arn, _ in clusters]},
        **{cluster(arn).key: described for arn, described in clusters},
        **more,
    }
    return Responses(quotas)


def rows_of(recording, given):
    return {row.what: row for row in check_quotas(recording, given)}


def running(instance_type, count, name="gpu", **more):
    group = {"InstanceType": instance_type, "CurrentCount": count, "TargetCount": count, **more}
    return {"InstanceGroups": [{"InstanceGroupName": name, **group}]}


def test_quotas_that_are_large_enough_are_ok_and_say_what_is_used():
    rows = rows_of(recording_of(), responses())
    assert {row.status for row in rows.values()} == {"ok"}
    assert rows["VPCs per Region"].found == "5, 1 used"
    assert rows["Network interfaces per Region"].found == "5000, 2 used"
    assert rows["EC2-VPC Elastic IPs"].needed == "1"


def test_a_quota_too_small_names_figures_and_the_request_that_raises_it():
    rows = rows_of(recording_of(), responses({**AMPLE, "ml.g5.12xlarge for cluster usage": 3}))
    row = rows["ml.g5.12xlarge for cluster usage"]
    assert (row.status, row.found, row.needed) == ("missing", "3", "4")
    assert row.command == (
        "aws service-quotas request-service-quota-increase --service-code sagemaker --quota-code L-00000000"
        " --desired-value 4 --region us-west-2"
    )
    assert [other.what for other in rows.values() if other.status == "missing"] == [row.what]


def test_what_cannot_be_raised_is_not_to_be_asked_for():
    given = responses({**AMPLE, "ml.g5.12xlarge for cluster usage": 0}, adjustable=False)
    row = rows_of(recording_of(), given)["ml.g5.12xlarge for cluster usage"]
    assert row.status == "missing"
    assert row.command == ""


def test_what_other_clusters_hold_counts_against_type_and_total():
    given = responses(clusters=[("other", running("ml.g5.12xlarge", 5))])
    rows = rows_of(recording_of(), given)
    assert rows["ml.g5.12xlarge for cluster usage"].status == "missing", "5 used and 4 wanted are more than 8"
    assert rows["ml.g5.12xlarge for cluster usage"].found == "8, 5 used"
    assert rows["Total number of instances allowed across SageMaker HyperPod clusters"].found == "30, 5 used"
    assert rows["Maximum number instances allowed per SageMaker HyperPod cluster"].found == "20"


def test_what_the_stacks_own_cluster_holds_is_not_needed_once_more():
    given = responses(clusters=[("acme", running("ml.g5.12xlarge", 4))])
    rows = rows_of(recording_of(), given)
    for name, value in AMPLE.items():
        assert (rows[name].status, rows[name].needed) == ("ok", "4, already in use")
        assert rows[name].found == f"{value}, 4 used"


def test_a_quota_below_what_runs_is_no_obstacle_as_long_as_nothing_is_added():
    quotas = {**AMPLE, "ml.g5.12xlarge for cluster usage": 0}
    given = responses(quotas, clusters=[("acme", running("ml.g5.12xlarge", 4))])
    row = rows_of(recording_of(), given)["ml.g5.12xlarge for cluster usage"]
    assert (row.status, row.found) == ("ok", "0, 4 used")


@pytest.mark.parametrize(("value", "status"), [(8, "ok"), (7, "missing")])
def test_of_a_cluster_that_grows_only_the_new_instances_are_needed(value, status):
    clusters = [("acme", running("ml.g5.12xlarge", 4)), ("other", running("ml.g5.12xlarge", 2))]
    given = responses({**AMPLE, "ml.g5.12xlarge for cluster usage": value}, clusters=clusters)
    row = rows_of(recording_of(group("gpu", "ml.g5.12xlarge", 6)), given)["ml.g5.12xlarge for cluster usage"]
    assert (row.status, row.found, row.needed) == (status, f"{value}, 6 used", "6, 2 of them new")
    assert ("--desired-value 8" in row.command) == (status == "missing")


def test_a_flexible_group_of_another_cluster_counts_type_by_type():
    details = [{"InstanceType": "ml.g5.12xlarge", "CurrentCount": 2}, {"InstanceType": "ml.p5.48xlarge"}]
    groups = [{"InstanceGroupName": "any", "InstanceTypeDetails": details}]
    given = responses(clusters=[("other", {"InstanceGroups": groups})])
    assert rows_of(recording_of(), given)["ml.g5.12xlarge for cluster usage"].found == "8, 2 used"


def test_spot_has_quotas_of_its_own():
    recording = recording_of(group("gpu", "ml.g5.12xlarge", 4, capacityType="Spot"))
    spot = "ml.g5.12xlarge for cluster spot instance usage"
    total = "Total number of Spot instances allowed across SageMaker HyperPod clusters"
    used = [("other", running("ml.g5.12xlarge", 3, CapacityRequirements={"Spot": {}}))]
    rows = rows_of(recording, responses({**AMPLE, spot: 6, total: 40}, clusters=used))
    assert (rows[spot].status, rows[spot].found) == ("missing", "6, 3 used")
    assert rows[total].found == "40, 3 used"
    assert "ml.g5.12xlarge for cluster usage" not in rows


def grown(limits):
    pool = {"name": "serving", "nodeClass": "burst", "limits": limits}
    autoscaling = {"nodeClasses": [{"name": "burst", "instanceGroups": ["a"]}], "nodePools": [pool]}
    return recording_of(group("gpu", "ml.g5.12xlarge", 4), group("a", "ml.g5.12xlarge", 0), autoscaling=autoscaling)


def test_what_karpenter_may_add_is_a_line_of_its_own():
    rows = rows_of(grown({"nodes": "6"}), responses())
    assert rows["ml.g5.12xlarge for cluster usage"].status == "ok"
    row = rows["ml.g5.12xlarge for cluster usage (with Karpenter)"]
    assert (row.status, row.found, row.needed) == ("missing", "8", "10")


def test_nodes_that_karpenter_added_are_part_of_its_maximum_and_not_of_the_fixed_groups():
    groups = running("ml.g5.12xlarge", 4)["InstanceGroups"] + running("ml.g5.12xlarge", 3, "a")["InstanceGroups"]
    rows = rows_of(grown({"nodes": "6"}), responses(clusters=[("acme", {"InstanceGroups": groups})]))
    assert rows["ml.g5.12xlarge for cluster usage"].needed == "4, already in use"
    row = rows["ml.g5.12xlarge for cluster usage (with Karpenter)"]
    assert (row.status, row.found, row.needed) == ("missing", "8, 7 used", "10, 3 of them new")


def test_growth_without_bound_is_not_known_to_fit():
    row = rows_of(grown({}), responses())["ml.g5.12xlarge for cluster usage (with Karpenter)"]
    assert (row.status, row.needed) == ("unknown", "no limit")
    assert "NodePool" in row.fix


def test_the_types_of_a_flexible_group_have_room_together():
    flexible = group("any", "", 6, instanceTypes=["ml.g5.12xlarge", "ml.g5.24xlarge"])
    del flexible["instanceType"]
    recording = recording_of(group("gpu", "ml.g5.12xlarge", 4), flexible)
    quotas = {**AMPLE, "ml.g5.24xlarge for cluster usage": 2}
    row = rows_of(recording, responses(quotas))["quotas of all types of any, together"]
    assert (row.status, row.found) == ("ok", "6 (ml.g5.12xlarge 4, ml.g5.24xlarge 2)")
    row = rows_of(recording, responses(AMPLE))["quotas of all types of any, together"]
    assert (row.status, row.found) == ("missing", "4 (ml.g5.12xlarge 4, ml.g5.24xlarge 0)")


def test_the_volume_quota_is_looked_at_only_for_groups_with_a_volume():
    name = "Maximum size of EBS volume in GB for a SageMaker HyperPod cluster instance"
    assert name not in rows_of(recording_of(), responses())
    recording = recording_of(
        group("gpu", "ml.g5.12xlarge", 1, instanceStorageConfigs=[{"ebsVolumeConfig": {"volumeSizeInGB": 2000}}])
    )
    assert rows_of(recording, responses({**AMPLE, name: 1024}))[name].status == "missing"


OWN = [{"Key": "hpkit:organization", "Value": "acme"}, {"Key": "hpkit:environment", "Value": "dev"}]


def test_the_network_of_the_stack_is_not_needed_once_more():
    own = {"Tags": OWN}
    full = responses(
        **{
            VPCS.key: {"Vpcs": [own, {}, {}, {}, {}]},
            GATEWAYS.key: {"InternetGateways": [{}, {}, {}, {}, own]},
            ADDRESSES.key: {"Addresses": [own]},
        }
    )
    rows = rows_of(recording_of(), full)
    for name in ("VPCs per Region", "Internet gateways per Region", "EC2-VPC Elastic IPs"):
        assert (rows[name].status, rows[name].needed) == ("ok", "1, already in use")
    assert rows["Network interfaces per Region"].needed == "9, 8 of them new", "the NAT gateway is there"
    others = responses(**{VPCS.key: {"Vpcs": [{}, {}, {}, {}, {}]}})
    assert rows_of(recording_of(), others)["VPCs per Region"].status == "missing"


NAT = "NAT gateways per Availability Zone (us-west-2a)"


def test_nat_gateways_are_counted_in_the_zones_where_they_are_to_stand():
    row = rows_of(recording_of(), responses())[NAT]
    assert (row.status, row.found, row.needed) == ("ok", "5", "1"), "the other one is in another zone"
    full = [{"SubnetId": "subnet-a"}] * 5
    row = rows_of(recording_of(), responses(**{NAT_GATEWAYS.key: {"NatGateways": full}}))[NAT]
    assert (row.status, row.found) == ("missing", "5, 5 used")
    own = [{"SubnetId": "subnet-a", "Tags": OWN}, *full[1:]]
    row = rows_of(recording_of(), responses(**{NAT_GATEWAYS.key: {"NatGateways": own}}))[NAT]
    assert (row.status, row.needed) == ("ok", "1, already in use")


def test_an_eks_cluster_counts_against_those_of_the_region():
    few = {applied_quotas("eks").key: listed({"Clusters": 1})}
    row = rows_of(recording_of(), responses(**few))["Clusters (EKS)"]
    assert (row.status, row.found, row.needed) == ("missing", "1, 1 used", "1")
    assert "--service-code eks" in row.command
    assert "--desired-value 2" in row.command
    recording = recording_of()
    live = {eks_cluster(recording.plan).key: {"cluster": {"tags": {each["Key"]: each["Value"] for each in OWN}}}}
    assert rows_of(recording, responses(**few, **live))["Clusters (EKS)"].needed == "1, already in use"
    used = recording_of(eks={"version": "1.35", "existing": {"name": "kube"}, "administrators": []})
    assert "Clusters (EKS)" not in rows_of(used, responses(**few))


def test_a_stack_that_is_up_needs_no_more_interfaces():
    recording = recording_of()
    given = responses(
        clusters=[("acme", running("ml.g5.12xlarge", 4))],
        **{
            VPCS.key: {"Vpcs": [{"Tags": OWN}]},
            eks_cluster(recording.plan).key: {"cluster": {"tags": {each["Key"]: each["Value"] for each in OWN}}},
        },
    )
    assert rows_of(recording, given)["Network interfaces per Region"].needed == "9, already in use"


@pytest.mark.parametrize("what", ["applied", "defaults", "clusters", "describe"])
def test_a_call_that_fails_leaves_the_quota_unknown_with_the_reason(what):
    keys = {
        "applied": applied_quotas("sagemaker").key,
        "defaults": default_quotas("sagemaker").key,
        "clusters": CLUSTERS.key,
        "describe": cluster("other").key,
    }
    values = {**AMPLE} if what != "defaults" else {}
    given = responses(values, clusters=[("other", running("ml.g5.12xlarge", 1))]).merged({keys[what]: DENIED})
    row = rows_of(recording_of(), given)["ml.g5.12xlarge for cluster usage"]
    assert row.status == "unknown"
    assert "AccessDeniedException: not allowed" in row.why
    assert row.fix == "Allow servicequotas:ListServiceQuotas to the caller"


def test_a_quota_too_small_by_itself_is_missing_whatever_others_use():
    given = responses({**AMPLE, "ml.g5.12xlarge for cluster usage": 3}).merged({CLUSTERS.key: DENIED})
    assert rows_of(recording_of(), given)["ml.g5.12xlarge for cluster usage"].status == "missing"
