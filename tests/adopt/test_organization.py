"""From a live platform to its organization file: contents, omitted settings, and errors that stop an adoption."""

import datetime

import boto3
import pytest
import yaml

from hpkit.adopt.karpenter import leave_counts_to_karpenter
from hpkit.adopt.live_platform import LiveAddon
from hpkit.adopt.organization import adopt
from hpkit.adopt.prepare import prepare
from hpkit.adopt.read import read
from hpkit.errors import ToolError
from tests.adopt.builders import (
    ACCOUNT,
    ADMIN,
    CLUSTER_ADMIN,
    NODES,
    SG,
    SUBNETS,
    addon,
    cluster,
    entry,
    group,
    live,
    policy,
    quota,
)

SCIENTISTS = f"arn:aws:iam::{ACCOUNT}:role/nlp-scientists"


def file_of(platform):
    return adopt(platform, organization="acme", environment="prod")


def spec_of(platform):
    return file_of(platform).data["environments"]["prod"]


def groups_of(platform):
    return {each["name"]: each for each in spec_of(platform)["cluster"]["instanceGroups"]}


def prepared(platform):
    return prepare(
        platform, organization="acme", environment="prod", file="stacks/acme.yaml", today=datetime.date(2026, 11, 1)
    )


def test_threads_per_core_that_nothing_reports_are_an_assumption():
    groups = [group("silent"), group("said", ThreadsPerCore=1), group("single", InstanceType="ml.m7g.4xlarge")]
    platform = live(cluster=cluster(InstanceGroups=groups))
    assert [each["threadsPerCore"] for each in groups_of(platform).values() if "threadsPerCore" in each] == [1]
    (assumed,) = file_of(platform).remarks.assumed
    assert assumed == (
        "silent has two threads per core; if its nodes show half of the CPUs in `kubectl describe nodes`, add "
        "`threadsPerCore: 1`"
    )


def test_a_plain_platform_is_a_valid_file_that_registers_only_what_is_live():
    adoption = prepared(live())
    assert adoption.errors == []
    assert adoption.remarks.blockers == []
    assert adoption.imports.created == ()
    assert adoption.imports.blockers == ()


def test_network_and_kubernetes_are_named_as_they_are():
    spec = spec_of(live())
    assert spec["network"]["existing"] == {
        "vpcId": "vpc-0123456789abcdef0",
        "subnets": SUBNETS,
        "controlPlaneSubnets": list(SUBNETS.values()),
        "securityGroupIds": [SG],
    }
    assert spec["eks"] == {"version": "1.35", "existing": {"name": "kube"}, "administrators": [ADMIN]}
    assert spec["manageTags"] is False
    assert spec["governance"]["topologyAwareScheduling"] == "Unmanaged"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (None, {}),
        ({"Subnets": [SUBNETS["us-west-2a"]], "SecurityGroupIds": [SG]}, {"availabilityZone": "us-west-2a"}),
        ({"Subnets": list(SUBNETS.values()), "SecurityGroupIds": [SG]}, {}),
        (
            {"Subnets": ["subnet-0cccccccccccccccc"], "SecurityGroupIds": [SG]},
            {
                "availabilityZone": "us-west-2a",
                "overrideVpcConfig": {"subnets": ["subnet-0cccccccccccccccc"], "securityGroupIds": [SG]},
            },
        ),
        (
            {"Subnets": [SUBNETS["us-west-2a"]], "SecurityGroupIds": ["sg-0fffffffffffffff0"]},
            {
                "availabilityZone": "us-west-2a",
                "overrideVpcConfig": {"subnets": [SUBNETS["us-west-2a"]], "securityGroupIds": ["sg-0fffffffffffffff0"]},
            },
        ),
    ],
    ids=["the cluster's", "one zone", "all zones", "another subnet of a zone", "another security group"],
)
def test_a_group_is_said_to_be_where_it_is(override, message):
    own = {"OverrideVpcConfig": override} if override else {}
    platform = live(
        cluster=cluster(InstanceGroups=[group(**own)]), zones={**live().zones, "subnet-0cccccccccccccccc": "us-west-2a"}
    )
    found = groups_of(platform)["gpu"]
    places = ("availabilityZone", "overrideVpcConfig")
    assert {key: found[key] for key in places if key in found} == message
    assert prepared(platform).errors == []


