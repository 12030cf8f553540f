"""A user's own organization on the local cloud, as on AWS: two environments with different accounts and regions.

stacks/ contains only the organization file. Both environments are up at the same time.
"""

import copy
import json
import os
import re
import shutil
import subprocess

import pytest

from hpkit_local.aws.testing import client
from hpkit_local.kubernetes.api import Api
from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance
from tests.builders import organization, split, team
from tests.cli.test_validate import HPKIT

DEV, PROD, NOBODY = "123456789012", "210987654321", "999999999999"
PLACES = {"acme-dev": (DEV, "us-west-2", "1.35"), "acme-prod": (PROD, "us-east-1", "1.34")}
STACKS = tuple(PLACES)
OUTSIDE = "198.51.100.7"
MOST_LINES = 25
# Progress lines that depend on time: longer runs print more, each after as much time as all previous ones together.
PASSES = re.compile(r"\d+ s: |.*: still starting, \d+ s ")

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]


def own_organization():
    rows = {"ada": [{"instanceType": "ml.g5.12xlarge", "count": 2}]}
    data = organization(teams=[team("ada", members=[])], allocations=rows)
    dev = data["environments"]["dev"]
    prod = copy.deepcopy(dev) | {"account": PROD, "region": "us-east-1"}
    prod["cluster"]["name"] = "acme-prod"
    prod["eks"]["version"] = "1.34"
    for zone in (*prod["network"]["zones"], *prod["cluster"]["instanceGroups"]):
        zone["availabilityZone"] = zone["availabilityZone"].replace("us-west-2", "us-east-1")
    data["environments"]["prod"] = prod
    return data


def emulated(instance):
    answer = Api.of_kubeconfig(instance.kubeconfig).read("/version")
    return f"{answer['emulationMajor']}.{answer['emulationMinor']}"


def lines_of(done):
    """Return the output without the few lines that a busy machine repeats."""
    lines = (done.stderr + done.stdout).splitlines()
    passing = [line for line in lines if PASSES.match(line)]
    assert len(passing) <= 10, passing
    return [line for line in lines if line not in passing]


def begin(folder, *arguments, **environment):
    command = [HPKIT, "local", *arguments]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}, **pipes)


def end(process):
    stdout, stderr = process.communicate(timeout=900)
    assert "Traceback" not in stdout + stderr, stdout + stderr
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@pytest.fixture(scope="module")
def folder(repository):
    shutil.rmtree(repository.folder / "stacks")
    (repository.folder / "stacks").mkdir()
    repository.write("acme", own_organization())
    yield repository.folder
    for name in PLACES:
        control.reset(Instance.named(name, root=repository.folder))


@pytest.fixture(scope="module")
def up(folder):
    """Return the output of `hpkit local up` for each stack; all run at the same time."""
    return {name: end(process) for name, process in [(name, begin(folder, "up", "-s", name)) for name in STACKS]}


def test_every_environment_goes_up_with_few_lines_and_no_other_file(up, folder):
    for name, done in up.items():
        assert done.returncode == 0, done.stderr
        assert len(lines_of(done)) <= MOST_LINES, done.stderr
        first, *use = done.stdout.splitlines()
        assert first.startswith(f"{name}: "), first
        assert " resources created in " in first
        assert [line.partition(":")[0] for line in use] == ["Use it", "Inspect it", "Delete it"]
    assert [file.name for file in (folder / "stacks").iterdir()] == ["acme.yaml"]


@pytest.mark.parametrize("name", STACKS)
def test_each_has_its_own_account_region_and_kubernetes(up, folder, name):
    account, region, version = PLACES[name]
    instance = Instance.named(name, root=folder)
    assert emulated(instance) == version
    url = f"http://127.0.0.1:{instance.ports()['aws']}"
    assert client(url, "sts").get_caller_identity()["Account"] == account
    cluster = client(url, "eks", region=region).describe_cluster(name=name)["cluster"]
    assert cluster["arn"] == f"arn:aws:eks:{region}:{account}:cluster/{name}"
    (hyperpod,) = client(url, "sagemaker", region=region).list_clusters()["ClusterSummaries"]
    assert hyperpod["ClusterArn"].startswith(f"arn:aws:sagemaker:{region}:{account}:cluster/")


