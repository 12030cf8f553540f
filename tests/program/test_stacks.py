"""The resources of each example stack: properties, references, order, names."""

import json
import re
import subprocess

import pytest
import yaml

from generate.examples import example_stacks
from hpkit.plan.derive import derive
from hpkit.program.recording import Answers, record
from tests.builders import organization, typed
from tests.program.recorder import STACKS, recorded, recorded_from

NAMES = example_stacks()

# The types in every stack that creates a network and an EKS cluster.
ALWAYS = {
    "ec2/vpc:Vpc": 1,
    "s3/bucket:Bucket": 1,
    "s3/bucketPolicy:BucketPolicy": 1,
    "s3/bucketPublicAccessBlock:BucketPublicAccessBlock": 1,
    "s3/bucketVersioning:BucketVersioning": 1,
    "s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": 1,
    "s3/bucketObjectv2:BucketObjectv2": 1,
    "kms/key:Key": 1,
    "cloudwatch/logGroup:LogGroup": 1,
    "eks/cluster:Cluster": 1,
    "hyperpod:index:Cluster": 1,
    "hyperpod:index:ClusterSchedulerConfig": 1,
    "hyperpod:index:ChangeGuard": 5,
}


@pytest.fixture(params=NAMES)
def program(request):
    return recorded(request.param)


def test_every_stack_has_the_whole_platform(program):
    counts = {kind: len(program.all(kind)) for kind in ALWAYS}
    assert counts == ALWAYS


def test_every_aws_resource_goes_to_the_regions_own_provider(program):
    provider = program.one("pulumi:providers:aws")
    assert provider.inputs["region"] == program.plan.spec.region
    assert json.loads(provider.inputs["defaultTags"])["tags"]["SageMaker"] == "true"
    strays = [
        each.name for each in program.all("") if each.type.startswith("aws:") and provider.urn not in each.provider
    ]
    assert strays == []


def test_security_groups_say_what_ec2_takes(program):
    """EC2 API reference, CreateSecurityGroup and IpRange: descriptions allow no other characters, no apostrophe."""
    groups = program.all("ec2/securityGroup:SecurityGroup")
    rules = [*program.all("securityGroupIngressRule:"), *program.all("securityGroupEgressRule:")]
    said = [each.inputs["description"] for each in (*groups, *rules) if each.inputs.get("description")]
    assert groups
    assert [each for each in said if not re.fullmatch(r"[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]{1,255}", each)] == []


def test_names_are_unique_and_without_double_colons(program):
    assert len(program.names) == len(program.resources)
    assert [name for _, name in program.names if "::" in name] == []


GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
# Types, and patterns of names. The first waits for the second: it's created later, and deleted earlier.
WAITS = [
    ("hyperpod:index:Cluster", "eks/cluster:Cluster"),
    ("hyperpod:index:Cluster", "s3/bucketObjectv2:BucketObjectv2"),
    ("hyperpod:index:Cluster", "iam/rolePolicy:RolePolicy nodes"),
    ("hyperpod:index:Cluster", "iam/rolePolicyAttachment:RolePolicyAttachment nodes"),
    ("hyperpod:index:Cluster", "ec2/route:Route nodes-.*"),
    ("hyperpod:index:Cluster", "ec2/vpcEndpoint:VpcEndpoint"),
    ("hyperpod:index:Cluster", "eks/addon:Addon (vpc-cni|kube-proxy)"),
    ("hyperpod:index:Cluster", "helm.sh/v3:Release hyperpod-dependencies"),
    ("helm.sh/v3:Release hyperpod-dependencies", "eks/cluster:Cluster"),
    ("eks/cluster:Cluster", "iam/rolePolicy:RolePolicy control-plane"),
    (f"eks/addon:Addon (coredns|{GOVERNANCE})", "hyperpod:index:Cluster"),
    ("hyperpod:index:ClusterSchedulerConfig", f"eks/addon:Addon {GOVERNANCE}"),
    ("hyperpod:index:ComputeQuota", "hyperpod:index:ClusterSchedulerConfig"),
    # The policy may write Kueue's configuration anew.
    ("v1:ConfigMapPatch", "hyperpod:index:ClusterSchedulerConfig"),
    ("v1:DeploymentPatch", "v1:ConfigMapPatch"),
    ("v1:DeploymentPatch", "hyperpod:index:ComputeQuota"),
]
NEVER_WAITS = [
    ("helm.sh/v3:Release hyperpod-dependencies", "eks/addon:Addon"),
    ("eks/cluster:Cluster", "ec2/natGateway:NatGateway"),
    ("eks/cluster:Cluster", "s3/bucket:Bucket"),
]
MAY_LACK = {"ec2/route:Route nodes-.*", "ec2/vpcEndpoint:VpcEndpoint", "ec2/natGateway:NatGateway"}


