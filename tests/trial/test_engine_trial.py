"""Whole trials on the local cloud, each with one fault: whatever happens, nothing is left."""

import http.client
import json
import os
import signal
import subprocess
import sys
from urllib.parse import urlsplit

import psutil
import pytest

from hpkit.trial.organization import NAME
from hpkit.trial.steps import STEPS
from hpkit_local.supervisor import control
from tests.documents import document
from tests.program.cloud import Live
from tests.running import AT_ONCE, eventually, running

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(3600)]

# Runs hpkit with other time limits of steps.
LIMITED = """
import sys
from dataclasses import replace
from hpkit.cli import main
from hpkit.trial import run
limits = {limits}
run.STEPS = tuple(replace(step, seconds=limits.get(step.name, step.seconds)) for step in run.STEPS)
sys.argv[0] = "hpkit"
main()
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    with running("trial", tmp_path_factory.mktemp("cloud"), *AT_ONCE, engine=True) as instance:
        yield instance


@pytest.fixture
def cloud(instance):
    """Return the account, without faults at the end."""
    yield Cloud(instance)
    Cloud(instance).fault(**dict.fromkeys(("throttle", "denied", "expired", "capacity")))


class Cloud:
    """The account: its faults, and what it has."""

    def __init__(self, instance):
        self.live = Live(instance)
        self.variables = {**os.environ, **control.shell_environment(instance)}

    def fault(self, **faults):
        connection = http.client.HTTPConnection(urlsplit(self.variables["AWS_ENDPOINT_URL"]).netloc)
        connection.request("POST", "/_hpkit/faults", json.dumps(faults), {"Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        connection.close()

    def start(self, folder, *options, **limits):
        """Start a trial with these time limits of steps, in seconds."""
        words = ("aws", "trial", "--yes", "--format", "json")
        return subprocess.Popen(
            [sys.executable, "-c", LIMITED.format(limits=limits), *words, "--directory", str(folder), *options],
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def ended(self, trial, code=1):
        """Return the report of a trial, and what it said."""
        said, errors = trial.communicate()
        assert "Traceback" not in errors, errors
        assert trial.returncode == code, errors
        return document(said), errors

    def has_nothing(self):
        """Report whether the account has no resource with a name of the trial."""
        vpcs = self.live.client("ec2").describe_vpcs(Filters=[{"Name": "is-default", "Values": ["false"]}])["Vpcs"]
        roles = [role["RoleName"] for role in self.live.client("iam").list_roles()["Roles"] if NAME in role["RoleName"]]
        clusters = self.live.client("eks").list_clusters()["clusters"]
        return not (vpcs or roles or clusters or self.live.sm.list_clusters()["ClusterSummaries"])


def reason_of(report, step):
    return next(each["reason"] for each in report["steps"] if each["name"] == step)


def is_creating(folder, resource):
    log = folder / "logs" / "02-up.log"
    return log.exists() and resource in log.read_text()


def test_a_trial_with_throttled_calls_passes_and_differs_in_nothing_from_what_is_expected(cloud, tmp_path):
    cloud.fault(throttle=0.02)
    report, _ = cloud.ended(cloud.start(tmp_path / "t"), code=0)
    assert [step["status"] for step in report["steps"]] == ["ok"] * len(STEPS)
    assert [line for step in report["steps"] for line in step["differences"]] == []
    assert report["left"] == report["denied"] == []
    assert cloud.has_nothing()


def test_a_missing_permission_ends_the_trial_with_its_name_and_leaves_nothing(cloud, tmp_path):
    cloud.fault(denied="1@CreateComputeQuota")
    report, _ = cloud.ended(cloud.start(tmp_path / "t"))
    assert report["denied"] == ["sagemaker:CreateComputeQuota"]
    assert "sagemaker:CreateComputeQuota" in reason_of(report, "up")
    assert cloud.has_nothing()


def test_a_group_that_never_comes_up_ends_at_the_time_limit(cloud, tmp_path):
    cloud.fault(capacity="0@work")
    report, _ = cloud.ended(cloud.start(tmp_path / "t", up=120))
    assert reason_of(report, "up")
    assert cloud.has_nothing()


def test_credentials_that_expire_are_named_and_the_teardown_goes_on_with_new_ones(cloud, tmp_path):
    trial = cloud.start(tmp_path / "t")
    eventually(lambda: is_creating(tmp_path / "t", "hyperpod:index:Cluster"), "the cluster is being created")
    cloud.fault(expired=1)
    teardown = tmp_path / "t" / "logs" / "teardown.log"
    eventually(lambda: teardown.exists() and "xpired" in teardown.read_text(), "the teardown fails")
    cloud.fault(expired=None)
    report, errors = cloud.ended(trial)
    assert "The credentials have expired" in " ".join(errors.split())
    assert "The credentials have expired" in reason_of(report, "up")
    assert cloud.has_nothing()


def test_an_interruption_deletes_what_exists(cloud, tmp_path):
    trial = cloud.start(tmp_path / "t")
    eventually(lambda: is_creating(tmp_path / "t", "hyperpod:index:Cluster"), "the cluster is being created")
    trial.send_signal(signal.SIGINT)
    report, _ = cloud.ended(trial)
    assert "the trial was interrupted" in reason_of(report, "up")
    assert cloud.has_nothing()


def test_a_trial_that_was_killed_is_deleted_by_the_next_one_and_none_runs_beside_it(cloud, tmp_path):
    folder = tmp_path / "t"
    trial = cloud.start(folder)
    eventually(lambda: is_creating(folder, "hyperpod:index:Cluster"), "the cluster is being created")
    second = cloud.start(folder)
    assert "a trial is running in" in second.communicate()[1]
    # Its commands have their own sessions.
    processes = psutil.Process(trial.pid).children(recursive=True)
    for process in (trial, *processes):
        process.kill()
    trial.communicate()
    psutil.wait_procs(processes)
    report, errors = cloud.ended(cloud.start(folder), code=0)
    assert "deleting" in errors
    assert (report["steps"], report["left"]) == ([], [])
    assert cloud.has_nothing()


def test_a_trial_in_another_folder_is_refused_and_a_kept_platform_is_deleted_by_the_next_run(cloud, tmp_path):
    kept, errors = cloud.ended(cloud.start(tmp_path / "t", "--keep"), code=0)
    assert kept["left"], errors
    other = cloud.start(tmp_path / "other")
    assert "another trial is running in us-west-2, or left resources: vpc-" in " ".join(other.communicate()[1].split())
    report, _ = cloud.ended(cloud.start(tmp_path / "t"), code=0)
    assert report["left"] == []
    assert cloud.has_nothing()
