"""Recorded calls are sent to a new endpoint: equal answers, and each change of a recording is named."""

import json

import pytest

from hpkit_local.aws.testing import running_endpoint
from hpkit_local.recording.__main__ import main
from hpkit_local.recording.replay import replay
from tests.local.aws.conftest import Cloud
from tests.local.recording.test_recording import recorded_clients


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Return the recording of a network, roles, an EKS cluster and a HyperPod cluster, and of their end."""
    file = tmp_path_factory.mktemp("recording") / "calls.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "false")
        with running_endpoint(account="987654321098") as endpoint:
            variables = {
                "AWS_ENDPOINT_URL": endpoint.url,
                "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
                "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
            }
            with recorded_clients(file, variables) as client:
                cloud = Cloud(endpoint, client=client)
                arn = cloud.govern()
                quota = cloud.quota(arn)
                cloud.nodes()
                cloud.describe()
                cloud.eks.describe_cluster(name="kube")
                with pytest.raises(cloud.ec2.exceptions.ClientError, match="DependencyViolation"):
                    cloud.ec2.delete_vpc(VpcId=cloud.vpc)
                cloud.ec2.describe_subnets()
                cloud.iam.get_role(RoleName="node")
                with pytest.raises(cloud.sm.exceptions.ConflictException):
                    cloud.sm.delete_cluster(ClusterName="train")
                cloud.sm.delete_compute_quota(ComputeQuotaId=quota)
                cloud.sm.delete_cluster(ClusterName="train")
                with pytest.raises(cloud.sm.exceptions.ClientError):
                    cloud.describe()
    return file


def test_a_recording_of_the_endpoint_has_the_same_answers(recording, monkeypatch, capsys):
    monkeypatch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "false")
    code = main([str(recording)])
    calls = len(recording.read_text(encoding="utf-8").splitlines()) - 1
    assert (capsys.readouterr().out, code) == (f"{calls} calls, {calls} with the same answer\n", 0)
    assert calls > 20


def test_exactly_what_was_changed_in_a_recording_is_named(recording, tmp_path, monkeypatch):
    """Change a status and an error code, and remove a call."""
    monkeypatch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "false")
    header, *calls = map(json.loads, recording.read_text(encoding="utf-8").splitlines())
    first = {f"{call['service']}.{call['operation']}": call for call in reversed(calls)}
    status, error, removed = (
        first[name] for name in ("eks.DescribeCluster", "sagemaker.DeleteCluster", "ec2.DescribeSubnets")
    )
    status["answer"]["cluster"]["status"] = "FAILED"
    error["error"] = "ResourceInUse"
    calls.remove(removed)
    file = tmp_path / "changed.jsonl"
    file.write_text("\n".join(map(json.dumps, (header, *calls))), encoding="utf-8")
    assert [str(difference) for difference in replay(file).differences] == [
        f'call {status["call"]} eks.DescribeCluster: cluster.status: recorded "FAILED", local "ACTIVE"',
        f"call {removed['call']} isn't in the recording",
        f'call {error["call"]} sagemaker.DeleteCluster: error: recorded "ResourceInUse", local "ConflictException"',
    ]


def test_a_file_that_is_no_recording_is_an_error(tmp_path, capsys):
    file = tmp_path / "calls.jsonl"
    for content, message in (('{"format": 1, "begin": 3}', "isn't a recording"), ("{}\n{", "isn't a recording")):
        file.write_text(content, encoding="utf-8")
        assert main([str(file)]) == 2
        assert message in capsys.readouterr().err