def of(program, described):
    """Return the resources of a type whose names match."""
    kind, _, names = described.partition(" ")
    found = [each for each in program.all(kind) if re.fullmatch(names or ".*", each.name)]
    assert found or described in MAY_LACK, described
    return found


def test_what_needs_something_is_created_after_it_and_nothing_waits_without_need(program):
    for table, expected in ((WAITS, True), (NEVER_WAITS, False)):
        for late, early in table:
            waits = [(a.name, b.name, program.waits(a, b)) for a in of(program, late) for b in of(program, early)]
            assert [(a, b) for a, b, found in waits if found is not expected] == [], (late, early)


def test_the_control_plane_may_use_the_key_of_its_secrets_and_no_other(program):
    rights = program.one("iam/rolePolicy:RolePolicy", "control-plane")
    cluster = program.one("eks/cluster:Cluster")
    (statement,) = json.loads(rights.inputs["policy"])["Statement"]
    assert statement["Action"] == ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:ListGrants"]
    assert statement["Resource"] == [cluster.inputs["encryptionConfig"]["provider"]["keyArn"]]


def test_the_dependencies_chart_is_installed_without_waiting_for_its_pods(program):
    release = program.one("helm.sh/v3:Release", "hyperpod-dependencies")
    # Without nodes, none of its pods can run, so waiting for them never ends.
    assert release.inputs["skipAwait"] is True
    assert release.inputs["values"]["health-monitoring-agent"]["region"] == program.plan.spec.region


def test_a_cluster_that_has_the_chart_gets_none():
    data = yaml.safe_load((STACKS / "handson.yaml").read_text(encoding="utf-8"))
    data["environments"]["dev"]["cluster"]["dependencies"] = {"installed": True}
    assert recorded_from(data).all("helm.sh/v3:Release") == []


def test_an_update_of_an_add_on_keeps_what_was_set_by_hand_except_in_kueue(program):
    for name, addon in program.named("eks/addon:Addon").items():
        ways = (addon.inputs["resolveConflictsOnCreate"], addon.inputs["resolveConflictsOnUpdate"])
        assert ways == ("OVERWRITE", "OVERWRITE" if "taskgovernance" in name else "PRESERVE"), name


def test_kueues_configuration_that_hpkit_leaves_alone_survives_an_update():
    data = yaml.safe_load((STACKS / "handson.yaml").read_text(encoding="utf-8"))
    data["environments"]["dev"]["governance"]["topologyAwareScheduling"] = "Unmanaged"
    addon = recorded_from(data).one("eks/addon:Addon", "amazon-sagemaker-hyperpod-taskgovernance")
    assert addon.inputs["resolveConflictsOnUpdate"] == "PRESERVE"


def test_folders_on_local_disks_are_made_only_where_the_path_is_a_mount(tmp_path):
    data = yaml.safe_load((STACKS / "handson.yaml").read_text(encoding="utf-8"))
    data["environments"]["dev"]["storage"] = {"localDisk": {"instanceTypes": ["ml.g5.12xlarge"]}}
    program = recorded_from(data)
    types = {each.inputs["spec"]["hostPath"]["type"] for each in program.all("core/v1:PersistentVolume")}
    assert types == {"Directory"}, "only the DaemonSet creates a folder"
    pod = program.one("apps/v1:DaemonSet", "folders").inputs["spec"]["template"]["spec"]
    (container,), (volume,) = pod["containers"], pod["volumes"]
    assert volume["hostPath"]["path"] == "/opt/dlami"
    assert container["volumeMounts"][0]["mountPropagation"] == "HostToContainer"
    (tmp_path / "nvme").mkdir()
    script = container["command"][2].replace("/node/", f"{tmp_path}/").replace("exec tail -f /dev/null", "exit 0")
    no_mount = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (no_mount.returncode, list((tmp_path / "nvme").iterdir())) == (1, [])
    assert "/opt/sagemaker or /opt/dlami/nvme" in no_mount.stdout
    assert subprocess.run(["sh", "-c", script.replace("mountpoint -q", "test -d")], check=False).returncode == 0
    assert {each.name for each in (tmp_path / "nvme" / "teams").iterdir()} == {"john", "smith"}


