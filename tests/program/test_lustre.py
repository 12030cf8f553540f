"""The objects of an FSx for Lustre file system, and of the nodes' local disks, in the cluster."""

import copy
import json
import os
import stat
import subprocess

import pytest

from hpkit.changes import change
from hpkit.config.models.governance import UserIds
from hpkit.plan.user_ids import user_ids_of
from hpkit.program.iam.deployer import actions_of, calling_types
from hpkit_provider.engine.errors import RejectedError
from hpkit_provider.engine.values import UNKNOWN
from hpkit_provider.resources.change_guard import ChangeGuardHandler
from hpkit_provider.server import HyperpodServicer
from tests.builders import findings, organization, split, team
from tests.cluster.jobs.builders import new_job
from tests.program.recorder import recorded_from


def program(**lustre):
    rows = [{"instanceType": "ml.g5.12xlarge", "count": 1}]
    wanted = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 2400, **lustre}
    return recorded_from(
        organization(
            teams=[team("nlp"), team("vision")],
            environment={
                "governance": {
                    "allocations": {"nlp": rows, "vision": rows},
                    "sharedPool": {"name": "shared", "fairShareWeight": 0},
                },
                "storage": {"lustre": wanted},
            },
        )
    )


def test_pods_of_a_team_get_a_role_for_its_buckets_before_its_first_job_starts():
    found = recorded_from(
        organization(
            teams=[team("nlp"), team("vision")],
            environment={
                "governance": {"allocations": {"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}},
                "storage": {"teamBuckets": {"nlp": [{"bucket": "acme-data", "prefix": "nlp/"}]}},
            },
        )
    )
    association = found.one("eks/podIdentityAssociation:PodIdentityAssociation", "buckets-nlp")
    assert (association.inputs["namespace"], association.inputs["serviceAccount"]) == ("hyperpod-ns-nlp", "default")
    policy = found.one("iam/rolePolicy:RolePolicy", "buckets-nlp")
    assert "arn:aws:s3:::acme-data/nlp/*" in policy.inputs["policy"]
    assert found.waits(association, policy)
    assert found.waits(found.one("ComputeQuota", "nlp"), association)


def test_a_folder_follows_a_bucket_after_the_teams_have_their_folders():
    found = program(teams=True, dataRepositories=[{"path": "/teams/nlp/data", "bucket": "acme-data"}])
    link = found.one("fsx/dataRepositoryAssociation:DataRepositoryAssociation", "teams/nlp/data")
    assert link.inputs["s3"] == {"autoImportPolicy": {"events": ["NEW", "CHANGED", "DELETED"]}}
    assert found.waits(link, found.one("batch/v1:Job", "directory-nlp"))


@pytest.fixture(scope="module")
def shared():
    return program(teams=True)


def test_each_team_but_the_shared_pool_has_a_volume_and_a_claim_of_its_own(shared):
    volumes = shared.named("core/v1:PersistentVolume")
    claims = shared.named("core/v1:PersistentVolumeClaim")
    assert set(volumes) == set(claims) == {"nlp", "vision", "root"}
    for name in ("nlp", "vision"):
        claim = claims[name]
        spec, given = claim.inputs["spec"], volumes[name].inputs["spec"]
        assert claim.inputs["metadata"] == {"name": "fsx-claim", "namespace": f"hyperpod-ns-{name}"}
        assert spec["volumeName"] == volumes[name].inputs["metadata"]["name"] == f"fsx-hyperpod-ns-{name}"
        assert given["claimRef"]["namespace"] == f"hyperpod-ns-{name}", "no other team's claim can take it"
        assert spec["storageClassName"] == given["storageClassName"] == "fsx-sc"
        assert spec["accessModes"] == given["accessModes"] == ["ReadWriteMany"]
        assert given["capacity"] == {"storage": "2400Gi"}
        assert spec["resources"]["requests"] == {"storage": "1200Gi"}, "it stays, so that the file system can grow"


def test_a_volume_is_the_stacks_file_system_and_outlives_its_claim(shared):
    spec = shared.named("core/v1:PersistentVolume")["nlp"].inputs["spec"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert (spec["csi"]["driver"], spec["csi"]["volumeHandle"]) == ("fsx.csi.aws.com", "lustre-id/teams/nlp")
    attributes = {"dnsname": "lustre.fsx.example", "mountname": "abcdefgh/teams/nlp"}
    assert spec["csi"]["volumeAttributes"] == attributes, "no pod sees what is above the team's folder"


def test_the_whole_file_system_is_where_no_team_has_rights(shared):
    claim = shared.one("core/v1:PersistentVolumeClaim", "root").inputs
    volume = shared.one("core/v1:PersistentVolume", "root").inputs["spec"]
    assert claim["metadata"]["namespace"] == volume["claimRef"]["namespace"] == "kube-system"
    assert volume["csi"]["volumeAttributes"]["mountname"] == "abcdefgh"


def test_a_job_of_each_team_makes_its_folder_which_is_awaited_by_nobody(shared):
    jobs = shared.named("batch/v1:Job")
    assert set(jobs) == {"directory-nlp", "directory-vision"}
    job = jobs["directory-nlp"].inputs
    assert job["metadata"]["namespace"] == "kube-system"
    assert job["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"][:2] == ["sh", "-c"]
    assert "/fsx/teams/nlp" in container["command"][2]


def test_the_script_of_the_job_makes_folders_that_only_their_own_volume_reaches(shared, tmp_path):
    """Run as the test's user: `chown` and `stat` name that user in place of 65534."""
    (container,) = shared.named("batch/v1:Job")["directory-nlp"].inputs["spec"]["template"]["spec"]["containers"]
    owner = f"{os.getuid()}:{os.getgid()}"
    script = container["command"][2].replace("/fsx", str(tmp_path)).replace("65534:65534", owner)
    for _ in range(2):
        subprocess.run(["sh", "-c", script], check=True)
        modes = [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("teams", "teams/nlp")]
        assert modes == [0o700, 0o777]


@pytest.mark.parametrize(
    ("given", "squash"),
    [
        ({"teams": True}, {"rootSquash": "0:0"}),
        ({"teams": True, "rootSquash": {}}, {"rootSquash": "65534:65534", "noSquashNids": []}),
        (
            {"rootSquash": {"noSquashNids": ["10.0.1.6@tcp"]}},
            {"rootSquash": "65534:65534", "noSquashNids": ["10.0.1.6@tcp"]},
        ),
        ({}, {"rootSquash": "0:0"}),
    ],
)
def test_root_of_a_client_becomes_nobody_where_the_file_asks_for_it(given, squash):
    file_system = program(**given).one("fsx/lustreFileSystem:LustreFileSystem")
    assert file_system.inputs.get("rootSquashConfiguration") == squash
    # A refresh shows no difference, whatever AWS returns for a root squash that is off.
    assert bool(file_system.ignore_changes) is (squash == {"rootSquash": "0:0"})


def test_the_ids_of_a_team_depend_on_its_name_alone():
    assert user_ids_of("nlp", None) == range(455373000, 455374000)
    spans = [user_ids_of(f"team-{number}", None) for number in range(40)]
    assert all(own.start % 1000 == 0 and own.start >= 1_000_000 and own.stop <= 2**31 for own in spans)
    assert user_ids_of("nlp", UserIds(first=20000, count=10)) == range(20000, 20010)


def test_a_claim_waits_for_its_volume_its_namespace_and_the_driver(shared):
    claim = shared.one("core/v1:PersistentVolumeClaim", "nlp")
    volume = shared.one("core/v1:PersistentVolume", "nlp")
    assert shared.waits(claim, volume)
    quota, folder = shared.one("hyperpod:index:ComputeQuota", "nlp"), shared.one("batch/v1:Job", "directory-nlp")
    assert (claim.uses["spec"], claim.replace_on_changes) == ({volume.urn}, ("spec",)), "they are replaced together"
    assert (claim.replace_with, folder.replace_with, volume.replace_with) == ((quota.urn,), (quota.urn,), (folder.urn,))
    assert shared.waits(claim, quota)
    assert shared.waits(claim, shared.one("eks/addon:Addon", "aws-fsx-csi-driver"))


def test_at_a_preview_one_that_shrinks_ends_at_the_guard_of_its_id_and_one_that_grows_passes(shared):
    def guarded(size):
        """Call the plugin's guard as the engine does: it doesn't know the ID of a replaced resource."""
        found = change(shared, program(teams=True, storageCapacityGiB=size))
        guard = "hyperpod:index:ChangeGuard", "keep-base"
        new = copy.deepcopy(program(teams=True, storageCapacityGiB=size).one(*guard).inputs)
        for cause in (each for step in found.steps if (step.type, step.name) == guard for each in step.causes):
            if cause.because:
                whole, _, part = cause.path.partition(".")
                new[whole][part] = UNKNOWN
        old = shared.one(*guard).inputs
        return ChangeGuardHandler(HyperpodServicer().clients).diff(old, new, old)

    assert not guarded(4800).changes
    with pytest.raises(RejectedError) as refused:
        guarded(1200)
    for text in (
        "fileSystem: lustre-id is replaced",
        "(2400 GiB) with all files on it",
        "`allowReplace: [fileSystem]`",
    ):
        assert text in str(refused.value)
    assert shared.one("fsx/lustreFileSystem:LustreFileSystem").protect, "without a preview the engine rejects it"


def test_a_job_that_resumes_mounts_what_its_team_has(shared):
    plan = shared.plan
    job = new_job(plan, "nlp", "/fsx/train")
    claims = {
        (claim.inputs["metadata"]["namespace"], claim.inputs["metadata"]["name"])
        for claim in shared.all("core/v1:PersistentVolumeClaim")
    }
    *_, volume = job["spec"]["template"]["spec"]["volumes"]
    assert (job["metadata"]["namespace"], volume["persistentVolumeClaim"]["claimName"]) in claims


def test_teams_of_an_existing_cluster_have_claims_on_its_file_system_which_is_only_read():
    wanted = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}
    apart = split(organization(environment={"storage": {"lustre": wanted}}))
    shared = recorded_from(apart, environment="governance")
    assert {*shared.named("core/v1:PersistentVolumeClaim")} == {"root", *(each.name for each in shared.plan.teams)}
    assert shared.all("fsx/lustreFileSystem:LustreFileSystem") == []
    assert "aws-fsx-csi-driver" not in shared.named("eks/addon:Addon")
    asked = actions_of(shared.plan, calling_types(each.type for each in shared.resources.values()))
    assert {each for each in asked if each.startswith("fsx:")} == {"fsx:DescribeFileSystems", "fsx:ListTagsForResource"}


ROWS = [{"instanceType": "ml.g5.12xlarge", "count": 1}]
G5 = {"instanceTypes": ["ml.g5.12xlarge"]}


def file_of(**disk):
    governance = {"allocations": {"nlp": ROWS, "vision": ROWS}, "sharedPool": {"name": "shared", "fairShareWeight": 0}}
    return organization(
        teams=[team("nlp"), team("vision")],
        environment={"governance": governance, **({"storage": {"localDisk": disk}} if disk else {})},
    )


@pytest.fixture(scope="module")
def disks():
    return recorded_from(file_of(**G5))


def test_each_team_but_the_shared_pool_has_a_folder_of_its_own(disks):
    volumes, claims = (disks.named(f"core/v1:PersistentVolume{kind}") for kind in ("", "Claim"))
    assert {*volumes} == {*claims} == {"local-nlp", "local-vision"}
    for name in ("nlp", "vision"):
        volume, claim = (each[f"local-{name}"].inputs for each in (volumes, claims))
        spec, namespace = volume["spec"], f"hyperpod-ns-{name}"
        assert spec["hostPath"] == {"path": f"/opt/dlami/nvme/teams/{name}", "type": "Directory"}
        assert claim["metadata"] == {"name": "local-claim", "namespace": namespace}
        assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
        assert volume["metadata"]["name"].startswith(f"local-{namespace}-")
        reserved = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim["metadata"]}
        assert spec["claimRef"] == reserved, "no other team's claim can take it"
        assert (spec.get("storageClassName"), claim["spec"]["storageClassName"]) == (None, ""), (
            "no driver provisions it"
        )


def test_pods_with_the_claim_run_on_types_with_a_disk_and_a_change_of_these_replaces_the_volume(disks):
    volume = disks.one("core/v1:PersistentVolume", "local-nlp")
    (term,) = volume.inputs["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ml.g5.12xlarge"]}
    assert term["matchExpressions"] == [types]
    more = recorded_from(file_of(instanceTypes=["ml.g5.12xlarge", "ml.m5.4xlarge"]))
    replaced = {(step.type, step.name) for step in change(disks, more).steps if step.action == "replace"}
    kinds = ("kubernetes:core/v1:PersistentVolume", "kubernetes:core/v1:PersistentVolumeClaim")
    assert replaced == {(kind, f"local-{name}") for kind in kinds for name in ("nlp", "vision")}


