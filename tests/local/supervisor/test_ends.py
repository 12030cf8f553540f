"""Two parallel examples with the real engine, and their deletion; the protected one requires confirmation."""

import json
import os
import subprocess
from contextlib import contextmanager

import boto3
import pytest

from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.cli.test_validate import HPKIT

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(900)]

PLAIN, PROTECTED = "startup-dev", "topology-prod"


@pytest.fixture
def local(repository):
    """Return a function that runs a command of `hpkit local` in the repository; at the end, no instance exists."""
    instances = [Instance.of_stack(stack, root=repository.folder) for stack in (PLAIN, PROTECTED)]
    for instance in instances:
        instance.write_aws_arguments(["--latency-factor", "0"])

    def run(*arguments, stdin=subprocess.DEVNULL):
        command = [HPKIT, "local", *arguments]
        done = subprocess.run(command, cwd=repository.folder, capture_output=True, text=True, stdin=stdin)
        assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done

    yield run
    for instance in instances:
        control.reset(instance)


@contextmanager
def answered(text):
    """Return a terminal on which a user has typed this text."""
    person, terminal = os.openpty()
    try:
        os.write(person, text.encode())
        yield terminal
    finally:
        os.close(person)
        os.close(terminal)


def put_something_into_the_bucket(instance):
    """Add an object as jobs do: AWS doesn't delete a bucket with objects."""
    there = control.environment(instance, tools=())
    s3 = boto3.client(
        "s3",
        endpoint_url=there["AWS_ENDPOINT_URL"],
        region_name=there["AWS_REGION"],
        aws_access_key_id=there["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=there["AWS_SECRET_ACCESS_KEY"],
    )
    (bucket,) = s3.list_buckets()["Buckets"]
    s3.put_object(Bucket=bucket["Name"], Key="checkpoint", Body=b"weights")


def test_two_examples_go_up_beside_each_other_and_down_protected_or_not(local, repository):
    for stack in (PLAIN, PROTECTED):
        up = local("up", "--stack", stack)
        assert up.returncode == 0, up.stdout + up.stderr
        assert up.stderr.splitlines()[0] == f"stack {stack} on instance {stack} of the local cloud"
        assert up.stdout.splitlines()[-1] == f"Delete it: {HPKIT} local down --stack {stack} --yes"
    rows = json.loads(local("list", "--format", "json").stdout)["items"]
    assert [(row["name"], row["state"], row["stacks"]) for row in rows] == [
        (stack, "healthy", [stack]) for stack in (PLAIN, PROTECTED)
    ]
    instance = Instance.of_stack(PROTECTED, root=repository.folder)
    put_something_into_the_bucket(instance)

    refused = local("down", "--stack", PROTECTED)
    assert refused.returncode == 1
    assert "the HyperPod cluster topology" in refused.stdout
    assert "All of them are on the local cloud" in refused.stdout
    said = f"To skip it: {HPKIT} local down --stack {PROTECTED} --yes\n"
    assert refused.stderr.endswith(said), refused.stderr
    with answered("n\n") as terminal:
        declined = local("down", "--stack", PROTECTED, stdin=terminal)
    assert declined.returncode == 1
    assert "Delete it?" in declined.stdout
    assert json.loads(local("status", "--name", PROTECTED, "--format", "json").stdout)["stacks"], "all is still there"

    # As after an interrupted `down`: the parts start again, and nothing is asked of them before they are healthy.
    assert local("stop", "--name", PROTECTED).returncode == 0
    with answered("y\n") as terminal:
        gone = local("down", "--stack", PROTECTED, stdin=terminal)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert gone.stdout.endswith(f"{PROTECTED} and its instance are deleted\n")
    gone = local("down", "--stack", PLAIN)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert json.loads(local("list", "--format", "json").stdout)["items"] == []