def test_names_that_the_service_cannot_change_are_kept():
    platform = live(quotas=[quota("nlp", Name="nlp-compute-allocation")], policies=[policy("Cluster-Policy")])
    governance = spec_of(platform)["governance"]
    assert governance["quotaNames"] == {"nlp": "nlp-compute-allocation"}
    assert governance["policyName"] == "Cluster-Policy"
    assert prepared(platform).imports.created == ()


def test_descriptions_are_kept():
    platform = live(quotas=[quota(Description="language models")])
    assert file_of(platform).data["teams"][0]["description"] == "language models"


@pytest.mark.parametrize(
    ("resources", "workloads"),
    [
        (["jobs", "pods"], None),
        (["horizontalpodautoscalers", "pods"], ["inference"]),
        (["jobs", "deployments", "workspaces"], ["training", "spaces"]),
        (["pods"], None),
    ],
)
def test_what_members_can_run_is_read_from_their_role(resources, workloads):
    role = {"rules": [{"apiGroups": [""], "resources": resources, "verbs": ["get"]}, {"nonResourceURLs": ["/"]}]}
    platform = live(objects={"Role hyperpod-ns-nlp/hpkit-data-scientist": role})
    (team,) = file_of(platform).data["teams"]
    assert team.get("workloads") == workloads


def test_scientists_become_members_and_others_are_left_alone():
    platform = live(
        entries=[
            entry(),
            entry(SCIENTISTS, groups=["hyperpod:team:nlp"], policies=()),
            entry(f"arn:aws:iam::{ACCOUNT}:role/other", groups=["others"], policies=()),
            entry(f"arn:aws:iam::{ACCOUNT}:user/somebody"),
            entry(f"arn:aws:iam::{ACCOUNT}:role/both", groups=["others"], policies=(CLUSTER_ADMIN,)),
        ]
    )
    file = file_of(platform)
    assert file.data["teams"][0]["members"] == [SCIENTISTS]
    assert file.data["environments"]["prod"]["eks"]["administrators"] == [ADMIN]
    left = "\n".join(file.remarks.unmanaged)
    assert [name in left for name in ("role/other", "user/somebody", "role/both")] == [True, True, True]