def test_a_claim_waits_for_its_volume_and_its_namespace(disks):
    claim = disks.one("core/v1:PersistentVolumeClaim", "local-nlp")
    assert disks.waits(claim, disks.one("core/v1:PersistentVolume", "local-nlp"))
    assert disks.waits(claim, disks.one("hyperpod:index:ComputeQuota", "nlp"))


def test_governance_of_an_existing_cluster_has_them_too():
    data = split(file_of(**G5))
    data["environments"]["governance"]["storage"] = data["environments"]["dev"].pop("storage")
    governance = recorded_from(data, environment="governance")
    assert {*governance.named("core/v1:PersistentVolumeClaim")} == {"local-nlp", "local-vision"}


SPACES = "amazon-sagemaker-spaces"
POLICY = "AmazonSageMakerSpacesControllerPolicy"
NEEDED = ("aws-ebs-csi-driver", "cert-manager", "eks-pod-identity-agent")
KEY = "arn:aws:kms:us-west-2:123456789012:key/12345678-1234-1234-1234-123456789012"
CERTIFICATE = "arn:aws:acm:us-west-2:123456789012:certificate/12345678-1234-1234-1234-123456789012"
WEB = {"domain": "spaces.acme.com", "certificateArn": CERTIFICATE, "kmsKeyArn": KEY}
BOUNDARY = "arn:aws:iam::123456789012:policy/bounds"
MEMBER = "arn:aws:iam::123456789012:role/nlp"
ROLE = "kubernetes:rbac.authorization.k8s.io/v1:Role"