def test_the_environment_names_the_stack_of_commands_without_an_option(up, folder):
    variables = json.loads(end(begin(folder, "env", "--name", "acme-prod", "--format", "json")).stdout)["variables"]
    assert (variables["HPKIT_STACK"], variables["AWS_REGION"]) == ("acme-prod", "us-east-1")
    environment = {**os.environ, **variables}
    for words in (("cluster", "status"), ("job", "list"), ("quota",)):
        done = subprocess.run(
            [HPKIT, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("acme-prod (us-east-1)"), "of the quotas"


def test_an_upgrade_changes_the_api_server(up, folder, repository):
    data = own_organization()
    data["environments"]["prod"]["eks"]["version"] = "1.35"
    repository.write("acme", data)
    done = end(begin(folder, "up", "-s", "acme-prod"))
    assert done.returncode == 0, done.stderr
    assert "acme-prod: Kubernetes 1.35\n" in done.stderr
    assert emulated(Instance.named("acme-prod", root=folder)) == "1.35"


def test_a_caller_outside_of_the_ranges_is_refused(up, folder):
    started = end(begin(folder, "start", "--name", "acme-dev", "--from", OUTSIDE))
    assert started.returncode == 0, started.stderr
    refused = end(begin(folder, "refresh", "-s", "acme-dev"))
    assert refused.returncode != 0
    assert f"{OUTSIDE} is not in publicAccessCidrs (52.10.20.0/24)" in refused.stdout + refused.stderr


def test_credentials_of_another_account_are_refused_in_full(up, folder):
    started = end(begin(folder, "start", "--name", "acme-dev", "--account", NOBODY))
    assert started.returncode == 0, started.stderr
    refused = end(begin(folder, "up", "-s", "acme-dev"))
    assert (refused.returncode != 0, refused.stdout) == (True, "")
    assert NOBODY in refused.stderr
    assert DEV in refused.stderr
    assert "up failed. Pulumi's output:" in refused.stderr.splitlines()[-1]
    back = end(begin(folder, "start", "--name", "acme-dev", "--account", "stack"))
    assert back.returncode == 0, back.stderr
    again = end(begin(folder, "up", "-s", "acme-dev"))
    assert again.returncode == 0, again.stderr
    assert re.match(r"acme-dev: \d+ resources unchanged in \d+ s\n", again.stdout), again.stdout


def test_the_end_says_only_what_became_of_the_stack(up, folder):
    for name, done in [(name, end(begin(folder, "down", "--yes", "-s", name))) for name in STACKS]:
        assert done.returncode == 0, done.stderr
        first, last = done.stdout.splitlines()
        assert first.startswith(f"{name}: "), first
        assert " resources deleted in " in first
        assert last == f"{name} and its instance are deleted"
        assert len(lines_of(done)) <= MOST_LINES, done.stderr
        assert not [line for line in lines_of(done) if "stack rm" in line or "finalizers" in line]


@pytest.mark.parametrize("installed", [False, True])
def test_governance_alone_goes_up_on_a_cluster_that_no_stack_creates(folder, repository, installed):
    data = split({**own_organization(), "environments": {"dev": own_organization()["environments"]["dev"]}})
    repository.write("acme", data)
    early = end(begin(folder, "up", "-s", "acme-governance"))
    assert early.returncode == 1
    assert "governs the cluster of acme-dev, which isn't up" in early.stderr
    governance = data["environments"].pop("governance")
    governance["governance"]["installed"] = installed
    repository.write("acme", {**data, "environments": {"governance": governance}})
    try:
        up = end(begin(folder, "up", "-s", "acme-governance"))
        assert up.returncode == 0, up.stderr
        assert "existing resources that the file names: EKS cluster acme-dev" in up.stderr
        again = end(begin(folder, "preview", "-s", "acme-governance"))
        assert re.search(r"acme-governance: \d+ resources unchanged in \d+ s\n", again.stdout), again.stdout
        down = end(begin(folder, "down", "--yes", "-s", "acme-governance"))
        assert down.returncode == 0, down.stderr
    finally:
        control.reset(Instance.named("acme-governance", root=folder))
