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


@pytest.fixture
def changed(recording, tmp_path, monkeypatch):
    """Return a function that changes one call of the recording, and returns the lines that name differences."""
    monkeypatch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "false")

    def change(operation, edit):
        service, operation = operation.split(".")
        lines = recording.read_text(encoding="utf-8").splitlines()
        names = [(call.get("service"), call.get("operation")) for call in map(json.loads, lines)]
        numbers = [number for number, name in enumerate(names) if name == (service, operation)]
        call = json.loads(lines[numbers[0]])
        edited = edit(call)
        lines[numbers[0] : numbers[0] + 1] = [] if edited is None else [json.dumps(edited)]
        file = tmp_path / "changed.jsonl"
        file.write_text("\n".join(lines), encoding="utf-8")
        return call["call"], [str(each) for each in replay(file).differences]

    return change


def test_a_recording_of_the_endpoint_has_the_same_answers(recording, monkeypatch, capsys):
    monkeypatch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "false")
    code = main([str(recording)])
    calls = len(recording.read_text(encoding="utf-8").splitlines()) - 1
    assert (capsys.readouterr().out, code) == (f"{calls} calls, {calls} with the same answer\n", 0)
    assert calls > 20


def test_a_changed_status_is_the_only_difference(changed):
    def fail(call):
        call["answer"]["cluster"]["status"] = "FAILED"
        return call

    number, lines = changed("eks.DescribeCluster", fail)
    assert lines == [f'call {number} eks.DescribeCluster: cluster.status: recorded "FAILED", local "ACTIVE"']


def test_a_changed_error_code_is_the_only_difference(changed):
    number, lines = changed("sagemaker.DeleteCluster", lambda call: {**call, "error": "ResourceInUse"})
    assert lines == [
        f'call {number} sagemaker.DeleteCluster: error: recorded "ResourceInUse", local "ConflictException"'
    ]


def test_a_call_that_was_removed_is_named(changed):
    number, lines = changed("ec2.DescribeSubnets", lambda _: None)
    assert lines == [f"call {number} isn't in the recording"]


def test_a_file_that_is_no_recording_is_an_error(tmp_path, capsys):
    file = tmp_path / "calls.jsonl"
    for content, message in (('{"format": 1, "begin": 3}', "isn't a recording"), ("{}\n{", "isn't a recording")):
        file.write_text(content, encoding="utf-8")
        assert main([str(file)]) == 2
        assert message in capsys.readouterr().err