def wanted(*, workloads=("training", "spaces"), **spaces):
    data = organization(
        teams=[team("nlp", members=[MEMBER], workloads=list(workloads))],
        allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]},
        environment={"permissionsBoundary": BOUNDARY},
    )
    data["environments"]["dev"]["spaces"] = spaces
    return data


@pytest.fixture(scope="module")
def least():
    return recorded_from(wanted())


@pytest.fixture(scope="module")
def most():
    return recorded_from(wanted(remoteAccess=True, webUi=WEB))


def values_of(program):
    return json.loads(program.one("eks/addon:Addon", SPACES).inputs["configurationValues"])


def policy_of(program, name):
    return json.loads(program.one("iam/rolePolicy:RolePolicy", name).inputs["policy"])["Statement"]


def trust_of(program, name):
    (statement,) = json.loads(program.one("iam/role:Role", name).inputs["assumeRolePolicy"])["Statement"]
    return statement


def test_an_empty_section_installs_it_after_what_it_needs_and_breaks_no_rule(least):
    addon = least.one("eks/addon:Addon", SPACES)
    assert all(least.waits(addon, least.one("eks/addon:Addon", name)) for name in NEEDED)
    assert least.waits(addon, least.one("hyperpod:index:Cluster"))
    assert values_of(least) == {"jupyter-k8s": {"workspacePodWatching": {"enable": True}}}
    assert findings(wanted()) == []