def test_entries_of_the_services_are_not_even_mentioned():
    node = entry(NODES, policies=())
    node.described["type"] = "HYPERPOD_LINUX"
    linked = entry(f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/sagemaker.amazonaws.com/x", policies=())
    assert file_of(live(entries=[entry(), node, linked])).remarks.unmanaged == []


def test_add_ons_keep_version_configuration_and_role():
    role = f"arn:aws:iam::{ACCOUNT}:role/ebs"
    ebs = "aws-ebs-csi-driver"
    platform = live(
        addons={
            ebs: addon(ebs),
            "vpc-cni": addon("vpc-cni", {"env": {"ENABLE_PREFIX_DELEGATION": "true"}}),
            "aws-fsx-csi-driver": addon("aws-fsx-csi-driver", serviceAccountRoleArn=role),
            "own": addon("own", podIdentityAssociations=["arn:…"]),
            "odd": LiveAddon({"addonVersion": "v1", "configurationValues": "- a list"}, None),
        },
        identities=[
            {
                "namespace": "kube-system",
                "serviceAccount": "ebs-csi-controller-sa",
                "roleArn": role,
                "associationId": "a-1",
            },
            {"namespace": "hyperpod-ns-a", "serviceAccount": "default", "roleArn": role, "associationId": "a-2"},
        ],
    )
    adoption = prepared(platform)
    addons = yaml.safe_load(adoption.text)["environments"]["prod"]["addons"]
    assert addons[ebs] == {"version": "v1.6.0-eksbuild.1", "role": role}
    assert addons["vpc-cni"]["configurationValues"] == {"env": {"ENABLE_PREFIX_DELEGATION": "true"}}
    assert addons["aws-fsx-csi-driver"]["serviceAccountRoleArn"] == role
    assert addons["own"] == {"version": "v1.6.0-eksbuild.1", "podIdentity": False}
    assert "odd" not in addons
    odd, pods = adoption.remarks.unmanaged
    assert pods.startswith(f"the role {role} of the pods of hyperpod-ns-a: before you set `storage.teamBuckets`")
    assert "the add-on odd v1" in odd
    ids = {each["logicalName"]: each["id"] for each in adoption.imports.entries if "podIdentity" in each["type"]}
    assert ids == {ebs: "kube,a-1"}
    assert not [name for name in adoption.imports.created if "iam/" in name], adoption.imports.created


def test_quotas_that_only_karpenters_nodes_can_hold_are_elastic_and_that_is_said():
    def rows(**amounts):
        return {team: [{"instanceType": "ml.g5.12xlarge", **row}] for team, row in amounts.items()}

    spec = {
        "autoscaling": {"nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}]},
        "cluster": {
            "instanceGroups": [
                {"name": "base", "instanceType": "ml.g5.12xlarge", "instanceCount": 2},
                {"name": "burst", "instanceType": "ml.g5.12xlarge", "instanceCount": 3},
            ]
        },
        "governance": {"allocations": rows(ada={"count": 4}, bob={"accelerators": 4}, cyd={"count": 1})},
    }
    said = leave_counts_to_karpenter(spec)
    assert said == ["the quota of ada on ml.g5.12xlarge is elastic: it relies on nodes that Karpenter adds"]
    elastic = {team for team, (row,) in spec["governance"]["allocations"].items() if row.get("elastic")}
    assert elastic == {"ada"}
    assert [group["instanceCount"] for group in spec["cluster"]["instanceGroups"]] == [2, 0]


def test_karpenters_groups_count_from_zero_and_its_pools_are_said():
    pool = {
        "metadata": {"name": "inference"},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "g", "kind": "HyperpodNodeClass", "name": "burst"},
                    "requirements": [
                        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ml.g5.12xlarge"]}
                    ],
                    "expireAfter": "Never",
                }
            },
            "limits": {"nvidia.com/gpu": "16"},
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m"},
        },
    }
    one_zone = {"OverrideVpcConfig": {"Subnets": [SUBNETS["us-west-2a"]], "SecurityGroupIds": [SG]}}
    platform = live(
        cluster=cluster(
            AutoScaling={"Mode": "Enable", "AutoScalerType": "Karpenter", "Status": "InService"},
            ClusterRole=f"arn:aws:iam::{ACCOUNT}:role/karpenter",
            InstanceGroups=[
                group("burst", TargetCount=3, **one_zone),
                group("system", InstanceType="ml.m5.4xlarge", TargetCount=2),
            ],
        ),
        node_classes=[{"metadata": {"name": "burst"}, "spec": {"instanceGroups": ["burst"]}}],
        node_pools=[pool],
        quotas=[],
        policies=[],
        addons={},
    )
    assert groups_of(platform)["burst"]["instanceCount"] == 0
    adoption = prepared(platform)
    assert adoption.errors == []
    assert adoption.imports.created == ()
    kinds = {each["type"].rpartition(":")[2] for each in adoption.imports.entries}
    assert {"NodePool", "HyperpodNodeClass", "AutoscaledGroup"} <= kinds


