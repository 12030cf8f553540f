"""`hpkit aws preflight` for accounts on the local endpoint: from an empty one to one with many problems."""

import json

import pytest
from click.testing import CliRunner

from hpkit.cli.account.preflight import command
from tests.builders import group, organization, team, text_of, without_account
from tests.cli.test_validate import ROOT
from tests.documents import document
from tests.endpoint import running_endpoint
from tests.local.aws.conftest import GOVERNANCE, new_cloud

ADMIN = "arn:aws:iam::123456789012:role/Admin"
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}, "Action": "sts:AssumeRole"}
        ],
    }
)


@pytest.fixture
def cloud(account):
    return new_cloud((account, account.client))


@pytest.fixture
def project(project, monkeypatch):
    monkeypatch.chdir(project)
    return project


def run(*arguments):
    result = CliRunner().invoke(command, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def checked(project, *, is_reached=True, **changes):
    """Check an organization that differs from the minimal one by `changes` of its environment."""
    top = changes.pop("top", None)
    (project / "stacks" / "acme.yaml").write_bytes(text_of(organization(environment=changes, top=top)))
    result = run("--stack", "acme-dev", "--format", "json")
    report = document(result.stdout)
    rows = {row["what"]: row for row in report["checks"]}
    assert len(rows) == len(report["checks"]), "a name that stands twice names nothing"
    counted = [row["status"] for row in report["checks"]]
    assert report["summary"] == {status: counted.count(status) for status in ("ok", "missing", "changed", "unknown")}
    assert result.exit_code == (1 if report["summary"]["missing"] else 0 if is_reached else 3)
    return rows


def missing(rows):
    """Return what is missing, except quotas (tests/preflight/test_quotas.py) and access to the API (test_reach.py)."""
    beside = {what for what, row in rows.items() if row["status"] == "missing" and row["area"] != "quotas"}
    return beside - {"Kubernetes API reachable from here"}


def existing(cloud, **changes):
    zones = dict(zip(("us-west-2a", "us-west-2b"), cloud.subnets, strict=True))
    return {"existing": {"vpcId": cloud.vpc, "subnets": zones, "securityGroupIds": [cloud.sg], **changes}}


def make_cluster(cloud, name, **more):
    return cloud.sm.create_cluster(**cloud.request(ClusterName=name, **more))["ClusterArn"]


def on_eks(cloud, name="kube", **network):
    return {"network": existing(cloud, **network), "eks": {"version": "1.35", "existing": {"name": name}}}


def test_a_fresh_account_lacks_the_roles_that_the_file_names(account, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = run("--stack", "handson-dev")
    assert result.exit_code == 1
    assert f"missing role {ADMIN}" in result.stdout
    assert result.stdout.count("Create it, or use another role") == 1, "what three roles share is said once"
    assert "checking us-west-2:" in result.stderr
    (line,) = [each for each in result.stdout.splitlines() if f" role {ADMIN} " in each and "administrator" in each]
    assert line.startswith("missing"), "off a terminal, a check is one line"
    iam = account.client("iam")
    for name in ("Admin", "john-scientists", "smith-scientists"):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)
    result = run("--stack", "handson-dev")
    assert "missing role" not in result.stdout


def test_a_plain_file_lacks_nothing_in_a_fresh_account_and_nothing_is_written_there(account, project, monkeypatch):
    rows = checked(project)
    assert not missing(rows)
    role = rows["AWSServiceRoleForSageMakerHyperPod"]
    assert role["status"] == "unknown"
    assert "iam:CreateServiceLinkedRole" in role["fix"]
    assert role["why"].startswith("The local cloud doesn't create it. On AWS: the service creates it")
    assert "with credentials for an AWS account" in rows["VPCs per Region"]["fix"], "it never answers here"
    assert rows["identity"]["found"].endswith("in account 123456789012")
    assert rows["permissions of the identity"]["found"] == "neither administrator nor member"
    assert rows["permissions of the identity"]["status"] == "ok", "who creates the EKS cluster administers it"
    row = rows["Kubernetes API reachable from here"]
    assert (row["status"], row["found"]) == ("ok", "52.10.20.10"), "callers of the local cloud are inside"
    asked = [name.split(".") for name in account.stats()["calls"]]
    calls = {operation for service, operation in asked if service in ("ec2", "eks", "iam", "sagemaker", "sts")}
    assert {"DescribeAvailabilityZones", "GetCallerIdentity", "ListClusters"} <= calls
    assert not [name for name in calls if not name.startswith(("Describe", "Get", "List"))]
    with running_endpoint(caller_address="198.51.100.7") as elsewhere:
        monkeypatch.setenv("AWS_ENDPOINT_URL", elsewhere.url)
        row = checked(project)["Kubernetes API reachable from here"]
    assert row["status"] == "missing"
    assert "Add 198.51.100.7/32 to `eks.endpoint.publicCidrs`" in row["fix"]


def network(*zones):
    ranges = [{"availabilityZone": zone, "nodeCidr": f"10.{n}.0.0/16"} for n, zone in enumerate(zones, start=1)]
    return {"vpcCidr": "10.192.0.0/16", "zones": ranges}


def test_what_region_eks_and_iam_do_not_have_is_missing(account, project):
    account.client("iam").create_role(RoleName="Admin", Path="/platform/", AssumeRolePolicyDocument=TRUST)
    groups = [
        group("gpu", "ml.g5.12xlarge", 1, availabilityZone="us-west-2d"),
        group("next", "ml.p6e-gb200.36xlarge", 1),
    ]
    rows = checked(
        project,
        network=network("us-west-2a", "us-west-2d", "us-west-2z"),
        cluster={"name": "acme", "instanceGroups": groups},
        addons={GOVERNANCE: "v9.9.9-eksbuild.1", "no-such-addon": "v1.0.0-eksbuild.1"},
        eks={"version": "1.35", "administrators": [ADMIN]},
    )
    offered = "EC2 offers the type of gpu"
    assert missing(rows) == {
        "zone us-west-2z", offered, f"add-on {GOVERNANCE}", "add-on no-such-addon", f"role {ADMIN}"
    }  # fmt: skip
    assert "us-west-2a, us-west-2b" in rows["zone us-west-2z"]["fix"]
    assert rows[offered]["needed"] == "ml.g5.12xlarge in us-west-2d"
    assert rows[offered]["found"] == "ml.g5.12xlarge in us-west-2a, us-west-2b, us-west-2c"
    assert "HyperPod may have capacity in zones" in rows[offered]["fix"]
    nowhere = rows["EC2 offers the type of next"]
    assert (nowhere["status"], nowhere["found"]) == ("unknown", "nowhere in us-west-2"), "EC2 lists not all types"
    assert "v1.6.0-eksbuild.1" in rows[f"add-on {GOVERNANCE}"]["fix"]
    assert "role/platform/Admin" in rows[f"role {ADMIN}"]["fix"]


def test_a_region_without_hyperpod_and_governance(account, project):
    groups = [group("gpu", "ml.g5.12xlarge", 1, availabilityZone="eu-west-3a")]
    cluster = {"name": "acme", "instanceGroups": groups}
    rows = checked(project, region="eu-west-3", network=network("eu-west-3a"), cluster=cluster)
    assert {"HyperPod on EKS in the region", "task governance in the region"} <= missing(rows)


def test_roles_of_another_account_cannot_be_looked_up(account, project):
    stranger = "arn:aws:iam::999999999999:role/scientist"
    (project / "stacks" / "acme.yaml").write_bytes(
        without_account(
            text_of(
                organization(
                    teams=[team("nlp", members=[stranger])],
                    allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 4}]},
                )
            ).decode()
        ).encode()
    )
    report = document(run("--stack", "acme-dev", "--format", "json").stdout)
    row = next(row for row in report["checks"] if row["what"] == f"role {stranger}")
    assert row["status"] == "unknown"
    assert "account 999999999999, but the credentials are for 123456789012" in row["why"]