def test_its_controller_has_the_role_that_aws_documents_and_others_come_when_asked_for(least):
    association = least.one("eks/podIdentityAssociation:PodIdentityAssociation", SPACES)
    assert (association.inputs["namespace"], association.inputs["serviceAccount"]) == (
        "jupyter-k8s-system",
        "jupyter-k8s-controller-manager",
    )
    attached = least.one("iam/rolePolicyAttachment:RolePolicyAttachment", f"{SPACES}-{POLICY}")
    assert attached.inputs["policyArn"] == f"arn:aws:iam::aws:policy/{POLICY}"
    assert least.waits(least.one("eks/addon:Addon", SPACES), attached)
    assert not least.named("iam/role:Role").keys() & {"space", "spaces-router"}


def test_the_web_ui_and_remote_access_are_told_key_certificate_and_role(most):
    role = most.one("iam/role:Role", "space")
    assert values_of(most)["jupyter-k8s-aws-hyperpod"] == {
        "remoteAccess": {"enabled": True, "ssmManagedNodeRole": role.made["arn"]},
        "clusterWebUI": {
            "enabled": True,
            "domain": "spaces.acme.com",
            "awsCertificateArn": CERTIFICATE,
            "alb": {"scheme": "internal"},
            "kmsEncryptionContext": {"enabled": True},
            "traefik": {"shouldInstall": True},
            "auth": {"kmsKeyId": KEY},
        },
    }