def test_quotas_do_not_wait_for_each_other(program):
    quotas = program.all("hyperpod:index:ComputeQuota")
    assert [(a.name, b.name) for a in quotas for b in quotas if a is not b and program.waits(a, b)] == []


def test_pulumi_waits_for_the_restart_of_kueue(program):
    assert "pulumi.com/skipAwait" not in program.one("v1:DeploymentPatch").inputs["metadata"]["annotations"]


def test_a_teams_rights_wait_for_its_quota_which_makes_the_namespace(program):
    quotas = program.named("hyperpod:index:ComputeQuota")
    for binding in program.all("v1:RoleBinding"):
        assert program.waits(binding, quotas[binding.name]), binding.name
        assert binding.inputs["metadata"]["namespace"] == f"hyperpod-ns-{binding.name}"
    assert not program.all("v1:Namespace"), "team namespaces are the service's"


def test_a_teams_namespace_has_a_level_before_anybody_of_it_has_rights(program):
    levels = program.named("core/v1:NamespacePatch")
    bindings = program.all("v1:RoleBinding")
    quotas = program.named("hyperpod:index:ComputeQuota")
    assert levels.keys() == {each.name for each in bindings}
    version = f"v{program.plan.spec.eks.version}"
    for binding in bindings:
        level = levels[binding.name]
        labels = level.inputs["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
        assert {labels[f"pod-security.kubernetes.io/{mode}-version"] for mode in ("enforce", "warn", "audit")} == {
            version
        }
        assert level.inputs["metadata"]["name"] == f"hyperpod-ns-{binding.name}"
        assert program.waits(level, quotas[binding.name]), "the service makes the namespace with the quota"
        assert program.waits(binding, level)


def test_admission_policies_are_in_force_before_anybody_of_a_team_has_rights(program):
    bindings = program.all("v1:RoleBinding")
    policies = program.named("v1:ValidatingAdmissionPolicy")
    bound = program.named("v1:ValidatingAdmissionPolicyBinding")
    assert policies.keys() == bound.keys()
    assert bool(policies) is bool(bindings)
    for name, resource in bound.items():
        assert resource.inputs["spec"] == {"policyName": name, "validationActions": ["Deny"]}
        assert program.waits(resource, policies[name])
        assert [binding.name for binding in bindings if not program.waits(binding, resource)] == []
        spec = policies[name].inputs["spec"]
        assert spec["failurePolicy"] == "Fail"
        (selector,) = spec["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        assert selector["key"] == "kubernetes.io/metadata.name", "a label that only the API server writes"
        assert set(selector["values"]) == {f"hyperpod-ns-{binding.name}" for binding in bindings}


KEPT = {
    "aws:ec2/vpc:Vpc": "vpc",
    "aws:eks/cluster:Cluster": "eks",
    "aws:s3/bucket:Bucket": "bucket",
    "aws:kms/key:Key": "key",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "fileSystem",
    "hyperpod:index:ChangeGuard": "cluster",
}


def protected(program):
    return {each.type for each in program.resources.values() if each.protect}


def with_files(**more):
    data = yaml.safe_load((STACKS / "handson.yaml").read_text(encoding="utf-8"))
    lustre = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "perUnitStorageThroughput": 125}
    data["environments"]["dev"] |= {"storage": {"lustre": lustre}, **more}
    return recorded_from(data)


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        # A deletion after the creation would remove what was just associated, because both have the same key.
        ("enterprise-prod", "eks/accessPolicyAssociation:AccessPolicyAssociation"),
        # An Elastic IP belongs to one gateway at a time.
        ("startup-dev", "ec2/natGateway:NatGateway"),
    ],
)
def test_what_can_exist_once_is_deleted_before_it_is_replaced(stack, kind):
    resources = recorded(stack).all(kind)
    assert resources
    assert all(each.delete_before_replace for each in resources)