def test_an_existing_subnet_that_is_too_small(cloud, project):
    groups = [group("gpu", "ml.p5.48xlarge", 4)]
    rows = checked(project, network=existing(cloud), cluster={"name": "acme", "instanceGroups": groups})
    row = rows[f"subnet {cloud.subnets[0]}"]
    assert row["status"] == "missing"
    assert row["needed"] == "324 addresses free in us-west-2a"
    other = rows[f"subnet {cloud.subnets[1]}"]
    assert (other["status"], other["found"].endswith(" free")) == ("ok", True)


def test_an_adopted_platform_needs_nothing_that_it_has(cloud, project):
    make_cluster(cloud, "acme")
    cloud.eks.create_addon(clusterName="kube", addonName="kube-proxy")
    version = cloud.eks.describe_addon(clusterName="kube", addonName="kube-proxy")["addon"]["addonVersion"]
    cluster = {"name": "acme", "instanceGroups": [group("gpu", "ml.g5.12xlarge", 2)]}
    rows = checked(project, manageTags=False, addons={"kube-proxy": version}, cluster=cluster, **on_eks(cloud))
    assert not missing(rows)
    assert rows["ml.g5.12xlarge for cluster usage"]["needed"] == "2, already in use"
    assert rows["Network interfaces per Region"]["needed"] == "2, already in use"
    for what in ("name acme for the HyperPod cluster", "add-on kube-proxy to be installed on kube"):
        assert rows[what]["status"] == "unknown"
        assert "manageTags: false" in rows[what]["why"]
        assert "hpkit aws adopt run --stack acme-dev" in rows[what]["fix"]
    tagging = checked(project, addons={"kube-proxy": version}, cluster=cluster, **on_eks(cloud))
    assert "name acme for the HyperPod cluster" in missing(tagging), "a stack with tags would find them there"