def test_a_restricted_group_is_adopted_as_it_is():
    lustre = {"SizeInGiB": 4800, "PerUnitStorageThroughput": 250}
    nova = {
        "InstanceGroupName": "nova",
        "InstanceType": "ml.p5.48xlarge",
        "CurrentCount": 1,
        "TargetCount": 2,
        "ExecutionRole": f"arn:aws:iam::{ACCOUNT}:role/nova",
        "ThreadsPerCore": 2,
        "OnStartDeepHealthChecks": ["InstanceStress"],
        "OverrideVpcConfig": {"Subnets": [SUBNETS["us-west-2a"]], "SecurityGroupIds": [SG]},
        "EnvironmentConfig": {"FSxLustreConfig": lustre, "S3OutputPath": "s3://nova-output"},
    }
    before = {"SizeInGiB": 1200, "PerUnitStorageThroughput": 250}
    details = {
        "CurrentFSxLustreDeletionPolicy": "Keep",
        "DesiredFSxLustreConfig": lustre,
        "CurrentFSxLustreConfig": before,
    }
    shared = {"SharedEnvironmentConfig": details}
    platform = live(cluster=cluster(RestrictedInstanceGroups=[nova], RestrictedInstanceGroupsConfig=shared))
    adopted = spec_of(platform)["cluster"]
    config = {"fSxLustreConfig": {"sizeInGiB": 4800, "perUnitStorageThroughput": 250}}
    assert adopted["restrictedInstanceGroups"] == [
        {
            "name": "nova",
            "instanceType": "ml.p5.48xlarge",
            "instanceCount": 2,
            "availabilityZone": "us-west-2a",
            "executionRole": f"arn:aws:iam::{ACCOUNT}:role/nova",
            "threadsPerCore": 2,
            "deepHealthChecks": ["InstanceStress"],
            "environmentConfig": config,
        }
    ]
    environment = {"fSxLustreDeletionPolicy": "Keep", **config}
    assert adopted["restrictedInstanceGroupsConfig"] == {"sharedEnvironmentConfig": environment}
    found = prepared(platform)
    assert (found.errors, found.remarks.blockers, found.imports.created) == ([], [], ())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cluster": cluster(ClusterStatus="Updating")}, "train is Updating: wait until it is InService"),
        ({"cluster": cluster(NodeProvisioningMode=None)}, "doesn't provision continuously"),
        (
            {"cluster": cluster(InstanceGroups=[], RestrictedInstanceGroups=[group("nova")])},
            "only has restricted instance groups (nova)",
        ),
        ({"policies": [policy("one"), policy("two")]}, "2 cluster policies (one, two)"),
        ({"quotas": [quota(Name="a"), quota(Name="b")]}, "2 quotas of team nlp (a, b)"),
        ({"quotas": [quota(Status="UpdateFailed")]}, "nlp is UpdateFailed"),
        ({"unknown": ("eks:ListAddons: AccessDenied: no. Allow it",)}, "not known, so nothing is imported: eks:List"),
    ],
    ids=[
        "updating",
        "not continuous",
        "restricted alone",
        "two policies",
        "two quotas",
        "failed quota",
        "missing right",
    ],
)
def test_what_cannot_be_adopted_says_why(change, says):
    assert says in "\n".join(file_of(live(**change)).remarks.blockers)


def test_limits_in_fractions_and_a_paused_team_are_those_of_the_file():
    slices = {"InstanceType": "ml.p4d.24xlarge", "AcceleratorPartition": {"Type": "mig-1g.5gb", "Count": 3}}
    limits = [{"InstanceType": "ml.g5.12xlarge", "Accelerators": 2, "VCpu": 24.0, "MemoryInGiB": 96.0}, slices]
    found = quota(ActivationState="Disabled")
    found["ComputeQuotaConfig"]["ResourceSharingConfig"] = {"Strategy": "LendAndBorrow", "AbsoluteBorrowLimits": limits}
    (team,) = file_of(live(quotas=[found])).data["teams"]
    assert (team["activationState"], team["sharing"]["absoluteBorrowLimits"]) == (
        "Disabled",
        [
            {"instanceType": "ml.g5.12xlarge", "accelerators": 2, "vCpu": 24.0, "memoryInGiB": 96.0},
            {"instanceType": "ml.p4d.24xlarge", "acceleratorPartition": {"type": "mig-1g.5gb", "count": 3}},
        ],
    )


def test_a_team_name_that_kueue_cannot_take_is_an_error_of_the_file():
    found = prepared(live(quotas=[quota("NLP_Team")]))
    assert [each.rule for each in found.errors] == ["GOV004"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cluster": cluster(InstanceGroups=[group(SlurmConfig={"NodeType": "Compute"})])}, "gpu has SlurmConfig"),
        (
            {"cluster": cluster(InstanceGroups=[group(InstanceStorageConfigs=[{"FsxLustreConfig": {}}])])},
            "gpu mounts an FSx file system",
        ),
    ],
    ids=["slurm", "a file system"],
)
def test_what_the_file_cannot_say_is_listed_with_what_happens_to_it(change, says):
    assert says in "\n".join(file_of(live(**change)).remarks.changes)