def test_what_must_not_be_lost_is_protected_always_and_the_cluster_when_asked():
    assert protected(recorded("handson-dev")) == KEPT.keys() - {"aws:fsx/lustreFileSystem:LustreFileSystem"}
    assert protected(with_files()) == KEPT.keys()
    assert protected(with_files(protect=True)) == KEPT.keys() | {"hyperpod:index:Cluster"}


@pytest.mark.parametrize(("kind", "name"), KEPT.items())
def test_a_name_in_allow_replace_lifts_the_protection_of_that_alone(kind, name):
    assert protected(with_files(allowReplace=[name])) == KEPT.keys() - {kind}


def test_the_guards_stand_after_what_they_guard_and_before_what_stands_on_it():
    program = with_files(allowReplace=["eks", "cluster"])
    guards = program.named("hyperpod:index:ChangeGuard")
    base, last, cluster = guards["keep-base"], guards["keep"], program.one("hyperpod:index:Cluster")
    assert set(base.inputs["identity"]) == {"bucket", "eks", "fileSystem", "key", "vpc"}
    assert {"cluster": cluster.inputs["clusterName"]}.keys() == last.inputs["identity"].keys()
    assert (base.inputs["allowReplace"], last.inputs["allowReplace"]) == (["eks"], ["cluster"])
    assert program.waits(cluster, base)
    assert program.waits(program.one("eks/cluster:Cluster"), guards["keep-eks"])
    # A destroy that reaches the protection of the last resource doesn't touch anything that waits for it, which is
    # everything.
    others = [each for each in program.resources.values() if each.custom and each is not last]
    providers = "pulumi:providers:"
    assert [each.name for each in others if not each.type.startswith(providers) and not program.waits(last, each)] == []


def test_the_clusters_plugin_hears_of_allowances_before_anything_is_compared():
    program = with_files(allowReplace=["cluster"], allowDelete={"instanceGroups": ["gpu"]})
    assert program.one("pulumi:providers:hyperpod").inputs["allowReplace"] == "true"
    assert program.one("hyperpod:index:Cluster").inputs["allowDeleteInstanceGroups"] == ["gpu"]
    assert "allowReplace" not in with_files().one("pulumi:providers:hyperpod").inputs


def test_groups_are_pinned_to_their_zones_subnet_and_run_the_kits_script():
    program = recorded("handson-dev")
    cluster = program.one("hyperpod:index:Cluster").inputs
    groups = {group["instanceGroupName"]: group for group in cluster["instanceGroups"]}
    assert groups["gpu"]["overrideVpcConfig"]["subnets"] == ["nodes-us-west-2a-id"]
    assert groups["gpu"]["lifeCycleConfig"]["onCreate"] == "on_create.sh"
    script = program.one("s3/bucketObjectv2:BucketObjectv2").inputs
    folder = script["key"].rpartition("/")[0]
    assert groups["gpu"]["lifeCycleConfig"]["sourceS3Uri"].endswith(folder)
    assert cluster["nodeProvisioningMode"] == "Continuous"


def test_karpenter_gets_role_groups_class_and_pool():
    program = recorded("autoscale-dev")
    cluster = program.one("hyperpod:index:Cluster")
    assert cluster.inputs["autoScaling"] == {"mode": "Enable", "autoScalerType": "Karpenter"}
    assert cluster.inputs["autoscaledInstanceGroups"] == ["burst-a", "burst-b"]
    node_class, pool = program.one(":HyperpodNodeClass"), program.one(":NodePool")
    assert node_class.inputs["spec"] == {"instanceGroups": ["burst-a", "burst-b"]}
    assert pool.inputs["spec"]["limits"] == {"nvidia.com/gpu": "16"}
    assert program.waits(node_class, cluster)
    assert program.waits(pool, node_class)
    role = program.one("iam/role:Role", "karpenter")
    trust = json.loads(role.inputs["assumeRolePolicy"])["Statement"][0]
    assert trust["Principal"] == {"Service": "hyperpod.sagemaker.amazonaws.com"}


