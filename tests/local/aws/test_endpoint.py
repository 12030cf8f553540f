"""The endpoint as a whole: pages, regions, parallel endpoints, and faults."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hpkit_local.aws.api import BackendView
from hpkit_local.aws.backend import StateFile
from hpkit_local.aws.services.eks.view import caller_of
from tests.endpoint import RunningEndpoint, client, running_endpoint
from tests.local.aws.conftest import Cloud

MANAGED = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
PROD, DEV = "210987654321", "123456789012"


def test_lists_come_in_pages(cloud: Any, refused: Callable[..., str]) -> None:
    arn = cloud.govern()
    for team in ("a", "b", "c"):
        cloud.quota(arn, team)
    pages = list(
        cloud.sm.get_paginator("list_compute_quotas").paginate(SortBy="Name", PaginationConfig={"PageSize": 2})
    )
    assert [[entry["Name"] for entry in page["ComputeQuotaSummaries"]] for page in pages] == [
        ["quota-a", "quota-b"],
        ["quota-c"],
    ]
    first = cloud.sm.list_compute_quotas(MaxResults=1, SortBy="Name", SortOrder="Descending")
    assert first["ComputeQuotaSummaries"][0]["Name"] == "quota-c"
    assert cloud.sm.list_compute_quotas(NameContains="a-b")["ComputeQuotaSummaries"][0]["Name"] == "quota-b"
    text = refused("ValidationException", cloud.sm.list_compute_quotas, NextToken="nonsense")
    assert text == "Invalid pagination token: nonsense"
    refused("ValidationException", cloud.sm.list_compute_quotas, MaxResults=101)


def test_nodes_and_events_come_in_pages(cloud: Any) -> None:
    cloud.make_cluster(InstanceGroups=[cloud.group(count=25)])
    assert len(cloud.nodes()) == 25
    first = cloud.sm.list_cluster_nodes(ClusterName="train", MaxResults=10)
    assert (len(first["ClusterNodeSummaries"]), "NextToken" in first) == (10, True)
    events = cloud.sm.get_paginator("list_cluster_events").paginate(
        ClusterName="train", PaginationConfig={"PageSize": 7}
    )
    assert sum(len(page["Events"]) for page in events) >= 27


def test_regions_are_apart(cloud: Any, refused: Callable[..., str]) -> None:
    cloud.make_cluster()
    elsewhere = cloud.endpoint.client("sagemaker", "eu-west-1")
    refused("ResourceNotFound", elsewhere.describe_cluster, ClusterName="train")


def _http(url: str, method: str, body: object = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode() if not isinstance(body, bytes) else body
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 - our own loopback URL
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310 - our own loopback URL
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_throttling_is_answered_in_the_words_of_each_protocol(refused: Callable[..., str]) -> None:
    with running_endpoint(faults=["throttle=1"]) as endpoint:
        refused("ThrottlingException", endpoint.client("sagemaker").list_clusters)
        refused("ThrottlingException", endpoint.client("eks").list_clusters)
        refused("RequestLimitExceeded", endpoint.client("ec2").describe_vpcs)
        refused("Throttling", endpoint.client("iam").list_roles)
        refused("SlowDown", endpoint.client("s3").list_buckets)
        endpoint.set_faults(throttle=None)
        assert endpoint.client("sagemaker").list_clusters()["ClusterSummaries"] == []


def test_faults_are_set_shown_and_taken_away_over_http() -> None:
    with running_endpoint() as endpoint:
        url = endpoint.url + "/_hpkit/faults"
        assert _http(url, "GET") == (200, {})
        assert _http(url, "POST", {"throttle": 0.25, "conflict": "1@Update*"}) == (
            200,
            {"conflict": "1@Update*", "throttle": "0.25@*"},
        )
        assert _http(url, "POST", {"throttle": None}) == (200, {"conflict": "1@Update*"})
        status, answer = _http(url, "POST", {"conflict": None, "throttle": 7})
        assert (status, answer["error"]) == (
            400,
            "fault throttle: 7 must be between 0 and 1 (probability that a call fails with ThrottlingException)",
        )
        assert _http(url, "GET") == (200, {"conflict": "1@Update*"}), "a rejected change must change nothing"
        assert _http(url, "POST", b"{")[0] == 400
        assert _http(url, "POST", [1])[0] == 400
        assert _http(url, "DELETE") == (200, {})


def _to_resolvable_host(request: Any, **_: Any) -> None:
    """Remove the account in front of the host: not every resolver knows names below `localhost`."""
    request.url = request.url.replace("123456789012.", "")


def test_tags_of_a_bucket_are_those_of_its_creation_and_change_by_s3_control() -> None:
    arn = "arn:aws:s3:::tagged-bucket"
    with running_endpoint() as endpoint:
        s3 = endpoint.client("s3")
        location: Any = {"LocationConstraint": "us-west-2", "Tags": [{"Key": "team", "Value": "ada"}]}
        s3.create_bucket(Bucket="tagged-bucket", CreateBucketConfiguration=location)
        control = endpoint.client("s3control")
        control.meta.events.register("before-send.s3-control", _to_resolvable_host)
        account: Any = {"AccountId": "123456789012", "ResourceArn": arn}
        assert control.list_tags_for_resource(**account)["Tags"] == location["Tags"]
        control.tag_resource(**account, Tags=[{"Key": "stage", "Value": "dev"}])
        control.untag_resource(**account, TagKeys=["team"])
        assert s3.get_bucket_tagging(Bucket="tagged-bucket")["TagSet"] == [{"Key": "stage", "Value": "dev"}]


@contextmanager
def _process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "hpkit_local.aws", *arguments]
    env = {name: value for name, value in os.environ.items() if not name.startswith("MOTO_")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.stderr.read() if process.stderr else ""
            ready = json.loads(line)
            assert ready["pid"] == process.pid
            yield process, ready["endpoint"]
        finally:
            if process.poll() is None:
                process.kill()


def _client(url: str, service: str) -> Any:
    return client(url, service)


def test_everything_survives_kill_9(tmp_path: Path) -> None:
    state = str(tmp_path / "state.db")
    with _process("--state-file", state, "--latency-factor", "0") as (process, url):
        ec2, s3, kms, logs, iam, eks = (_client(url, name) for name in ("ec2", "s3", "kms", "logs", "iam", "eks"))
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{i}.0/24", AvailabilityZone=f"us-west-2{zone}")["Subnet"][
                "SubnetId"
            ]
            for i, zone in enumerate("ab")
        ]
        s3.create_bucket(Bucket="scripts", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        s3.put_object(Bucket="scripts", Key="on_create.sh", Body=b"exit 0")
        symmetric = kms.create_key()["KeyMetadata"]["KeyId"]
        secret = kms.encrypt(KeyId=symmetric, Plaintext=b"hello")["CiphertextBlob"]
        signing = kms.create_key(KeyUsage="SIGN_VERIFY", KeySpec="RSA_2048")["KeyMetadata"]["KeyId"]
        public = kms.get_public_key(KeyId=signing)["PublicKey"]
        curve = kms.create_key(KeyUsage="SIGN_VERIFY", KeySpec="ECC_NIST_P256")["KeyMetadata"]["KeyId"]
        logs.create_log_group(logGroupName="/aws/eks/kube")
        trust = {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        role = iam.create_role(RoleName="eks", AssumeRolePolicyDocument=policy)["Role"]["Arn"]
        iam.attach_role_policy(RoleName="eks", PolicyArn=MANAGED)
        made = eks.create_cluster(name="kube", roleArn=role, resourcesVpcConfig={"subnetIds": subnets})["cluster"]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with _process("--state-file", state, "--latency-factor", "0") as (process, url):
        ec2, s3, kms, logs, iam, eks = (_client(url, name) for name in ("ec2", "s3", "kms", "logs", "iam", "eks"))
        assert {entry["SubnetId"] for entry in ec2.describe_subnets(SubnetIds=subnets)["Subnets"]} == set(subnets)
        assert s3.get_object(Bucket="scripts", Key="on_create.sh")["Body"].read() == b"exit 0"
        assert kms.decrypt(CiphertextBlob=secret)["Plaintext"] == b"hello"
        assert kms.get_public_key(KeyId=signing)["PublicKey"] == public
        assert kms.sign(KeyId=curve, Message=b"m", SigningAlgorithm="ECDSA_SHA_256")["Signature"]
        assert [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]] == ["/aws/eks/kube"]
        assert iam.get_role(RoleName="eks")["Role"]["Arn"] == role
        attached = iam.list_attached_role_policies(RoleName="eks")["AttachedPolicies"]
        assert [policy["PolicyArn"] for policy in attached] == [MANAGED]
        iam.detach_role_policy(RoleName="eks", PolicyArn=MANAGED)
        iam.attach_role_policy(RoleName="eks", PolicyArn=MANAGED.replace("Cluster", "Service"))
        found = eks.describe_cluster(name="kube")["cluster"]
        assert (found["arn"], found["createdAt"], found["status"]) == (made["arn"], made["createdAt"], "ACTIVE")
        group = found["resourcesVpcConfig"]["clusterSecurityGroupId"]
        assert ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["VpcId"] == vpc
        # The restored state works: it can be extended and deleted.
        ec2.create_security_group(GroupName="new", Description="new", VpcId=vpc)
        eks.delete_cluster(name="kube")
        ec2.delete_subnet(SubnetId=subnets[0])
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(timeout=300) == 0


@pytest.mark.parametrize("mode", [None, 0o666], ids=["new", "of before"])
def test_nobody_else_reads_or_writes_a_state_file_which_can_carry_code(tmp_path: Path, mode: int | None) -> None:
    path = tmp_path / "state.db"
    if mode is not None:
        path.touch()
        path.chmod(mode)
    file = StateFile(path)
    file.write({"own": b"{}"})
    assert {oct(each.stat().st_mode & 0o777) for each in tmp_path.iterdir()} == {oct(0o600)}
    file.close()


def identities(endpoint: RunningEndpoint) -> dict[str, str]:
    """Create something in each service; return the account that each service's response contains."""
    cloud = Cloud(endpoint)
    sts = endpoint.client("sts")
    session = sts.assume_role(RoleArn=cloud.role("deploy", "eks.amazonaws.com"), RoleSessionName="deploy")
    listed: dict[str, Any] = {
        "sts": sts.get_caller_identity()["Arn"],
        "session": session["AssumedRoleUser"]["Arn"],
        "iam": cloud.node_role,
        "eks": cloud.eks_arn,
        "sns": endpoint.client("sns").create_topic(Name="topic")["TopicArn"],
        "kms": endpoint.client("kms").create_key()["KeyMetadata"]["Arn"],
        "ecr": endpoint.client("ecr").create_repository(repositoryName="images")["repository"]["repositoryArn"],
    }
    owner = cloud.ec2.describe_vpcs(VpcIds=[cloud.vpc])["Vpcs"][0]["OwnerId"]
    return {**{service: arn.split(":")[4] for service, arn in listed.items()}, "ec2": owner}


