"""State survives kill -9, and time passes while the endpoint is down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hpkit_local.aws.backend import StateFile
from tests.endpoint import client

MANAGED = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"


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
    file.write({"own": b"{}"}, {})
    assert {oct(each.stat().st_mode & 0o777) for each in tmp_path.iterdir()} == {oct(0o600)}
    file.close()