def test_operators_of_other_tools_are_named_with_the_key_that_would_replace_them():
    groups = frozenset({"ray.io", "keda.sh", "apps"})
    ray, keda = sorted(file_of(live(api_groups=groups)).remarks.unmanaged, key=lambda line: "keda" in line)
    assert ray.startswith("the operator of ray.io")
    assert ray.endswith("then set `operators: [kuberay-operator]`")
    assert keda.endswith("then set `autoscaling: {keda: {}}`")
    inference = "amazon-sagemaker-hyperpod-inference"
    brought = live(api_groups=groups, addons={inference: addon(inference)})
    assert [line for line in file_of(brought).remarks.unmanaged if "keda" in line] == []
    (unread,) = file_of(live(api_groups=None)).remarks.unmanaged
    assert unread.startswith("operators, such as KubeRay")


def test_storage_interface_and_script_of_a_group_are_those_of_the_file():
    key = {"RootVolume": True, "VolumeKmsKeyId": "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"}
    gpu = group(
        InstanceStorageConfigs=[{"EbsVolumeConfig": key}],
        NetworkInterface={"InterfaceType": "efa-only"},
        LifeCycleConfig={"SourceS3Uri": "s3://sagemaker-scripts", "OnCreate": "run.sh"},
    )
    (written,) = spec_of(live(cluster=cluster(InstanceGroups=[gpu])))["cluster"]["instanceGroups"]
    assert written["instanceStorageConfigs"] == [
        {"ebsVolumeConfig": {"rootVolume": True, "volumeKmsKeyId": key["VolumeKmsKeyId"]}}
    ]
    assert written["networkInterface"] == {"interfaceType": "efa-only"}
    assert written["lifecycleScript"] == "s3://sagemaker-scripts/run.sh"


@pytest.fixture
def session(cloud, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.endpoint.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    return boto3.Session(region_name="us-west-2")


def test_a_call_that_is_not_answered_is_unknown_and_not_absent(cloud, session):
    arn = cloud.govern()
    cloud.endpoint.set_faults(internal="1@ListComputeQuotas")
    platform = read(session, arn, on_progress=lambda _: None)
    assert platform.quotas == []
    assert [line.partition(":")[0] for line in platform.unknown] == ["sagemaker"]
    (blocker,) = adopt(platform, organization="acme", environment="prod").remarks.blockers
    assert blocker.startswith("not known, so nothing is imported: sagemaker:ListComputeQuotas")


def test_karpenters_objects_that_nobody_can_see_are_unknown(cloud, session):
    karpenter = {"Mode": "Enable", "AutoScalerType": "Karpenter"}
    arn = cloud.make_cluster(ClusterRole=cloud.karpenter_role, NodeRecovery="Automatic")
    cloud.sm.update_cluster(ClusterName=arn, AutoScaling=karpenter, ClusterRole=cloud.karpenter_role)
    cloud.advance(60)
    found = read(session, "train", on_progress=lambda _: None)
    assert found.autoscales
    assert ["the Kubernetes API of kube doesn't accept" in line for line in found.unknown] == [True]


def test_without_karpenter_and_teams_nobody_needs_a_way_to_the_kubernetes_api(cloud, session):
    arn = cloud.govern()
    cloud.quota(arn, "nlp")
    cloud.policy(arn)
    platform = read(session, arn, on_progress=lambda _: None)
    assert platform.unknown == ()
    assert [each["ComputeQuotaTarget"]["TeamName"] for each in platform.quotas] == ["nlp"]
    assert list(platform.addons) == ["amazon-sagemaker-hyperpod-taskgovernance"]


def test_a_cluster_that_is_not_there_is_said_with_the_services_own_words(cloud, session):
    del cloud
    with pytest.raises(ToolError, match="sagemaker:DescribeCluster: ResourceNotFound"):
        read(session, "nowhere", on_progress=lambda _: None)