def test_an_existing_network_that_is_not_as_the_file_says(cloud, project):
    swapped = {"us-west-2a": cloud.subnets[1], "us-west-2b": "subnet-0123456789abcdef0"}
    rows = checked(project, network=existing(cloud, subnets=swapped, securityGroupIds=["sg-0123456789abcdef0"]))
    assert missing(rows) == {
        f"subnet {cloud.subnets[1]}",
        "subnet subnet-0123456789abcdef0",
        "security group sg-0123456789abcdef0",
    }


def test_a_new_eks_cluster_needs_two_zones_of_an_existing_network(cloud, project):
    rows = checked(project, network=existing(cloud, subnets={"us-west-2a": cloud.subnets[0]}))
    assert missing(rows) == {"zones for the EKS control plane"}


def test_an_existing_eks_cluster_that_fits(cloud, project):
    rows = checked(project, **on_eks(cloud))
    assert not missing(rows)
    assert rows["EKS cluster kube, authentication mode"]["found"] == "API"
    kueue = rows["Kueue on the EKS cluster"]
    assert kueue["status"] == "unknown"
    assert "kubectl get crd" in kueue["fix"]
    cloud.govern()
    rows = checked(project, **on_eks(cloud))
    assert rows["Kueue on the EKS cluster"]["status"] == "ok", "the one of the add-on is no foreign one"


def test_an_existing_eks_cluster_that_does_not_fit(cloud, project):
    cloud.make_eks("old", accessConfig={"authenticationMode": "CONFIG_MAP"}, version="1.36")
    other = cloud.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    rows = checked(project, **on_eks(cloud, "old", vpcId=other))
    expected = {
        "EKS cluster old, authentication mode": "CONFIG_MAP",
        "EKS cluster old, version": "1.36",
        "EKS cluster old, VPC": cloud.vpc,
    }
    assert expected.keys() <= missing(rows)
    assert {what: rows[what]["found"] for what in expected} == expected


def test_an_add_on_that_is_installed_already_is_in_the_way_unless_it_is_the_stacks_own(cloud, project):
    cloud.eks.create_addon(clusterName="kube", addonName="vpc-cni")
    owner = {"hpkit:organization": "acme", "hpkit:environment": "dev"}
    cloud.eks.create_addon(clusterName="kube", addonName="kube-proxy", tags=owner)
    names = ("vpc-cni", "kube-proxy")
    described = {name: cloud.eks.describe_addon(clusterName="kube", addonName=name)["addon"] for name in names}
    pins = {name: addon["addonVersion"] for name, addon in described.items()}
    rows = checked(project, addons=pins, **on_eks(cloud))
    assert missing(rows) == {"add-on vpc-cni to be installed on kube"}
    assert "--preserve" in rows["add-on vpc-cni to be installed on kube"]["command"]
    assert rows["add-on kube-proxy to be installed on kube"]["found"] == "this stack's own"


def test_where_aws_answers_nothing_the_exit_code_is_one_of_its_own(account, project, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    rows = checked(project, is_reached=False)
    assert {row["area"] for row in rows.values() if row["status"] == "ok"} == {"account"}, "only what needs no call"
    assert "EndpointConnectionError" in rows["identity"]["why"]
    result = run("--stack", "acme-dev")
    assert result.exit_code == 3, "neither good nor missing: nobody knows"
    assert "checks couldn't be completed" in result.stderr
    assert "error: AWS answered none of the calls, so the account couldn't be checked" in result.stderr


def test_misuse_is_exit_2(account, project, monkeypatch):
    assert run().exit_code == 2
    (project / "stacks" / "acme.yaml").write_bytes(text_of(organization()))
    result = run("--stack", "acme-dev", "--profile", "nobody")
    assert result.exit_code == 2
    assert "nobody" in result.stderr
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    result = run("--stack", "acme-dev")
    assert result.exit_code == 2
    assert "no AWS credentials" in result.stderr
