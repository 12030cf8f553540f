"""The script that a new node runs as root: who could have written it, and who verifies it."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess

import pytest

from hpkit.plan.derive import derive
from hpkit.program.components.storage.aws_storage import loader
from tests import builders
from tests.program.recorder import recording_of
from tests.security.evaluation import Request, allows, managed

ACCOUNT = "123456789012"
STUDIO = f"arn:aws:iam::{ACCOUNT}:role/service-role/AmazonSageMaker-ExecutionRole-20260101T000000"
POD = f"arn:aws:iam::{ACCOUNT}:role/acme-dev-us-west-2-nodes"
URI = "s3://sagemaker-acme-scripts/v1/set up.sh"
MEANT = "#!/bin/bash\necho trusted > ran\n"


def folder_digest(**files):
    """Return what the command in the reference prints in a folder with these files."""
    lines = [f"{hashlib.sha256(text.encode()).hexdigest()}  ./{name}\n" for name, text in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


DIGEST = folder_digest(**{"set up.sh": MEANT})


def program(*, environment=None, **named):
    groups = [builders.group("gpu", "ml.g5.12xlarge", 4, **named)]
    return recording_of(derive(builders.typed(builders.organization(groups=groups, environment=environment)), "dev"))


def started(found):
    """Return what HyperPod starts on a new node: folder and file."""
    (group,) = found.one("hyperpod:index:Cluster").inputs["instanceGroups"]
    return group["lifeCycleConfig"]


def test_nodes_run_a_script_of_your_own_bucket_only_with_its_hash():
    attack = Request(STUDIO, "s3:PutObject", f"arn:aws:s3:::{URI.removeprefix('s3://')}")
    assert allows(attack, identity=[managed("AmazonSageMakerFullAccess")]), "so it is, in a bucket that is not hpkit's"
    named = {"lifecycleScript": URI}
    unverified = builders.organization(groups=[builders.group("gpu", "ml.g5.12xlarge", 4, **named)])
    assert started(program(**named))["sourceS3Uri"] == URI.rpartition("/")[0]
    assert "ACC005" in builders.rules(unverified), "who leaves it so is told"
    found = program(**named, lifecycleScriptSha256=DIGEST)
    (script,) = [each.inputs for each in found.resources.values() if each.inputs.get("content") == loader(URI, DIGEST)]
    assert started(found) == {
        "sourceS3Uri": f"s3://lifecycle-id/{script['key'].rpartition('/')[0]}",
        "onCreate": "on_create.sh",
    }
    assert hashlib.sha256(loader(URI, DIGEST).encode()).hexdigest()[:16] in script["key"]


@pytest.fixture
def node(tmp_path):
    """Run a loader on a machine whose S3 has one object; return exit status, log, and what the script left."""
    if missing := [name for name in ("bash", "sha256sum", "mktemp") if not shutil.which(name)]:
        pytest.skip(f"not here, but on every node: {', '.join(missing)}")

    def boot(stored, *, uri=URI, digest=DIGEST, **beside):
        (tmp_path / "bin").mkdir(exist_ok=True)
        shutil.rmtree(tmp_path / "stored", ignore_errors=True)
        (tmp_path / "stored").mkdir()
        for name, text in {} if stored is None else {uri.rpartition("/")[2]: stored, **beside}.items():
            (tmp_path / "stored" / name).write_text(text, encoding="utf-8")
        fetch = tmp_path / "bin" / "aws"
        folder = shlex.quote(uri.rpartition("/")[0] + "/")
        fetch.write_text(
            f'#!/bin/bash\n[[ "$4 $5" == "--recursive "{folder} ]] && cp -r "{tmp_path}/stored/." "$6"\n',
            encoding="utf-8",
        )
        fetch.chmod(0o755)
        log = tmp_path / "provisioning.log"
        text = loader(uri, digest).replace("/var/log/provision/provisioning.log", str(log))
        variables = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
        done = subprocess.run(["bash", "-c", text], cwd=tmp_path, env=variables, timeout=300)
        return (
            done.returncode,
            log.read_text(encoding="utf-8"),
            [each.read_text() for each in tmp_path.glob("tmp.*/ran")],
        )

    return boot


def test_a_node_runs_the_script_with_the_stated_hash(node):
    status, log, ran = node(MEANT)
    assert (status, ran) == (0, ["trusted\n"]), log


@pytest.mark.parametrize("stored", ["#!/bin/bash\necho evil > ran\n", MEANT + "echo evil >> ran\n", ""])
def test_a_node_refuses_a_script_with_another_hash(node, stored):
    status, log, ran = node(stored)
    assert (status, ran) == (1, [])
    found = folder_digest(**{"set up.sh": stored})
    assert f"rejected: the folder of {URI} has the SHA-256 {found}, but the organization file has {DIGEST}" in log


def test_a_node_runs_no_commands_in_the_address_of_its_script(node):
    uri = "s3://sagemaker-x/'; echo evil > ran; '$(echo evil > ran).sh"
    status, log, ran = node(MEANT, uri=uri, digest=folder_digest(**{uri.rpartition("/")[2]: MEANT}))
    assert (status, ran) == (0, ["trusted\n"]), log


def test_a_failing_script_fails_the_node(node):
    failing = "#!/bin/bash\nexit 3\n"
    assert node(failing, digest=folder_digest(**{"set up.sh": failing}))[0] == 3


def test_a_script_of_two_files_runs_whole_and_both_are_verified(node):
    # As AWS's lifecycle scripts for EKS: on_create.sh runs on_create_main.sh, which is next to it.
    first, second = "#!/bin/bash\nbash ./on_create_main.sh\n", "echo trusted > ran\n"
    digest = folder_digest(**{"set up.sh": first, "on_create_main.sh": second})
    status, log, ran = node(first, digest=digest, **{"on_create_main.sh": second})
    assert (status, ran) == (0, ["trusted\n"]), log
    assert node(first, digest=digest, **{"on_create_main.sh": "echo evil > ran\n"})[0] == 1


def test_a_missing_script_fails_the_node(node):
    status, log, ran = node(None)
    assert (status, ran) == (1, [])
    assert "begin" not in log


def test_two_groups_with_one_script_have_one_loader_and_nodes_wait_for_it():
    groups = [
        builders.group(name, "ml.g5.12xlarge", 1, lifecycleScript=URI, lifecycleScriptSha256=DIGEST) for name in "ab"
    ]
    recording = recording_of(derive(builders.typed(builders.organization(groups=groups)), "dev"))
    scripts = [urn for urn, each in recording.resources.items() if each.type.endswith("BucketObjectv2")]
    assert len(scripts) == 2, "hpkit's own, and the loader of both"
    assert set(scripts) <= recording.one("hyperpod:index:Cluster").after


# What a pod gets that reaches the instance metadata service: the role of its node.
BEYOND = [
    ("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/admin"),
    ("iam:PassRole", POD),
    ("s3:GetObject", "arn:aws:s3:::payroll/salaries.csv"),
    ("s3:PutObject", "arn:aws:s3:::lifecycle-id/lifecycle/0/on_create.sh"),
    ("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:database-AbCdEf"),
    ("kms:Decrypt", f"arn:aws:kms:us-west-2:{ACCOUNT}:key/00000000-0000-0000-0000-000000000000"),
    ("ec2:TerminateInstances", f"arn:aws:ec2:us-west-2:{ACCOUNT}:instance/i-0123456789abcdef0"),
    ("eks-auth:AssumeRoleForPodIdentity", f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/other"),
    ("sagemaker:UpdateCluster", f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:cluster/abc"),
    ("sagemaker:CreateTrainingJob", f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:training-job/x"),
]


@pytest.mark.parametrize(("action", "resource"), BEYOND, ids=[action for action, _ in BEYOND])
def test_the_nodes_role_does_not_reach_the_rest_of_the_account(action, resource):
    found = program()
    own = json.loads(found.one("iam/rolePolicy:RolePolicy", "nodes").inputs["policy"])
    given = [own, managed("AmazonSageMakerClusterInstanceRolePolicy")]
    assert not allows(Request(POD, action, resource), identity=given)


def test_the_nodes_role_can_read_buckets_named_sagemaker():
    # AWS's own policy for the role allows this; the page on security describes the countermeasure.
    same_account = {"aws:ResourceAccount": ACCOUNT}
    attack = Request(POD, "s3:GetObject", "arn:aws:s3:::sagemaker-us-west-2-123456789012/notebook.ipynb", same_account)
    assert allows(attack, identity=[managed("AmazonSageMakerClusterInstanceRolePolicy")])


def test_pods_of_another_cluster_cannot_assume_the_role_of_an_add_on():
    recording = program(environment={"observability": {"cloudwatch": True}})
    trusts = [
        json.loads(resource.inputs["assumeRolePolicy"])
        for resource in recording.resources.values()
        if resource.type == "aws:iam/role:Role" and "pods.eks.amazonaws.com" in resource.inputs["assumeRolePolicy"]
    ]
    assert trusts
    own = recording.one("eks/cluster:Cluster").made["arn"]
    for trust in trusts:
        statements = {"Statement": [{**each, "Resource": "*"} for each in trust["Statement"]]}

        def taken(cluster, account=ACCOUNT, statements=statements):
            context = {"aws:SourceArn": cluster, "aws:SourceAccount": account}
            return allows(Request("pods.eks.amazonaws.com", "sts:AssumeRole", "*", context), identity=[statements])

        assert taken(own)
        assert not taken(f"{own}-of-somebody")
        assert not taken(own, "210987654321")
        assert not allows(Request("pods.eks.amazonaws.com", "sts:AssumeRole", "*"), identity=[statements])