def test_a_warm_pool_waits_for_its_node_pool_and_gives_way_to_every_pod():
    data = yaml.safe_load((STACKS / "autoscale.yaml").read_text(encoding="utf-8"))
    pool = data["environments"]["dev"]["autoscaling"]["nodePools"][0]
    pool["taints"] = [{"key": "team", "value": "serving", "effect": "NoSchedule"}]
    pool["warmPool"] = {"replicas": 2, "requests": {"nvidia.com/gpu": 1, "cpu": "4"}}
    program = recorded_from(data)
    deployment = program.one("v1:Deployment")
    assert program.waits(deployment, program.one(":NodePool"))
    assert program.one("v1:PriorityClass").inputs["value"] < 0
    pod = deployment.inputs["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"karpenter.sh/nodepool": pool["name"]}
    assert pod["containers"][0]["resources"]["requests"] == {"cpu": "4", "nvidia.com/gpu": "1"}
    assert pod["tolerations"] == [{"key": "team", "operator": "Equal", "value": "serving", "effect": "NoSchedule"}]


def test_a_node_class_lets_go_of_a_group_before_the_group_goes():
    program = recorded("autoscale-dev")
    cluster, node_class = program.one("hyperpod:index:Cluster"), program.one(":HyperpodNodeClass")
    groups = program.all("hyperpod:index:AutoscaledGroup")
    assert sorted(group.inputs["instanceGroupName"] for group in groups) == ["burst-a", "burst-b"]
    for group in groups:
        assert group.urn in node_class.after, "deletion goes the other way round: the NodeClass first"
        assert program.waits(group, cluster)
        right = program.one("iam/rolePolicy:RolePolicy", "karpenter").urn
        assert right in group.after, "the cluster waits for the role only while autoscaling is on"
        assert group.provider == cluster.provider, "one process knows which groups the cluster has in this run"
    assert not recorded("handson-dev").all("hyperpod:index:AutoscaledGroup")


def test_a_cluster_takes_its_autoscaled_groups_along_when_it_is_deleted():
    program = recorded("autoscale-dev")
    deleted_with = {each.name: each.deleted_with for each in program.resources.values() if each.deleted_with}
    cluster = program.one("hyperpod:index:Cluster").urn
    assert deleted_with == {"autoscaled-burst-a": cluster, "autoscaled-burst-b": cluster}


def test_outputs_say_who_has_what_and_how_to_get_in():
    outputs = recorded("handson-dev").outputs
    assert outputs["teams"]["john"] == {
        "priorityClasses": [],
        "namespace": "hyperpod-ns-john",
        "queue": "hyperpod-ns-john-localqueue",
        "quota": {"ml.g5.12xlarge": 3},
        "elastic": {},
        "borrowable": {"ml.g5.12xlarge": 1},
    }
    serving = recorded("autoscale-dev").outputs["teams"]["serving"]
    assert serving["priorityClasses"] == ["inference-priority", "training-priority"]
    assert (serving["quota"], serving["elastic"]) == ({"ml.g5.8xlarge": 0}, {"ml.g5.8xlarge": 8})
    assert outputs["kubeconfigCommand"] == "aws eks update-kubeconfig --region us-west-2 --name handson-dev"


def test_hyperpod_may_assume_execution_roles_whatever_source_it_states_but_a_jobs():
    program = recorded("handson-dev")
    trust, jobs = json.loads(program.one("iam/role:Role", "nodes").inputs["assumeRolePolicy"])["Statement"]
    assert trust["Principal"] == jobs["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    assert (trust["Effect"], jobs["Effect"]) == ("Allow", "Deny")
    assert "Condition" not in trust
    assert all(source.endswith("/*") for source in jobs["Condition"]["ArnLike"]["aws:SourceArn"])


def test_nodes_can_read_a_script_that_is_encrypted_with_a_key_of_the_account():
    key = "arn:aws:kms:us-west-2:123456789012:key/11111111-2222-3333-4444-555555555555"
    data = yaml.safe_load((STACKS / "handson.yaml").read_text(encoding="utf-8"))
    data["environments"]["dev"]["storage"] = {"kmsKeyArn": key}
    program = recorded_from(data)
    (rule,) = program.one(":BucketServerSideEncryptionConfiguration").inputs["rules"]
    assert rule["applyServerSideEncryptionByDefault"]["kmsMasterKeyId"] == key
    rights = json.loads(program.one("iam/rolePolicy:RolePolicy", "nodes").inputs["policy"])["Statement"]
    assert [each["Resource"] for each in rights if "kms:Decrypt" in each["Action"]] == [[key]]


def test_metrics_are_written_to_an_endpoint_without_a_slash_at_its_end():
    program = recorded("enterprise-prod")
    assert program.one("amp/workspace:Workspace").made["prometheusEndpoint"].endswith("/"), "as AMP says it"
    addon = program.one("eks/addon:Addon", "amazon-sagemaker-hyperpod-observability")
    assert not json.loads(addon.inputs["configurationValues"])["ampWorkspace"]["prometheusEndpoint"].endswith("/")


def with_private_endpoint(**endpoint):
    data = yaml.safe_load((STACKS / "handson.yaml").read_text(encoding="utf-8"))
    data["environments"]["dev"]["eks"]["endpoint"] = endpoint
    return recorded_from(data)


def test_nothing_lets_connected_networks_in_unless_it_is_asked_for(program):
    assert not [name for _, name in program.names if name.startswith("kubernetes-api")]


def test_connected_networks_reach_the_control_plane_on_one_port():
    program = with_private_endpoint(privateFrom=["10.20.0.0/16", "10.30.0.0/16"])
    group = program.named("ec2/securityGroup:SecurityGroup")["kubernetes-api"]
    rules = [
        rule
        for rule in program.all("vpc/securityGroupIngressRule:SecurityGroupIngressRule")
        if rule.name.startswith("kubernetes-api-from-")
    ]
    assert {each.inputs["cidrIpv4"] for each in rules} == {"10.20.0.0/16", "10.30.0.0/16"}
    assert {(each.inputs["ipProtocol"], each.inputs["fromPort"], each.inputs["toPort"]) for each in rules} == {
        ("tcp", 443, 443)
    }
    config = program.one("eks/cluster:Cluster").inputs["vpcConfig"]
    assert (config["endpointPublicAccess"], config["endpointPrivateAccess"]) == (False, True)
    assert len(config["securityGroupIds"]) == 2
    assert program.waits(program.one("eks/cluster:Cluster"), group)


def test_what_goes_through_the_kubernetes_api_outlives_no_way_to_it():
    program = with_private_endpoint(privateFrom=["10.20.0.0/16"])
    (way,) = [
        rule
        for rule in program.all("vpc/securityGroupIngressRule:SecurityGroupIngressRule")
        if rule.name.startswith("kubernetes-api-from-")
    ]
    assert program.waits(program.one("pulumi:providers:kubernetes"), way)


def test_the_control_plane_knows_every_range_of_its_vpc_from_the_beginning():
    data = yaml.safe_load((STACKS / "handson.yaml").read_text(encoding="utf-8"))
    data["environments"]["dev"]["network"]["zones"][1]["nodeCidr"] = "10.2.0.0/16"
    program = recorded_from(data)
    (added,) = program.all("ec2/vpcIpv4CidrBlockAssociation:VpcIpv4CidrBlockAssociation")
    assert program.waits(program.one("eks/cluster:Cluster"), added)


def test_nodes_that_the_examples_begin_with_are_in_the_first_range_of_their_vpc(program):
    begun = {zone for group in program.plan.groups if group.spec.instance_count for zone in group.zones}
    inside = {zone.availability_zone for zone in program.plan.network.zones if zone.inside_vpc}
    assert begun <= inside


def test_a_log_group_that_eks_wrote_of_a_cluster_that_is_gone_is_taken_over():
    plan = derive(typed(organization()), "dev")
    name = f"/aws/eks/{plan.stack}/cluster"
    resource_type = "cloudwatch/logGroup:LogGroup"
    assert record(plan).one(resource_type).import_id == ""
    assert record(plan, Answers(log_groups=[name])).one(resource_type).import_id == name
    assert record(plan, Answers(log_groups=[f"{name}-2"])).one(resource_type).import_id == "", (
        "the look-up is by prefix"
    )