def test_every_service_answers_as_the_account_of_the_endpoint() -> None:
    with running_endpoint(account=PROD) as prod, running_endpoint() as dev:
        assert set(identities(prod).values()) == {PROD}
        assert set(identities(dev).values()) == {DEV}, "the account without an option"


def test_callers_of_another_account_see_nothing_and_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "aws.json"
    with running_endpoint(account=PROD, state_file=file) as endpoint:
        role = Cloud(endpoint).node_role
    with running_endpoint(account=PROD, caller_account=DEV, state_file=file) as endpoint:
        assert endpoint.client("sts").get_caller_identity()["Account"] == DEV
        assert endpoint.client("iam").list_roles()["Roles"] == []
        with pytest.raises(ClientError, match=f"the caller is of account {DEV}, .* belongs to account {PROD}"):
            endpoint.client("eks").list_clusters()
        caller = caller_of(BackendView(endpoint._endpoint.backend), "local", cluster="kube")
        assert (caller.account, caller.entry) == (DEV, None)
    with running_endpoint(account=PROD, state_file=file) as endpoint:
        assert endpoint.client("iam").get_role(RoleName="node")["Role"]["Arn"] == role
        assert endpoint.client("eks").list_clusters()["clusters"] == ["kube"]


def test_the_clients_of_the_local_cloud_have_the_role_that_it_is_started_with(tmp_path: Path) -> None:
    def caller(endpoint: RunningEndpoint) -> tuple[str, str]:
        view = BackendView(endpoint._endpoint.backend)
        found = caller_of(view, "local", cluster="kube")
        return found.arn, found.principal

    file, role = tmp_path / "aws.json", f"arn:aws:iam::{PROD}:role/ci/deployer"
    with running_endpoint(account=PROD, caller_role=role, state_file=file) as endpoint:
        session = f"arn:aws:sts::{PROD}:assumed-role/deployer/hpkit"
        assert caller(endpoint) == (session, role)
        assert endpoint.client("sts").get_caller_identity()["Arn"] == session
        assumed = endpoint.client("sts").assume_role(RoleArn=role.replace("deployer", "other"), RoleSessionName="own")
        key = assumed["Credentials"]["AccessKeyId"]
        view = BackendView(endpoint._endpoint.backend)
        assert caller_of(view, key, cluster="kube").arn == f"arn:aws:sts::{PROD}:assumed-role/other/own"
    with running_endpoint(account=PROD, state_file=file) as endpoint:
        assert caller(endpoint)[0] == f"arn:aws:sts::{PROD}:user/moto"