def test_a_connected_space_has_a_role_that_reads_nothing_of_the_account(most):
    role = most.one("iam/role:Role", "space")
    # The controller's policy can only pass roles whose names start like this.
    assert role.inputs["name"] == "sagemaker-space-acme-dev-us-west-2"
    assert trust_of(most, "space")["Principal"] == {"Service": "ssm.amazonaws.com"}
    assert trust_of(most, "space")["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}
    actions = {action for each in policy_of(most, "space") for action in each["Action"]}
    assert {each.partition(":")[0] for each in actions} == {"ssm", "ssmmessages"}
    assert not [each for each in actions if "Parameter" in each or "Document" in each]


def test_the_router_uses_the_one_key_for_tokens_of_its_cluster(most):
    assert [each["Resource"] for each in policy_of(most, "spaces-router")] == [[KEY], [KEY]]
    context = policy_of(most, "spaces-router")[1]["Condition"]["StringEquals"]
    assert context["kms:EncryptionContext:sagemaker:eks-cluster-arn"] == "${aws:PrincipalTag/eks-cluster-arn}"
    association = most.one("eks/podIdentityAssociation:PodIdentityAssociation", "spaces-router")
    assert association.inputs["serviceAccount"] == "jupyter-k8s-authmiddleware"
    assert most.waits(most.one("eks/addon:Addon", SPACES), association)


def test_teams_end_before_the_controller_that_ends_their_spaces(least):
    assert least.waits(least.one("hyperpod:index:ComputeQuota", "nlp"), least.one("eks/addon:Addon", SPACES))


@pytest.mark.parametrize("workloads", [("training",), ("training", "spaces")])
def test_only_teams_with_spaces_make_them_and_only_in_their_namespace(workloads):
    program = recorded_from(wanted(workloads=workloads))
    roles = {each.inputs["metadata"]["namespace"]: each.inputs["rules"] for each in program.all(ROLE)}
    kinds = {kind for rule in roles.pop("hyperpod-ns-nlp") for kind in rule["resources"]}
    assert ("workspaces" in kinds) == ("spaces" in workloads)
    assert not roles
    (shared,) = program.all("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole")
    verbs = {
        verb for rule in shared.inputs["rules"] if "workspacetemplates" in rule["resources"] for verb in rule["verbs"]
    }
    assert verbs == ({"get", "list", "watch"} if "spaces" in workloads else set())
